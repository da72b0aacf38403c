"""How long the index of sources takes: first time, again, with changes, and one look-up.

Makes a tree of C++ and Python files of ordinary size, in which one of ten defines a kernel. The floor is what reading
the same files costs without looking into them, measured in the same run on one core.

    python benchmarks/sources.py                  100,000 files
    python benchmarks/sources.py --files 10000
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

from magpie_tui.sources.find import SourceFinder
from magpie_tui.sources.index import SourceIndex
from magpie_tui.sources.model import Repository

_LINE = "    const auto value_{0} = load_tile<{0}>(input + offset * {0});  // an ordinary line of code\n"


def make_tree(root: Path, files: int) -> None:
    """Write ``files`` files in directories of a hundred, 2 to 12 kB each."""
    source = random.Random(1)
    for number in range(files):
        directory = root / f"part{number // 10_000}" / f"d{number // 100}"
        if number % 100 == 0:
            directory.mkdir(parents=True, exist_ok=True)
        body = "".join(_LINE.format(source.randrange(999)) for _ in range(source.randrange(25, 140)))
        kernel = number % 10 == 0
        if number % 3:
            head = (
                f"namespace lib {{\n__global__ void device_thing_{number}(float* out) {{\n"
                if kernel
                else "void f() {\n"
            )
            (directory / f"file_{number}.cu").write_text(head + body)
        else:
            head = f"import triton\n@triton.jit\ndef triton_thing_{number}(x):\n" if kernel else "import triton\n"
            name = f"test_file_{number}.py" if number % 30 == 3 else f"file_{number}.py"
            (directory / name).write_text(head + body)


def read_all(root: Path) -> float:
    """Seconds to open and read every file once."""
    start = time.perf_counter()
    for directory, _, names in os.walk(root):
        for name in names:
            Path(directory, name).read_bytes()
    return time.perf_counter() - start


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "tree"
        root.mkdir()
        make_tree(root, options.files)
        floor = read_all(root)
        repository = Repository("tree", root)
        place = Path(scratch) / "index"
        rows: list[tuple[str, float, str]] = [("read every file, one core (floor)", floor, "")]
        with SourceIndex(repository, directory=place) as index:
            for what in ("first index", "again, nothing changed"):
                start = time.perf_counter()
                update = index.update()
                rows.append((what, time.perf_counter() - start, f"{update.files:,} files, {update.read:,} read"))
            changed = list((root / "part0" / "d1").iterdir())
            for file in changed:
                file.write_text(file.read_text() + "\n")
            start = time.perf_counter()
            update = index.update()
            rows.append(("again, 100 changed", time.perf_counter() - start, f"{update.read:,} read"))
        with SourceFinder([repository], inductor_cache=place / "none", index_directory=place) as finder:
            names = [f"void lib::device_thing_{10 * number}(float*)" for number in range(1, 200) if 10 * number % 3]
            start = time.perf_counter()
            found = sum(finder.find(name).source is not None for name in names)
            rows.append(("one look-up", (time.perf_counter() - start) / len(names), f"{found} of {len(names)} found"))
            start = time.perf_counter()
            finder.find("some_norm_kernel_that_nobody_defines")
            rows.append(("one look-up without a match", time.perf_counter() - start, ""))
    for what, seconds, note in rows:
        print(f"{what:36} {seconds:10.4f} s  {seconds / floor:8.4f} x floor  {note}")


if __name__ == "__main__":
    main()
