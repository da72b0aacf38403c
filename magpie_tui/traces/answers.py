"""Finished reports kept beside the cached columns, so that the same question is not worked out twice.

An answer belongs to the traces as they are (each one's :func:`~magpie_tui.traces.identity.cache_key`), to every option
that enters it and to the code that worked it out. Anything else, and anything damaged, is worked out anew.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from magpie_tui import __version__
from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.files import write_bytes
from magpie_tui.basics.paths import private_directory
from magpie_tui.traces import identity
from magpie_tui.traces.progress import Progress, Reading

if TYPE_CHECKING:
    from magpie_tui.traces.discover import TraceSet

Result = TypeVar("Result")

FORMAT = 1
LIMIT_BYTES = 256 << 20
LARGEST_BYTES = 32 << 20
"""An answer larger than this is not kept: it would take as long to load as to work out from the columns."""
_DIGEST_BYTES = hashlib.sha256().digest_size
_ROOMS = ("basics", "data", "sources", "traces")
"""Directories whose code and tables have a part in an answer."""

_log = logging.getLogger(__name__)


def remembered(kind: str, traces: TraceSet, options: object, reading: Reading, compute: Callable[[], Result]) -> Result:
    """Return the kept answer, else what ``compute`` returns, which is then kept.

    Args:
        kind: Name of the question.
        traces: The files that it is about.
        options: All that enters the answer beside the traces; its ``repr`` must tell different options apart.
        reading: ``use_cache`` off neither reads nor writes answers.

    Raises:
        What ``compute`` raises; nothing is kept then.
    """
    key = _key(kind, traces, options, salvage=reading.salvage) if reading.use_cache else None
    if key is None:
        return compute()
    place = identity.cache_root() / "answers" / f"{key}.answer"
    kept = _load(place)
    if kept is not None:
        answer: Result = kept
        if reading.progress is not None:
            total = sum(file.path.stat().st_size for file in traces.files)
            reading.progress(Progress(total, total, traces.files[-1].path))
        return answer
    answer = compute()
    if _worthwhile(traces):
        _store(place, answer)
    return answer


def _key(kind: str, traces: TraceSet, options: object, *, salvage: bool) -> str | None:
    """None where a trace can't be read."""
    parts: list[object] = [FORMAT, kind, salvage, traces, options, *_code()]
    for file in traces.files:
        trace = identity.cache_key(file.path, salvage=salvage)
        if trace is None:
            return None
        parts.append(trace)
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()[:40]


def _worthwhile(traces: TraceSet) -> bool:
    """Keeping an answer costs more than it saves where all traces are small."""
    from magpie_tui.traces.containers import expected_unpacked_bytes

    try:
        return sum(expected_unpacked_bytes(file.path) for file in traces.files) >= identity.WORTHWHILE_BYTES
    except OSError:
        return False


def _code() -> Iterator[object]:
    """Tell one state of the code from another, an edited working tree included."""
    yield __version__
    yield sys.version_info[:3]
    package = Path(__file__).resolve().parents[1]
    for room in _ROOMS:
        yield from _sources(os.fspath(package / room))


def _sources(directory: str) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".json", ".yaml")):
                    stat = entry.stat()
                    found.append((entry.path, stat.st_mtime_ns, stat.st_size))
                elif entry.name != "__pycache__" and entry.is_dir():
                    found += _sources(entry.path)
    except OSError:
        return []
    return sorted(found)


def _member(kind: object, name: str) -> Enum:
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        raise pickle.UnpicklingError(f"{kind!r} is no enumeration")
    return kind[name]


class _Results(pickle.Unpickler):
    """Makes objects of the results of this room only, whatever the file says."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a dataclass or enumeration of the traces, or a path; refuse everything else."""
        if module.startswith("pathlib") and name in ("Path", "PosixPath"):
            return Path
        if module.startswith("magpie_tui.traces."):
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        if (module, name) == ("builtins", "getattr"):
            return _member  # Python 3.11.0 … 3.11.3 write the member of an enumeration as an attribute of it
        raise pickle.UnpicklingError(f"{module}.{name} has no place in an answer")


def _unpacked(data: bytes) -> Any:
    return _Results(io.BytesIO(data)).load()


def _load(place: Path) -> Any:
    """Return what is kept, None when nothing is or when it is damaged."""
    try:
        data = place.read_bytes()
        payload = data[_DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() != data[:_DIGEST_BYTES]:
            raise ValueError("the answer is not what was written")
        answer = _unpacked(payload)
        os.utime(place)
    except FileNotFoundError:
        return None
    except (
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        ImportError,
        LookupError,
        EOFError,
        pickle.UnpicklingError,
    ) as error:
        _log.debug("ignoring a damaged answer %s: %s", place, error)
        return None
    return answer


def _store(place: Path, answer: object) -> None:
    """Keep an answer; a full disk or an unwritable directory is no error of the analysis."""
    try:
        payload = pickle.dumps(answer, protocol=5)
        if len(payload) > LARGEST_BYTES:
            return
        _unpacked(payload)
        private_directory(place.parent)
        write_bytes(place, hashlib.sha256(payload).digest() + payload)
        identity.drop_oldest([(file,) for file in place.parent.glob("*.answer")], LIMIT_BYTES)
    except (OSError, MagpieTuiError, TypeError, AttributeError, pickle.PicklingError, pickle.UnpicklingError) as error:
        _log.info("the answer was not kept: %s", error)
