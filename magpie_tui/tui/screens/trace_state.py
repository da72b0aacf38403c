"""What is chosen on the screen of one trace, and the command that prints the same."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.options import OptionSpec, OptionValue, Values, command_words, parse_option
from magpie_tui.traces.roofline.folding import Fold
from magpie_tui.traces.selection import DEFAULT_CATEGORIES, DEFAULT_IGNORED, Selection
from magpie_tui.traces.stage_names import Stage
from magpie_tui.tui.screens.trace_query import GAPS_SHOWN, QueryKind, TraceQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

PANES = ("summary", "kernels", "roofline", "steps", "gaps")
SEVERAL_RANKS_PANES = (*PANES, "collectives")
VIEWS = {
    "steps": ("steps", "stages", "windows", "timeline"),
    "gaps": ("gaps", "causes", "timeline"),
    "collectives": ("totals", "ranks", "list"),
}
"""Listings of a pane, the words of the command's ``--view``; the first is shown at first."""
KINDS: dict[str, QueryKind] = {
    "summary": "kernels",
    "kernels": "kernels",
    "roofline": "roofline",
    "steps": "stages",
    "gaps": "gaps",
    "collectives": "collectives",
}
COMMANDS = {**KINDS, "summary": "summary"}
DEFAULT_TOP_K = 20

SALVAGE = OptionSpec(
    "salvage", ("--salvage",), "flag", "Use the events before a cut or damage instead of refusing the file."
)
OPTIONS = (
    OptionSpec(
        "start_pct", ("--start-pct",), "number", "Window start in percent of the span.", 0.0, minimum=0, maximum=100
    ),
    OptionSpec(
        "end_pct", ("--end-pct",), "number", "Window end in percent of the span.", 100.0, minimum=0, maximum=100
    ),
    OptionSpec("min_duration_us", ("--min-duration-us",), "number", "Leave out shorter events.", 0.0, minimum=0),
    OptionSpec(
        "categories", ("--categories",), "texts", "Keep categories with one of these words.", DEFAULT_CATEGORIES
    ),
    OptionSpec(
        "ignored", ("--ignore-categories",), "texts", "Drop categories with one of these words.", DEFAULT_IGNORED
    ),
    SALVAGE,
)
"""Options of the ranking that the form asks for."""


@dataclass(frozen=True, slots=True)
class TraceChoice:
    """What the user has chosen.

    Attributes:
        root: What was opened.
        pane: Name of the pane.
        views: Listing of each pane that has several.
        stage: None for everything.
        rank: File of one rank; None for all of them.
        exact: Variants apart, under their exact names.
        selection: Window and filters of the ranking.
        salvage: Use what stands before a cut or damage.
        fold: What shares a row of the roofline.
        arch: Ceilings of the roofline; None takes those of the device.
        logarithmic: Draw the roofline in its classical form.
    """

    root: Path
    pane: str = "summary"
    views: tuple[tuple[str, str], ...] = ()
    stage: Stage | None = None
    rank: Path | None = None
    exact: bool = False
    selection: Selection = field(default_factory=Selection)
    salvage: bool = False
    fold: Fold = Fold.short
    arch: str | None = None
    logarithmic: bool = False

    @property
    def view(self) -> str:
        """The listing that is shown; empty for a pane with one."""
        names = VIEWS.get(self.pane, ("",))
        return dict(self.views).get(self.pane, names[0])

    def with_view(self, name: str) -> TraceChoice:
        """Choose another listing of the pane."""
        return replace(self, views=tuple(sorted({**dict(self.views), self.pane: name}.items())))

    @property
    def place(self) -> Path:
        """What is read: the file of the chosen rank, or everything."""
        return self.root if self.rank is None or self.pane == "collectives" else self.rank

    @property
    def query(self) -> TraceQuery:
        """The question to which the pane is the answer."""
        kind = KINDS[self.pane]
        if kind == "roofline":
            return TraceQuery(self.place, kind, salvage=self.salvage, arch=self.arch)
        stages = () if self.stage is None else (self.stage,)
        selection = self.selection if self.pane == "kernels" else Selection()
        return TraceQuery(self.place, kind, stages, selection, self.salvage)

    @property
    def first_query(self) -> TraceQuery:
        """The question that tells what there is: everything, with its stages."""
        return TraceQuery(self.root, "kernels", (), Selection(), self.salvage)

    def option_values(self) -> Values:
        """Values of ``OPTIONS``."""
        chosen = self.selection
        return {
            "start_pct": chosen.start_pct,
            "end_pct": chosen.end_pct,
            "min_duration_us": chosen.min_duration_us,
            "categories": chosen.categories,
            "ignored": chosen.ignored,
            "salvage": self.salvage,
        }

    def with_values(self, values: Values) -> TraceChoice:
        """Take what the form says.

        Raises:
            UserInputError: The window ends before it begins.
        """
        selection = Selection(
            start_pct=_number(values.get("start_pct"), 0.0),
            end_pct=_number(values.get("end_pct"), 100.0),
            min_duration_us=_number(values.get("min_duration_us"), 0.0),
            categories=_words(values.get("categories"), DEFAULT_CATEGORIES),
            ignored=_words(values.get("ignored"), DEFAULT_IGNORED),
        )
        selection.check()
        return replace(self, selection=selection, salvage=values.get("salvage") is True)


def _number(value: OptionValue, default: float) -> float:
    return float(value) if isinstance(value, (int, float)) else default


def _words(value: OptionValue, default: tuple[str, ...]) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else default


def command_of(choice: TraceChoice, kernels: int = 0, gaps: int = 0) -> Sequence[str]:
    """Return the words after ``magpie-tui`` that print what the pane shows.

    Args:
        kernels: Rows of the ranking; the command prints 20 unless told otherwise.
        gaps: Gaps that are listed.
    """
    words = ["trace", COMMANDS[choice.pane], str(choice.place)]
    if choice.view and choice.view != VIEWS[choice.pane][0 if choice.pane != "steps" else 1]:
        words += ["--view", choice.view]
    if choice.stage is not None:
        words += ["--stage", choice.stage.value]
    if choice.pane == "kernels":
        if kernels > DEFAULT_TOP_K:
            words += ["--top-k", str(kernels)]
        if choice.exact:
            words.append("--exact")
        values = {**choice.option_values(), "salvage": False}
        words += command_words(OPTIONS, values, ())
    if choice.pane == "roofline":
        words += ["--arch", choice.arch] if choice.arch else []
        words += ["--sort", "win"]
        words += ["--fold", choice.fold.value] if choice.fold is not Fold.none else []
    if choice.pane == "gaps" and gaps > DEFAULT_TOP_K:
        words += ["--top-k", str(GAPS_SHOWN)]
    if choice.salvage:
        words.append("--salvage")
    return words


def values_of_words(words: Sequence[str]) -> Values:
    """Return the values of ``OPTIONS`` that a command line of the form gives."""
    by_flag = {flag: spec for spec in OPTIONS for flag in spec.flags}
    values: dict[str, OptionValue] = {}
    spec: OptionSpec | None = None
    for word in words:
        if word in by_flag:
            spec = by_flag[word]
            values[spec.name] = True if spec.kind == "flag" else () if spec.several else None
        elif spec is not None and spec.several:
            before = values[spec.name]
            values[spec.name] = (*(before if isinstance(before, tuple) else ()), word)
        elif spec is not None:
            values[spec.name] = parse_option(spec, word)
    return values
