"""The configs that come with the program: listed, described, copied."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import create_directory, write_bytes
from magpie_tui.basics.text import nearest
from magpie_tui.configs.check import ConfigKind, detect_kind
from magpie_tui.configs.kernel_paths import exists
from magpie_tui.configs.positions import Document, ListNode, MapNode, Scalar
from magpie_tui.configs.syntax import load_document


@dataclass(frozen=True, slots=True)
class ShippedConfig:
    """A config that can be copied.

    Attributes:
        name: ``benchmarks/vllm_mi300x_clean``: its path without the ending.
        description: Its first comment line.
        sources: Files beside it that it uses; they are copied with it.
    """

    name: str
    path: Path
    kind: ConfigKind | None
    description: str
    sources: tuple[Path, ...] = ()


def shipped_directory() -> Path:
    """Return the directory of the shipped configs: the installed package's, or the checkout's.

    Raises:
        UserInputError: It is in neither place: the installation is damaged.
    """
    package = Path(__file__).resolve().parent.parent
    for directory in (package / "data" / "configs", package.parent / "configs"):
        if (directory / "benchmarks").is_dir():
            return directory
    raise UserInputError(
        "the shipped configs are not there", path=package / "data" / "configs", hint="install magpie-tui again"
    )


def list_shipped(directory: Path | None = None) -> tuple[ShippedConfig, ...]:
    """List all shipped configs by name."""
    root = shipped_directory() if directory is None else directory
    return tuple(_describe(root, path) for path in sorted(root.rglob("*.yaml")))


def _describe(root: Path, path: Path) -> ShippedConfig:
    document = load_document(path)
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    return ShippedConfig(
        name=path.relative_to(root).with_suffix("").as_posix(),
        path=path,
        kind=detect_kind(document),
        description=first.removeprefix("#").strip() if first.startswith("#") else "",
        sources=_sources(document),
    )


def _sources(document: Document) -> tuple[Path, ...]:
    root = document.root
    found: list[Path] = []
    entries = [entry.value for key in ("kernel", "kernels") if isinstance(root, MapNode) and (entry := root.get(key))]
    for value in entries:
        for item in value.items if isinstance(value, ListNode) else (value,):
            if not isinstance(item, MapNode):
                continue
            for key in ("source_files", "config_files"):
                sources = item.get(key)
                names = sources.value.items if sources is not None and isinstance(sources.value, ListNode) else ()
                found.extend(document.path.parent / name.text for name in names if isinstance(name, Scalar))
            reference = item.get("reference")
            if reference is not None and isinstance(reference.value, Scalar):
                found.append(document.path.parent / reference.value.text.partition(":")[0])
    return tuple(dict.fromkeys(path for path in found if path.is_file()))


def find_shipped(name: str, configs: tuple[ShippedConfig, ...]) -> ShippedConfig:
    """Find a shipped config by its name, or by the last part of it.

    Raises:
        UserInputError: There is none, or several.
    """
    wanted = name.removesuffix(".yaml").removeprefix("configs/")
    exact = [config for config in configs if config.name == wanted]
    found = exact or [config for config in configs if config.name.rsplit("/", 1)[-1] == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserInputError(f"several configs are called {name}: {', '.join(config.name for config in found)}")
    names = {last: config.name for config in configs for last in (config.name, config.name.rsplit("/", 1)[-1])}
    guess = nearest(wanted, names)
    raise UserInputError(
        f"there is no shipped config {name}",
        hint=f"did you mean {names[guess]}?" if guess else "magpie-tui config new lists them",
    )


def copy_shipped(config: ShippedConfig, target: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Copy a config, and the sources beside it that it names, and return the files written.

    Args:
        target: The new file; a directory keeps the name.
        force: Overwrite files that are there.

    Raises:
        UserInputError: A file is there already and ``force`` is not given; nothing was written then.
    """
    path = target / config.path.name if target.is_dir() else target
    pairs = [(config.path, path), *((source, path.parent / source.name) for source in config.sources)]
    taken = [copy for original, copy in pairs if exists(copy) and (copy == path or not _same_content(original, copy))]
    if taken and not force:
        raise UserInputError(
            "there is such a file already", path=taken[0], hint="give --force to overwrite it, or -o FILE"
        )
    create_directory(path.parent)
    for original, copy in pairs:
        if copy.is_dir():
            raise UserInputError("a directory is in the way of this file", path=copy)
        write_bytes(copy, original.read_bytes())
        shutil.copymode(original, copy)
    return tuple(copy for _original, copy in pairs)


def _same_content(first: Path, second: Path) -> bool:
    """True for a source that was copied before."""
    try:
        return second.is_file() and first.read_bytes() == second.read_bytes()
    except OSError:
        return False
