"""The checkouts that are searched for sources of kernels, remembered for all traces."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.files import is_directory, read_small, write_json
from magpie_tui.basics.json_strict import loads
from magpie_tui.basics.paths import private_directory, state_directory

_LOG = logging.getLogger(__name__)
_FILE = "source_repos.json"


def remembered_repos() -> tuple[Path, ...]:
    """Return the checkouts that were named before and are still there; none where the file is missing or damaged."""
    try:
        content = loads(read_small(state_directory() / _FILE))
        paths = [Path(str(entry)) for entry in content["repos"]]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return tuple(path for path in paths if is_directory(path))


def remember_repos(repos: Sequence[Path]) -> None:
    """Remember checkouts. A state directory that cannot be written costs the memory only."""
    try:
        write_json(
            private_directory(state_directory()) / _FILE, {"schema_version": 1, "repos": [str(path) for path in repos]}
        )
    except (OSError, MagpieTuiError) as error:
        _LOG.warning("the checkouts are not remembered: %s", error)
