"""What a kernel's process may read and write: everything it needs, and nothing that its result could be taken from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import magpie_tui
from magpie_tui.basics.paths import expanded, real_path
from magpie_tui.kernels.harness.frames import Message

CACHE_VARIABLES: dict[str, str] = {
    "TMPDIR": "tmp",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "CUDA_CACHE_PATH": "cuda",
    "CUPY_CACHE_DIR": "cupy",
    "NUMBA_CACHE_DIR": "numba",
    "TILELANG_CACHE_DIR": "tilelang",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "MIOPEN_USER_DB_PATH": "miopen",
    "MIOPEN_CUSTOM_CACHE_DIR": "miopen_cache",
    "XDG_CACHE_HOME": "cache",
}
"""Where compilers keep their files: each kernel has its own, so that none finds what another one left."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of one kernel's processes.

    Attributes:
        place: Directory of its own, for caches and temporary files.
        exchanged: Directory for its outputs; nothing stays there from one process to the next.
        references: Files that say what is right, with what Python compiled of them.
        hidden: Files and directories that it may not read: the reference, the workspace, other kernels' places.
        visible: Reasons why something that should be hidden is not, by path.
        protected: Files and directories that it may not change; the rest of the file system, too, where the system can
            take that right away.
        writable: Directories besides these that it may write to: caches named in its environment.
        environment: Variables that point to ``place``.
    """

    place: Path
    exchanged: Path
    references: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    visible: Mapping[str, str] = field(default_factory=dict)
    protected: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def elsewhere(self, name: str) -> Rights:
        """Return the same rights with another place beside this one; it finds nothing that was left here."""
        place = self.place.with_name(f"{self.place.name}_{name}")
        moved = {key: str(place / Path(value).name) for key, value in self.environment.items()}
        return replace(self, place=place, hidden=(*self.hidden, self.place), environment=moved)

    def fingerprint(self) -> str:
        """Return a digest of the harness and of all protected files; directories of results are left out."""
        digest = hashlib.sha256()
        harness = sorted((Path(magpie_tui.__file__).parent / "kernels" / "harness").glob("*.py"))
        for path in [*harness, *self.protected]:
            try:
                content = path.read_bytes() if path.is_file() else b""
            except OSError:
                content = b"?"
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()

    def message(self, *, family: Iterable[int]) -> Message:
        """Return the request that takes the rights away."""
        for directory in (self.place, self.exchanged):
            directory.mkdir(parents=True, exist_ok=True)
        return {
            "do": "confine",
            "landlock": True,
            "hidden": [str(path) for path in self.hidden],
            "protected": [str(path) for path in self.protected],
            "writable": [str(self.place), str(self.exchanged), *(str(path) for path in self.writable)],
            "environment": dict(self.environment),
            "family": list(family),
        }


def compiled_forms(source: Path) -> list[Path]:
    """Return the byte code that Python may have left of a file."""
    return sorted((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"))


def rights_for(
    *,
    place: Path,
    source: Path,
    references: Iterable[Path],
    secrets: Iterable[Path],
    others: Iterable[Path],
    exchange: Path,
    environment: Mapping[str, str],
) -> Rights:
    """Return the rights of the kernel in ``source``.

    Args:
        references: Files that say what is right.
        secrets: Other files and directories that it must not see.
        others: Files of other kernels; they may be read, but not changed.
        exchange: Directory with ``inputs`` and ``outputs``.
        environment: The kernel's own variables; a cache that it names is left where it is.
    """
    hidden: list[Path] = []
    visible: dict[str, str] = {}
    for path in references:
        if real_path(path) == real_path(source):
            visible[str(path)] = "kernel and reference are in one file"
        else:
            hidden += [path, *compiled_forms(path)]
    own = {name: value for name, value in environment.items() if name in CACHE_VARIABLES}
    return Rights(
        place=place,
        exchanged=exchange / "outputs",
        references=tuple(hidden),
        hidden=(*hidden, *secrets),
        visible=visible,
        protected=(
            Path(magpie_tui.__file__).parent,
            *secrets,
            *others,
            source,
            *hidden,
            exchange / "inputs",
        ),
        writable=tuple(expanded(Path(value)) for value in own.values()),
        environment={name: str(place / part) for name, part in CACHE_VARIABLES.items() if name not in own},
    )
