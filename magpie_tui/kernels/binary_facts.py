"""Registers, spills, shared memory and occupancy of compiled kernels, read from the binary without running it.

Sources: ``cuobjdump --dump-resource-usage`` (CUDA), the notes of AMD code objects (``llvm-readelf --notes``), the JSON
files beside Triton's cached binaries, ``readelf`` and ``size`` for shared libraries of the CPU.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.text import printable
from magpie_tui.kernels.model import Fact

TOOL_TIMEOUT_S = 60.0
_FUNCTION = re.compile(r"^\s*Function (?P<name>.+?):\s*$")
_RESOURCE = re.compile(r"(?P<key>[A-Z]+(?:\[\d+\])?):(?P<value>\d+)")
_ARCH = re.compile(r"^\s*arch\s*=\s*(?P<arch>\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel of a binary; None where the source does not tell.

    Attributes:
        name: As the binary has it (mangled).
        arch: ``sm_90``, ``gfx942``, ``x86-64``.
        registers: A thread's vector registers (NVIDIA: all of them).
        accumulators: AMD's accumulation registers.
        scalars: AMD's scalar registers of a wave.
        spills: AMD: vector registers that did not fit; NVIDIA: None, see ``local_bytes``.
        local_bytes: Private memory of a thread: stack and spilled registers.
        shared_bytes: Static shared memory (LDS) of a block.
        threads: Threads of a block, or the most that the kernel allows.
        wave: Threads of a wave or warp.
        source: What was read.
    """

    name: str
    arch: str | None = None
    registers: int | None = None
    accumulators: int | None = None
    scalars: int | None = None
    spills: int | None = None
    local_bytes: int | None = None
    shared_bytes: int | None = None
    threads: int | None = None
    wave: int | None = None
    source: str = ""

    def to_json(self) -> dict[str, Fact]:
        """Return the facts as reports hold them; occupancy in waves a SIMD (AMD) or warps a scheduler (NVIDIA)."""
        limit = occupancy(self)
        return {
            "name": self.name,
            "arch": self.arch,
            "registers": self.registers,
            "accumulators": self.accumulators,
            "scalars": self.scalars,
            "spills": self.spills,
            "local_bytes": self.local_bytes,
            "shared_bytes": self.shared_bytes,
            "threads": self.threads,
            "occupancy": None if limit is None else limit.waves,
            "most_occupancy": None if limit is None else limit.most,
            "occupancy_limited_by": None if limit is None else limit.limited_by,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Waves that fit on one SIMD (AMD) or scheduler (NVIDIA) by the resources of a kernel."""

    waves: int
    most: int
    limited_by: str


def cuda_resources(text: str, source: str = "cuobjdump --dump-resource-usage") -> list[KernelFacts]:
    """Read what ``cuobjdump --dump-resource-usage`` prints.

    Form: ``Function NAME:`` and, on the next line, ``REG:16 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:384 TEXTURE:0 …``.
    """
    arch = None
    found: list[KernelFacts] = []
    name: str | None = None
    for line in text.splitlines():
        told = _ARCH.match(line)
        if told is not None:
            arch = told["arch"]
        match = _FUNCTION.match(line)
        if match is not None:
            name = match["name"]
            continue
        values = {item["key"]: int(item["value"]) for item in _RESOURCE.finditer(line)}
        if name is not None and "REG" in values:
            found.append(
                KernelFacts(
                    name,
                    arch=arch,
                    registers=values["REG"],
                    local_bytes=values.get("STACK", 0) + values.get("LOCAL", 0),
                    shared_bytes=values.get("SHARED"),
                    wave=32,
                    source=source,
                )
            )
            name = None
    return found


def amd_notes(text: str, source: str = "llvm-readelf --notes") -> list[KernelFacts]:
    """Read the metadata note of an AMD code object, which ``llvm-readelf --notes`` prints as YAML.

    Keys as in LLVM's "User Guide for AMDGPU Backend", code object V3 and later.
    """
    import yaml

    start = text.find("---")
    end = text.find("\n...", start)
    if start < 0:
        return []
    try:
        value = yaml.safe_load(text[start : end if end > 0 else None])
    except yaml.YAMLError:
        return []
    if not isinstance(value, dict):
        return []
    target = value.get("amdhsa.target")
    arch = str(target).rpartition("--")[2].split(":")[0] if target else None
    kernels = value.get("amdhsa.kernels")
    found = []
    for item in kernels if isinstance(kernels, list) else []:
        if isinstance(item, dict) and item.get(".name"):
            found.append(_amd_kernel(item, arch, source))
    return found


def _amd_kernel(item: Mapping[str, object], arch: str | None, source: str) -> KernelFacts:
    def whole(key: str) -> int | None:
        value = item.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return KernelFacts(
        str(item[".name"]),
        arch=arch,
        registers=whole(".vgpr_count"),
        accumulators=whole(".agpr_count"),
        scalars=whole(".sgpr_count"),
        spills=whole(".vgpr_spill_count"),
        local_bytes=whole(".private_segment_fixed_size"),
        shared_bytes=whole(".group_segment_fixed_size"),
        threads=whole(".max_flat_workgroup_size"),
        wave=whole(".wavefront_size"),
        source=source,
    )


def triton_metadata(text: str, source: str = "Triton metadata") -> KernelFacts | None:
    """Read the JSON file beside a binary in Triton's cache: warps, shared memory, target; registers where told."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    raw = value.get("target")
    target: Mapping[str, object] = raw if isinstance(raw, dict) else {}
    arch = target.get("arch", value.get("arch"))
    backend = target.get("backend")
    wave = target.get("warp_size", value.get("warp_size"))
    warps = value.get("num_warps")

    def whole(*keys: str) -> int | None:
        values = (value.get(key) for key in keys)
        return next((item for item in values if isinstance(item, int) and not isinstance(item, bool)), None)

    lanes = wave if isinstance(wave, int) else None
    return KernelFacts(
        value["name"],
        arch=f"sm_{arch}" if backend == "cuda" else None if arch is None else str(arch),
        registers=whole("n_regs", "num_regs"),
        spills=whole("n_spills"),
        shared_bytes=whole("shared"),
        threads=warps * lanes if isinstance(warps, int) and lanes is not None else None,
        wave=lanes,
        source=source,
    )


def library_facts(size_output: str, header: str, name: str) -> KernelFacts | None:
    """Read ``readelf -h`` and ``size`` of a shared library: the machine, and its text in bytes as ``local_bytes``."""
    machine = re.search(r"^\s*Machine:\s*(?P<machine>.+?)\s*$", header, re.MULTILINE)
    if machine is None:
        return None
    arch = {"Advanced Micro Devices X86-64": "x86-64", "AArch64": "aarch64"}.get(machine["machine"], machine["machine"])
    return KernelFacts(name, arch=arch, source=f"readelf; {_sizes(size_output)}")


def _sizes(text: str) -> str:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not lines[1][0].isdigit():
        return "size unknown"
    return f"{int(lines[1][0]):,} bytes of code"


_AMD_REGISTERS = {
    **dict.fromkeys(("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"), (512, 8, 8)),
    **dict.fromkeys(("gfx906", "gfx908"), (256, 4, 10)),
}
"""Architecture to vector registers of a lane of a SIMD, allocation granule, most waves (LLVM AMDGPU usage guide).

A kernel's count holds its accumulation registers where both share one file (gfx90a and later).
"""


def occupancy(facts: KernelFacts) -> Occupancy | None:
    """Return the waves that fit by registers, and for one block also by shared memory; None for unknown devices.

    NVIDIA (CUDA programming guide, compute capabilities 7 to 10): 64 Ki registers a multiprocessor with four
    schedulers, allocated to a warp in units of 256; 16 warps a scheduler (12 on 8.6, 8.9, 12.x).
    """
    if facts.registers is None or facts.arch is None:
        return None
    if facts.arch.startswith("sm_"):
        return _nvidia(facts)
    table = _AMD_REGISTERS.get(facts.arch)
    if table is None:
        return None
    total, granule, most = table
    taken = max(granule, -(-facts.registers // granule) * granule)
    by_registers = min(most, total // taken)
    return Occupancy(by_registers, most, "registers" if by_registers < most else "nothing")


def _nvidia(facts: KernelFacts) -> Occupancy | None:
    digits = re.match(r"sm_(\d+)", facts.arch or "")
    if digits is None or facts.registers is None or int(digits[1]) < 70:
        return None
    most = 12 if int(digits[1]) in (86, 87, 89) or int(digits[1]) >= 120 else 16
    a_warp = -(-max(1, facts.registers) * 32 // 256) * 256
    by_registers = min(most, 65536 // 4 // a_warp)
    return Occupancy(by_registers, most, "registers" if by_registers < most else "nothing")


def output_of(command: list[str]) -> str | None:
    """Return what a tool prints; None when it is not there, fails or takes too long."""
    from magpie_tui.machine.toolchain import locate

    tool = locate(command[0])
    if tool.path is None:
        return None
    try:
        done = subprocess.run(
            [str(tool.path), *command[1:]], capture_output=True, timeout=TOOL_TIMEOUT_S, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def elf_machine(path: Path) -> int | None:
    """Return the number of the machine that an ELF file is for (190 CUDA, 224 AMD, 62 x86-64); None for other files."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return None
    return int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else None


def read_binary(path: Path) -> tuple[list[KernelFacts], str | None]:
    """Return the kernels of a CUDA binary, an AMD code object or a shared library, and why there are none."""
    if not path.is_file():
        return [], f"{printable(path.name)} is not there"
    machine = elf_machine(path)
    if machine == 224:
        tools = ("llvm-readelf", "/opt/rocm/llvm/bin/llvm-readelf")
        text = next((found for tool in tools if (found := output_of([tool, "--notes", str(path)])) is not None), None)
        return (amd_notes(text), None) if text is not None else ([], "llvm-readelf is not installed or failed")
    if machine in (190, None):
        text = output_of(["cuobjdump", "--dump-resource-usage", str(path)])
        return (cuda_resources(text), None) if text is not None else ([], "cuobjdump is not installed or failed")
    device = cuda_resources(output_of(["cuobjdump", "--dump-resource-usage", str(path)]) or "")
    if device:
        return device, None
    header, sizes = output_of(["readelf", "-h", str(path)]), output_of(["size", str(path)])
    library = library_facts(sizes or "", header or "", path.name)
    return ([library], None) if library is not None else ([], "readelf is not installed or failed")


def read_triton_cache(directory: Path, names: frozenset[str] | None = None) -> list[KernelFacts]:
    """Return the kernels that Triton left in a cache directory, by name; registers from the binaries beside."""
    found: dict[str, KernelFacts] = {}
    for path in sorted(directory.rglob("*.json")):
        if path.name.startswith("__grp__"):
            continue
        try:
            facts = triton_metadata(path.read_text(errors="replace"))
        except OSError:
            continue
        if facts is None or (names is not None and facts.name not in names):
            continue
        found[facts.name] = _with_binary(facts, path)
    return list(found.values())


def _with_binary(facts: KernelFacts, metadata: Path) -> KernelFacts:
    for suffix in (".cubin", ".hsaco"):
        binary = metadata.with_suffix(suffix)
        if not binary.is_file():
            continue
        for own in read_binary(binary)[0]:
            if own.name == facts.name:
                return replace(own, threads=facts.threads, shared_bytes=facts.shared_bytes or own.shared_bytes)
    return facts


def of_driver(name: str, facts: Mapping[str, Fact], arch: str | None) -> KernelFacts:
    """Return what the driver said of a loaded function (``RawBinary.facts``)."""

    def whole(key: str) -> int | None:
        value = facts.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return KernelFacts(
        name,
        arch=arch,
        registers=whole("registers"),
        local_bytes=whole("local_bytes"),
        shared_bytes=whole("shared_bytes"),
        threads=whole("threads") or whole("most_threads"),
        source="driver",
    )
