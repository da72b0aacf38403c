"""Compile device code and launch it: NVRTC with the CUDA driver, hipRTC with the HIP runtime, through ctypes.

The two vendors' interfaces mirror each other, so one class serves both; a ``Vendor`` holds the names that differ.
Nothing has to be installed for it beyond what PyTorch for that device brings along.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import os
from typing import Any

REGISTERS, SHARED, LOCAL, MOST_THREADS = 4, 1, 3, 0
"""Numbers of function attributes, equal in both interfaces."""
_MOST_DYNAMIC_SHARED = 8


class DeviceCodeError(Exception):
    """A library is missing, or a call of it failed."""


class Vendor:
    """Names of one vendor's functions and libraries."""

    def __init__(self, kind: str) -> None:
        cuda = kind == "cuda"
        self.kind = kind
        self.rtc = "nvrtc" if cuda else "hiprtc"
        self.code = "CUBIN" if cuda else "Code"
        self.compiler_library = "libnvrtc.so" if cuda else "libhiprtc.so"
        self.driver_library = "libcuda.so.1" if cuda else "libamdhip64.so"
        self.load = "cuModuleLoadData" if cuda else "hipModuleLoadData"
        self.get_function = "cuModuleGetFunction" if cuda else "hipModuleGetFunction"
        self.launch = "cuLaunchKernel" if cuda else "hipModuleLaunchKernel"
        self.attribute = "cuFuncGetAttribute" if cuda else "hipFuncGetAttribute"
        self.set_attribute = "cuFuncSetAttribute" if cuda else "hipFuncSetAttribute"
        self.occupancy = (
            "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            if cuda
            else "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
        )


def _installed(vendor: Vendor) -> list[str]:
    """Return paths where the run-time compiler may lie, best first: Python packages, then the vendor's directories."""
    import importlib.util

    name, found = vendor.compiler_library, []
    for package, patterns in (("nvidia", ("*/lib",)), ("torch", ("lib",)), ("_rocm_sdk_core", ("lib",))):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            for pattern in patterns:
                found += sorted(glob.glob(os.path.join(place, pattern, f"{name}*")), reverse=True)  # noqa: PTH118, PTH207
    root = os.environ.get("CUDA_HOME") if vendor.kind == "cuda" else os.environ.get("ROCM_PATH")
    usual = ("/usr/local/cuda", "/usr/local/cuda-*") if vendor.kind == "cuda" else ("/opt/rocm", "/opt/rocm-*")
    for base in (root, *usual):
        for part in ("lib64", "lib", "targets/x86_64-linux/lib"):
            if base:
                found += sorted(glob.glob(os.path.join(base, part, f"{name}*")), reverse=True)  # noqa: PTH118, PTH207
    known = ctypes.util.find_library("nvrtc" if vendor.kind == "cuda" else "hiprtc")
    return [path for path in [*found, *([known] if known else [])] if ".alt." not in path and "builtins" not in path]


def _loaded(name: str) -> str | None:
    """Return the path of a library that this process has loaded already (PyTorch's own comes first)."""
    try:
        with open("/proc/self/maps") as maps:  # noqa: PTH123
            for line in maps:
                path = line.rstrip().rpartition(" ")[2]
                if os.path.basename(path).startswith(name) and "builtins" not in path:  # noqa: PTH119
                    return path
    except OSError:
        pass
    return None


def load_compiler(kind: str) -> tuple[Any, str]:
    """Return the run-time compiler's library and its path.

    Raises:
        DeviceCodeError: There is none.
    """
    vendor = Vendor(kind)
    own = _loaded(vendor.compiler_library)
    tried = [own] if own else _installed(vendor)
    for path in tried:
        try:
            return ctypes.CDLL(path), path
        except OSError:
            continue
    name = "NVRTC" if kind == "cuda" else "hipRTC"
    raise DeviceCodeError(f"{name} ({vendor.compiler_library}) is not installed for this interpreter")


def has_compiler(kind: str) -> bool:
    """Say whether the run-time compiler is there."""
    try:
        load_compiler(kind)
    except DeviceCodeError:
        return False
    return True


def include_directories(kind: str) -> list[str]:
    """Return the directories of the vendor's headers (``cuda_fp16.h``, ``hip/hip_runtime.h``) that are there."""
    import importlib.util

    places = []
    spec = importlib.util.find_spec("nvidia") if kind == "cuda" else None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for pattern in ("cu1*/include", "cuda_runtime/include", "cuda_cccl/include"):
            places += sorted(glob.glob(os.path.join(place, pattern)), reverse=True)  # noqa: PTH118, PTH207
    roots = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"] if kind == "cuda" else [os.environ.get("ROCM_PATH")]
    roots += [] if kind == "cuda" else ["/opt/rocm"]
    places += [os.path.join(root, "include") for root in roots if root]  # noqa: PTH118
    header = "cuda_fp16.h" if kind == "cuda" else "hip"
    found = [place for place in places if os.path.exists(os.path.join(place, header))]  # noqa: PTH110, PTH118
    # One toolkit's headers only: two versions of them side by side do not compile.
    return found[:1] if kind == "cuda" else list(dict.fromkeys(found))


class Compiled:
    """What the compiler made.

    Attributes:
        code: The binary; None when it did not compile.
        log: Everything the compiler said.
        lowered: The function's name in the binary.
    """

    def __init__(self, code: bytes | None, log: str, lowered: str | None) -> None:
        self.code = code
        self.log = log
        self.lowered = lowered


def compile_source(kind: str, text: bytes, file_name: str, function: str, options: list[str]) -> Compiled:
    """Compile device code for one function, a template instance such as ``add<4>`` included.

    Raises:
        DeviceCodeError: The compiler is not there, or refuses for another reason than the source.
    """
    library, _path = load_compiler(kind)
    rtc, vendor = Vendor(kind).rtc, Vendor(kind)
    program = ctypes.c_void_p()
    _check(
        library,
        vendor,
        getattr(library, f"{rtc}CreateProgram")(ctypes.byref(program), text, file_name.encode(), 0, None, None),
    )
    try:
        _check(library, vendor, getattr(library, f"{rtc}AddNameExpression")(program, function.encode()))
        encoded = [option.encode() for option in options]
        values = (ctypes.c_char_p * len(encoded))(*encoded)
        status = getattr(library, f"{rtc}CompileProgram")(program, len(encoded), values)
        log = _text_of(library, program, f"{rtc}GetProgramLog")
        if status:
            return Compiled(None, log or _error_text(library, vendor, status), None)
        lowered = ctypes.c_char_p()
        _check(
            library,
            vendor,
            getattr(library, f"{rtc}GetLoweredName")(program, function.encode(), ctypes.byref(lowered)),
        )
        name = (lowered.value or b"").decode()
        return Compiled(_bytes_of(library, program, f"{rtc}Get{vendor.code}"), log, name)
    finally:
        getattr(library, f"{rtc}DestroyProgram")(ctypes.byref(program))


def _bytes_of(library: Any, program: Any, getter: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"{getter}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, getter)(program, buffer)
    return buffer.raw[: size.value]


def _text_of(library: Any, program: Any, getter: str) -> str:
    return _bytes_of(library, program, getter).rstrip(b"\0").decode(errors="replace").strip()


def _error_text(library: Any, vendor: Vendor, status: int) -> str:
    describe = getattr(library, f"{vendor.rtc}GetErrorString")
    describe.restype = ctypes.c_char_p
    return (describe(status) or b"").decode(errors="replace") or f"status {status}"


def _check(library: Any, vendor: Vendor, status: int) -> None:
    if status:
        raise DeviceCodeError(f"{vendor.rtc}: {_error_text(library, vendor, status)}")


class DeviceFunction:
    """A function of a loaded binary; PyTorch's device context must be current.

    Raises:
        DeviceCodeError: The binary does not load on this device, or has no such function.
    """

    def __init__(self, kind: str, code: bytes, name: str) -> None:
        self._vendor = Vendor(kind)
        library = self._vendor.driver_library
        self._driver = ctypes.CDLL(_loaded(library.removesuffix(".1")) or library)
        self._launch = getattr(self._driver, self._vendor.launch)
        self._code = ctypes.create_string_buffer(code, len(code) + 1)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._require(getattr(self._driver, self._vendor.load)(ctypes.byref(module), self._code), "load the binary")
        found = getattr(self._driver, self._vendor.get_function)(ctypes.byref(function), module, name.encode())
        self._require(found, f"find {name} in the binary")
        self._function = function
        self._reserved = 48 * 1024  # what every launch may use without asking

    def reserve(self, shared_bytes: int) -> None:
        """Allow launches with this much dynamic shared memory."""
        if shared_bytes > self._reserved:
            set_attribute = getattr(self._driver, self._vendor.set_attribute)
            status = set_attribute(self._function, _MOST_DYNAMIC_SHARED, shared_bytes)
            self._require(status, f"reserve {shared_bytes} bytes of shared memory")
            self._reserved = shared_bytes

    def _require(self, status: int, what: str) -> None:
        if status:
            raise DeviceCodeError(f"the {self._vendor.kind} driver could not {what}: {self._text(status)}")

    def _text(self, status: int) -> str:
        if self._vendor.kind == "cuda":
            name, text = ctypes.c_char_p(), ctypes.c_char_p()
            self._driver.cuGetErrorName(status, ctypes.byref(name))
            self._driver.cuGetErrorString(status, ctypes.byref(text))
            return f"{(name.value or b'?').decode()}: {(text.value or b'').decode()}"
        self._driver.hipGetErrorString.restype = ctypes.c_char_p
        return str((self._driver.hipGetErrorString(status) or b"?").decode())

    def launch(self, grid: list[int], block: list[int], shared_bytes: int, stream: int, values: list[Any]) -> None:
        """Queue one launch with ``values`` (ctypes objects) as its arguments.

        Raises:
            DeviceCodeError: The launch is refused (too many threads, too much shared memory).
        """
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        status = self._launch(
            self._function, *grid, *block, shared_bytes, ctypes.c_void_p(stream), ctypes.byref(pointers), None
        )
        self._require(status, f"launch a grid of {grid} blocks of {block} threads")

    def facts(self, threads: int, shared_bytes: int) -> dict[str, int | None]:
        """Return what the driver says: registers, local (spill) and shared bytes, blocks that fit on a processor."""
        blocks = ctypes.c_int()
        occupancy = getattr(self._driver, self._vendor.occupancy)
        status = occupancy(ctypes.byref(blocks), self._function, threads, ctypes.c_size_t(shared_bytes))
        return {
            "registers": self._attribute(REGISTERS),
            "local_bytes": self._attribute(LOCAL),
            "shared_bytes": self._attribute(SHARED),
            "most_threads": self._attribute(MOST_THREADS),
            "blocks_per_processor": None if status else blocks.value,
        }

    def _attribute(self, number: int) -> int | None:
        value = ctypes.c_int()
        status = getattr(self._driver, self._vendor.attribute)(ctypes.byref(value), number, self._function)
        return None if status else value.value
