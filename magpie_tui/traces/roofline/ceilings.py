"""Ceilings of devices: shipped as data, read from a file in TraceLens's form, or measured on this machine."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.paths import data_directory, expanded

THEORETICAL = "theoretical"
ACHIEVABLE = "achievable"
MEASURED = "measured"
GIVEN = "given"

_UNITS = ("matrix", "vector")
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a device can do at most.

    Attributes:
        device: Name of the device ("MI300X").
        kind: "theoretical" (data sheet), "achievable" (published by the maker), "measured" (here) or "given" (a file).
        source: Where the numbers are from.
        bandwidth: Bytes a second of the device's memory; None when not known.
        link: Bytes a second that the device can send to others over all its links, one way; None when not known.
        memory: Bytes of memory; None when not known.
        peaks: Operations a second by compute spec ("matrix_bf16"), dense.
    """

    device: str
    kind: str
    source: str
    bandwidth: float | None
    link: float | None = None
    memory: float | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name that stands beside every percentage."""
        return f"{self.device} {self.kind}"


@dataclass(frozen=True, slots=True)
class Device:
    """A device of the list: how a trace tells it, and its ceilings."""

    name: str
    vendor: str
    match: str
    cores: int
    memory: tuple[float, float] | None
    capability: tuple[int, int] | None
    warp: int | None
    note: str | None
    ceilings: tuple[Ceilings, ...]

    def of_kind(self, kind: str) -> Ceilings | None:
        """Ceilings of one kind; None without them."""
        return next((item for item in self.ceilings if item.kind == kind), None)


@dataclass(frozen=True, slots=True)
class Detected:
    """The device that a trace was recorded on.

    Attributes:
        device: None where it cannot be told.
        how: What it was told by, or why it cannot be.
        caveats: What to know about the choice.
    """

    device: Device | None
    how: str
    caveats: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """All devices of the list, in its order."""
    text = files("magpie_tui").joinpath("data/ceilings.json").read_text("utf-8")
    return tuple(_device(item) for item in json.loads(text)["devices"])


def _device(item: Mapping[str, object]) -> Device:
    name = str(item["name"])
    ceilings = item["ceilings"]
    return Device(
        name,
        str(item["vendor"]),
        str(item["match"]),
        int(str(item["cores"])),
        _pair(item.get("memory")),
        _whole_pair(item.get("capability")),
        int(str(item["warp"])) if "warp" in item else None,
        str(item["note"]) if "note" in item else None,
        tuple(_ceilings(name, one) for one in ceilings if isinstance(one, dict)) if isinstance(ceilings, list) else (),
    )


def _pair(value: object) -> tuple[float, float] | None:
    return (float(value[0]) * 1e9, float(value[1]) * 1e9) if isinstance(value, list) else None


def _whole_pair(value: object) -> tuple[int, int] | None:
    return (int(value[0]), int(value[1])) if isinstance(value, list) else None


def _ceilings(name: str, item: Mapping[str, object]) -> Ceilings:
    peaks = item.get("peaks")
    return Ceilings(
        name,
        str(item["kind"]),
        str(item["source"]),
        _scaled(item.get("bandwidth")),
        _scaled(item.get("link")),
        _scaled(item.get("memory")),
        {str(spec): float(value) * 1e12 for spec, value in peaks.items()} if isinstance(peaks, dict) else {},
    )


def _scaled(value: object) -> float | None:
    return float(value) * 1e9 if isinstance(value, (int, float)) else None


def find_device(name: str) -> Device | None:
    """Device of the list by its name, case, blanks and dashes aside; None without one."""
    wanted = _plain(name)
    return next((device for device in devices() if _plain(device.name) == wanted), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def device_named(text: str) -> Device | None:
    """Device whose pattern a driver's name fits ("AMD Instinct MI300X VF"); None without one."""
    return next((device for device in devices() if re.search(device.match, text, re.IGNORECASE)), None)


def detect(metadata: Mapping[str, object], used: int | None = None) -> Detected:
    """Tell the device from a trace's ``deviceProperties``.

    Args:
        used: Number of the device that the work ran on; the first of the list without it.
    """
    listed = metadata.get("deviceProperties")
    entries = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    if not entries:
        return Detected(None, "the trace lists no devices")
    entry = next((item for item in entries if used is not None and item.get("id") == used), entries[0])
    name = str(entry.get("name") or "")
    if name:
        device = device_named(name)
        if device is not None:
            return Detected(device, f"the trace calls it {name}")
    found = [device for device in devices() if _fits(device, entry)]
    facts = _facts(entry)
    if not found:
        shown = f"{name}, " if name else ""
        return Detected(None, f"no ceilings for {shown}{facts}; give them with --arch")
    caveats: tuple[str, ...] = ()
    if len(found) > 1:
        others = ", ".join(device.name for device in found[1:])
        caveats = (f"{facts} also fits {others}: name the device with --arch",)
    return Detected(found[0], f"the trace gives {'another' if name else 'no'} name, but {facts}", caveats)


def _fits(device: Device, entry: Mapping[str, object]) -> bool:
    """Compare number of multiprocessors, memory, warp size and compute capability."""
    if device.memory is None or entry.get("numSms") != device.cores:
        return False
    memory = entry.get("totalGlobalMem")
    if not isinstance(memory, int) or not device.memory[0] <= memory <= device.memory[1]:
        return False
    if device.warp is not None and entry.get("warpSize", device.warp) != device.warp:
        return False
    if device.capability is None:
        return True
    return (entry.get("computeMajor"), entry.get("computeMinor")) == device.capability


def _facts(entry: Mapping[str, object]) -> str:
    memory = entry.get("totalGlobalMem")
    size = f"{memory / 1e9:.0f} GB" if isinstance(memory, int) else "unknown memory"
    return f"{entry.get('numSms', '?')} multiprocessors and {size}"


def ceilings_for(arch: str) -> Ceilings:
    """Ceilings by ``--arch``: a file in TraceLens's form, a device of the list, or a measured one.

    A name may end in ``:theoretical``, ``:achievable`` or ``:measured``.

    Raises:
        UserInputError: Neither a file nor a known name.
    """
    path = expanded(Path(arch))
    if path.suffix == ".json" or path.is_file():
        return read_arch_file(path)
    name, _separator, kind = arch.partition(":")
    measured = [item for item in measured_ceilings() if _plain(item.device) == _plain(name)]
    if measured and kind in {"", MEASURED}:
        return measured[0]
    device = find_device(name) or device_named(name)
    if device is not None:
        found = device.of_kind(kind or THEORETICAL)
        if found is not None:
            return found
        kinds = ", ".join(item.kind for item in device.ceilings)
        raise UserInputError(f"{device.name} has no {kind} ceilings", hint=f"there are: {kinds}")
    names = ", ".join(dict.fromkeys([*(item.device for item in measured_ceilings()), *(d.name for d in devices())]))
    raise UserInputError(f"no ceilings named {arch!r}", hint=f"a JSON file in TraceLens's form, or one of: {names}")


def read_arch_file(path: Path) -> Ceilings:
    """Read ``--arch FILE``: ``name``, ``mem_bw_gbps``, ``memory_gb``, ``max_achievable_tflops``; all may be absent.

    Raises:
        UserInputError: The file is missing, no JSON object, or a value is no positive number.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UserInputError("the file of ceilings is larger than 1 MiB", path=path)
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserInputError(f"the file of ceilings cannot be read: {error.strerror}", path=path) from error
    except ValueError as error:
        raise UserInputError(f"the file of ceilings is no JSON: {error}", path=path) from error
    if not isinstance(content, dict):
        raise UserInputError(
            "the file of ceilings is no JSON object", path=path, hint='{"name": ..., "mem_bw_gbps": ...}'
        )
    table = content.get("max_achievable_tflops", {})
    if not isinstance(table, dict):
        raise UserInputError("max_achievable_tflops is no table of peaks", path=path, key="max_achievable_tflops")
    peaks = {}
    for spec, value in table.items():
        if str(spec).partition("_")[0] in _UNITS:
            peaks[str(spec)] = _positive(value, str(spec), path) * 1e12
    bandwidth = content.get("mem_bw_gbps")
    memory, link = content.get("memory_gb"), content.get("link_bw_gbps")
    return Ceilings(
        str(content.get("name") or path.stem),
        str(content.get("kind") or GIVEN),
        str(content.get("source") or path),
        None if bandwidth is None else _positive(bandwidth, "mem_bw_gbps", path) * 1e9,
        None if link is None else _positive(link, "link_bw_gbps", path) * 1e9,
        None if memory is None else _positive(memory, "memory_gb", path) * 1e9,
        peaks,
    )


def _positive(value: object, key: str, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise UserInputError(f"{key} should be a positive number and is {value!r}", path=path, key=key)
    return float(value)


def measured_directory() -> Path:
    """Where measured ceilings are kept."""
    return data_directory() / "ceilings"


def measured_ceilings() -> tuple[Ceilings, ...]:
    """Ceilings measured on this machine, by file name; a damaged file is left out."""
    directory = measured_directory()
    found = []
    for path in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        try:
            found.append(read_arch_file(path))
        except UserInputError:
            continue
    return tuple(found)
