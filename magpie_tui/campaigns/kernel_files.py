"""From a chosen kernel to its files: analyze and compare configs, and a copy of the source as the first candidate."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.errors import AnswerIsNoError, MachineError, UserInputError
from magpie_tui.basics.files import create_directory, write_bytes, write_text
from magpie_tui.campaigns.choosing import Chosen
from magpie_tui.configs.gaps import gap
from magpie_tui.kernels.trace_shapes import MOST_SHAPES, TracedShape, shape_of_row, shapes_in_trace
from magpie_tui.sources.model import TestMatch

FIRST_LABEL = "a"
_LONGEST_SLUG = 40
_GENERATED = frozenset({"aiter", "ck", "ck_tile", "hip"})
_MARK = "# TODO by a person:"


@dataclass(frozen=True, slots=True)
class KernelFiles:
    """What was written.

    Attributes:
        source: The original, which is never changed.
        copy: The candidate's copy of it.
        gaps: What a person has to fill in, one line each.
        notes: What could not be taken from the trace, and why.
    """

    directory: Path
    analyze: Path
    compare: Path
    candidate: Path
    source: Path
    copy: Path
    gaps: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Field:
    """One line of an entry; a gap is a value that a person replaces."""

    key: str
    value: object
    is_gap: bool = False
    comment: str | None = None


def kernel_slug(symbol: str) -> str:
    """Return a directory's name for a kernel."""
    return re.sub(r"[^A-Za-z0-9]+", "_", symbol).strip("_").lower()[:_LONGEST_SLUG] or "kernel"


def write_kernel_files(chosen: Chosen, directory: Path, *, force: bool = False) -> KernelFiles:
    """Write the files of a kernel below ``directory/<kernel>/``.

    Raises:
        AnswerIsNoError: Its source was not found.
        UserInputError: Files are there already, or the source cannot be read.
        MachineError: The directory cannot be written.
    """
    report = chosen.choice.source
    if report.source is None or report.source.file is None:
        raise AnswerIsNoError(
            f"the source of this kernel was not found: {report.reason or chosen.against}",
            hint="give checkouts with --repos, or the interpreter of the serving environment with --python",
        )
    source = report.source.file
    files = _places(directory / kernel_slug(report.facts.symbol), source)
    there = [path for path in (files.analyze, files.compare, files.candidate, files.copy) if path.exists()]
    if there and not force:
        raise UserInputError("this is there already", path=there[0], hint="--force replaces it, the candidate included")
    try:
        data = source.read_bytes()
    except OSError as error:
        raise UserInputError(f"the source cannot be read: {error.strerror or error}", path=source) from None
    shapes, notes = _shapes(chosen)
    writer = _Writer(chosen, source, data.decode("utf-8", "replace"), shapes)
    create_directory(files.copy.parent)
    write_bytes(files.copy, data)
    baseline, candidate = writer.entry("baseline", source), writer.entry(f"candidate_{FIRST_LABEL}", files.copy)
    write_text(files.analyze, writer.text([baseline], f"magpie-tui analyze -k {files.analyze}"))
    write_text(files.candidate, writer.text([candidate], f"magpie-tui analyze -k {files.candidate}"))
    write_text(files.compare, writer.text([baseline, candidate], f"magpie-tui compare -k {files.compare} --baseline 0"))
    gaps = [
        f"{entry[0].value}: {field.key}: {field.value}"
        for entry in (baseline, candidate)
        for field in entry
        if field.is_gap
    ]
    return replace(files, gaps=tuple(gaps), notes=tuple(notes))


def _places(place: Path, source: Path) -> KernelFiles:
    """Return where everything goes, with nothing said yet."""
    return KernelFiles(
        place,
        place / "analyze.yaml",
        place / "compare.yaml",
        place / f"candidate_{FIRST_LABEL}.yaml",
        source,
        place / f"candidate_{FIRST_LABEL}" / source.name,
        (),
        (),
    )


def _shapes(chosen: Chosen) -> tuple[tuple[TracedShape, ...], list[str]]:
    """Return the shapes with the most time of the chosen kernel, and why there are none."""
    try:
        found = shapes_in_trace(chosen.trace, chosen.choice.evidence.name)
    except (UserInputError, MachineError) as error:
        item = chosen.choice.evidence
        row = shape_of_row(item.input_dims, item.input_types, item.calls, 1000 * item.time_ms)
        if row is None:
            return (), [f"shapes: {error.message}"]
        return (row,), [f"shapes: the arguments of {item.op}, which launches the kernel most; {error.message}"]
    taken = found.shapes[:MOST_SHAPES]
    share = 100 * sum(item.total_us for item in taken) / found.total_us if found.total_us else 0.0
    return taken, [f"shapes: {len(taken)} of {len(found.shapes)}, {share:.0f} % of the kernel's time in the trace"]


class _Writer:
    """Knows what is known of the kernel, and writes entries from it."""

    def __init__(self, chosen: Chosen, source: Path, text: str, shapes: tuple[TracedShape, ...]) -> None:
        self.chosen = chosen
        self.source = source
        self.text_of_source = text
        self.shapes = shapes
        self.test: TestMatch | None = chosen.choice.source.test
        self.symbol = chosen.choice.source.facts.symbol
        self.type = _type(chosen, source, text)
        self.is_python = self.type in ("triton", "pytorch")

    def entry(self, name: str, path: Path) -> list[_Field]:
        """Return the fields of one kernel."""
        own = path == self.source
        comment = None if own else f"a copy of {self.source}: change this one, the original stays as it is"
        fields = [
            _Field("id", name),
            _Field("type", self.type),
            _Field("source_files", [str(path)], comment=comment),
        ]
        fields += self._python() if self.is_python else self._compiled()
        fields += self._testcase(own=own)
        return fields

    def _python(self) -> Iterator[_Field]:
        if self.test is not None and Path(self.test.command[0]).is_absolute():
            yield _Field("python", self.test.command[0])
        launchers = _launchers(self.text_of_source, self.symbol)
        if len(launchers) == 1:
            yield _Field("kernel_name", launchers[0], comment=f"the only function of this file that uses {self.symbol}")
        else:
            among = f" (among {', '.join(launchers[:6])})" if launchers else ""
            yield _Field("kernel_name", gap(f"the function of this file that launches {self.symbol}{among}"), True)
        test = self.test
        if test is not None and test.baseline is not None and test.baseline_kind == "eager_fn":
            yield _Field("reference", f"{test.file}:{test.baseline}", comment="as the found test computes it")
        else:
            what = "file.py:function that computes the same with plain PyTorch, on the same arguments"
            yield _Field("reference", gap(what), True)
        if self.shapes:
            yield _Field("shapes", [_shape(item, self.shapes) for item in self.shapes], comment=self._shape_comment())
        else:
            yield _Field("shapes", gap("the shapes that matter, as {tensors: [[32, 4096]], dtypes: [bfloat16]}"), True)

    def _compiled(self) -> Iterator[_Field]:
        what = "the command that builds what the test below loads, from the source named above"
        yield _Field("compile_command", gap(what), True)

    def _testcase(self, *, own: bool) -> Iterator[_Field]:
        test = self.test
        if test is None:
            if not self.is_python:
                yield _Field(
                    "testcase_command", gap("the command of a test that fails when this kernel is wrong"), True
                )
        elif own:
            yield _Field("testcase_command", list(test.command), comment=f"found: {test.reason}")
        elif not self.is_python:
            what = f"the test of the baseline, {test.file.name}, made to load what this entry builds"
            yield _Field("testcase_command", gap(what), True)

    def _shape_comment(self) -> str:
        return f"from {self.chosen.trace}, weighted by device time"

    def text(self, entries: Sequence[Sequence[_Field]], command: str) -> str:
        """Return the text of a config with these entries."""
        lines = [*self._head(), f"#   {command}", "kernel:" if len(entries) == 1 else "kernels:"]
        for fields in entries:
            first = True
            for field in fields:
                lead = "  " if len(entries) == 1 else ("  - " if first else "    ")
                pad = "  " if len(entries) == 1 else "    "
                lines += _lines(field, lead, pad)
                first = False
        return "\n".join(lines) + "\n"

    def _head(self) -> Iterator[str]:
        item = self.chosen.choice.evidence
        yield f"# {_one_line(item.name)}"
        share = f"{item.share_of_stage_pct:.1f} % of the device time of stage {self.chosen.stage}"
        yield f"# {share}, {item.calls} calls of {item.mean_us:.1f} us, launched by {_one_line(item.op)}"
        if item.percent_of_ceiling is not None:
            yield f"# {item.bound}-bound, at {item.percent_of_ceiling:.1f} % of {item.ceiling}"
        if not self.is_python:
            for shape in self.shapes:
                told = ", ".join(
                    f"{'x'.join(map(str, extents))} {dtype}".strip()
                    for extents, dtype in zip(shape.tensors, shape.dtypes, strict=True)
                )
                yield f"# shape in the trace: {told} ({shape.calls} calls, {shape.total_us:.1f} us)"
        if self.chosen.against:
            yield f"# Against working on it: {_one_line(self.chosen.against)}"


def _lines(field: _Field, lead: str, pad: str) -> Iterator[str]:
    if field.is_gap:
        yield f"{pad}{_MARK} {str(field.value).removeprefix('<fill in: ').removesuffix('>')}"
    if field.comment is not None:
        yield f"{pad}# {_one_line(field.comment)}"
    if field.key == "shapes" and isinstance(field.value, list):
        yield f"{lead}shapes:"
        for item in field.value:
            yield f"{pad}  - {json.dumps(item)}"
        return
    yield f"{lead}{field.key}: {json.dumps(field.value, ensure_ascii=False)}"


def _shape(item: TracedShape, shapes: Sequence[TracedShape]) -> dict[str, object]:
    total = sum(one.total_us for one in shapes) or 1.0
    value: dict[str, object] = {"tensors": [list(extents) for extents in item.tensors]}
    if all(item.dtypes):
        value["dtypes"] = list(item.dtypes)
    return {**value, "weight": round(item.total_us / total, 6)}


def _type(chosen: Chosen, source: Path, text: str) -> str:
    if source.suffix == ".py":
        return "triton" if re.search(r"\btriton\b", text) else "pytorch"
    if source.suffix == ".hip" or chosen.choice.source.facts.family in _GENERATED:
        return "hip"
    return "hip" if re.search(r"\bMI\d", chosen.device or "") else "cuda"


def _launchers(text: str, symbol: str) -> list[str]:
    """Return the top-level functions of a Python source that use a kernel and are no kernels themselves."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name != symbol]
    return [
        node.name
        for node in functions
        if not any("jit" in ast.dump(item) for item in node.decorator_list)
        and any(isinstance(part, ast.Name) and part.id == symbol for part in ast.walk(node))
    ]


def _one_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
