"""What the panes of a config show; each call blocks and is made in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.content import Content

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.text import plural, printable
from magpie_tui.configs.check import FileCheck, check_file
from magpie_tui.configs.effective import EffectiveConfig, effective_config
from magpie_tui.configs.positions import Problem, Setting
from magpie_tui.configs.review import Review
from magpie_tui.configs.twin import Twins, make_twins
from magpie_tui.tui.screens.config_yaml import YamlColours
from magpie_tui.tui.screens.configs_find import look_at

MOST_BYTES = 2_000_000
MOST_CHARACTERS = 1_000

STYLES = {"key": "$primary", "comment": "$quiet", "mark": "$accent", "text": ""}
MARKS = {"error": ("!", "$error bold"), "warning": ("?", "$warning bold")}


@dataclass(frozen=True, slots=True)
class ConfigText:
    """The text of a file with what is wrong with it, and how the file lay on the disk (None: as nothing)."""

    text: str
    check: FileCheck
    stamp: tuple[int, int, int] | None = None


def read_config(path: Path) -> ConfigText:
    """Read and check a file.

    Raises:
        MachineError: It cannot be read.
    """
    found = look_at(path)
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise MachineError(f"the config cannot be read: {error.strerror}", path=path) from error
    text = data[:MOST_BYTES].decode("utf-8-sig", "replace")
    if len(data) > MOST_BYTES:
        text += f"\n... more than {MOST_BYTES:,} bytes, the rest is not shown"
    return ConfigText(text, check_file(path), None if found is None else found.stamp)


def config_lines(text: str, problems: Sequence[Problem] = (), *, current: int | None = None) -> list[Content]:
    """Return the lines of a config with numbers, colours, and a mark at each line with a problem.

    Args:
        current: Number of the line that stands out.
    """
    at = problems_by_line(problems)
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    digits = max(3, len(str(len(lines))))
    colours = YamlColours()
    built = []
    for number, line in enumerate(lines, 1):
        here = at.get(number, ())
        mark, style = MARKS["error" if any(item.severity == "error" for item in here) else "warning"]
        gutter = (f"{mark} ", style) if here else "  "
        body = _coloured(line, colours, here)
        built.append(Content.assemble((f"{number:>{digits}} ", "$quiet"), gutter, body))
        if number == current:
            built[-1] = built[-1].stylize_before("$block-cursor-foreground on $block-cursor-background")
    return built


def problems_by_line(problems: Sequence[Problem]) -> dict[int, tuple[Problem, ...]]:
    """Group problems by their line."""
    found: dict[int, tuple[Problem, ...]] = {}
    for problem in problems:
        found[problem.line] = (*found.get(problem.line, ()), problem)
    return found


def _coloured(line: str, colours: YamlColours, problems: Sequence[Problem]) -> Content:
    spans = colours.spans(line[:MOST_CHARACTERS])
    shown = line[:MOST_CHARACTERS]
    parts: list[str | tuple[str, str]] = []
    position = 0
    for span in spans:
        parts.append(_harmless(shown[position : span.start]))
        parts.append((_harmless(shown[span.start : span.end]), STYLES[span.part]))
        position = span.end
    parts.append(_harmless(shown[position:]))
    if len(line) > MOST_CHARACTERS:
        parts.append((f" ... {len(line) - MOST_CHARACTERS:,} more characters", "$quiet"))
    content = Content.assemble(*parts)
    for problem in problems:
        start = len(_harmless(line[: problem.column - 1]))
        end = start + max(1, len(_harmless(_word_at(line, problem.column - 1))))
        if start < len(content.plain):
            tone = "$error" if problem.severity == "error" else "$warning"
            content = content.stylize(f"{tone} underline", start, end)
    return content


def _harmless(text: str) -> str:
    return printable(text.expandtabs(4))


def _word_at(line: str, column: int) -> str:
    """The word that starts at a column: up to a colon, a comma or a blank."""
    end = column
    while end < len(line) and line[end] not in " \t:,]}#":
        end += 1
    return line[column:end]


def problem_text(problem: Problem) -> str:
    """One line about a problem without its place."""
    return problem.text.removeprefix(f"{printable(problem.place)}: {problem.severity}: ")


@dataclass(frozen=True, slots=True)
class TwinView:
    """The twins of a config and whether writing them would change anything.

    Attributes:
        states: ``new``, ``there, the same`` or ``there, with another content``; clean first.
    """

    twins: Twins
    states: tuple[str, str]

    @property
    def in_the_way(self) -> tuple[Path, ...]:
        """Files that are there with another content."""
        paths = (self.twins.clean_path, self.twins.profiled_path)
        return tuple(path for path, state in zip(paths, self.states, strict=True) if "another" in state)


def read_twins(path: Path, directory: Path | None) -> TwinView:
    """Make the twins and look what lies at their places; nothing is written.

    Raises:
        UserInputError: The config has no twins.
    """
    twins = make_twins(path, directory=directory)
    pairs = ((twins.clean_path, twins.clean_text), (twins.profiled_path, twins.profiled_text))
    first, second = (_twin_state(place, text) for place, text in pairs)
    return TwinView(twins, (first, second))


def _twin_state(path: Path, text: str) -> str:
    try:
        there = path.read_bytes()
    except FileNotFoundError:
        return "new"
    except OSError as error:
        return f"there, with another content ({error.strerror})"
    return "there, the same" if there == text.encode("utf-8", "surrogateescape") else "there, with another content"


def twin_lines(view: TwinView) -> list[Content | str]:
    """Return the proof, then both files; lines in which they differ are marked."""
    from magpie_tui.configs.display import value_text

    twins = view.twins
    changed = sum("same" not in state for state in view.states)
    lines: list[Content | str] = [
        Content.assemble(("clean     ", "$quiet"), printable(twins.clean_path), (f"  {view.states[0]}", "$quiet")),
        Content.assemble(("profiled  ", "$quiet"), printable(twins.profiled_path), (f"  {view.states[1]}", "$quiet")),
        "",
        Content.assemble(
            ("proof     ", "$quiet"),
            ("ok", "$success"),
            f"  both load; {plural(len(twins.changes), 'key')} of profiler differ, nothing else does",
        ),
    ]
    if not twins.keeps_comments:
        note = "written anew: comments and anchors of the original are not in them"
        lines.append(Content.assemble((f"          {note}", "$warning")))
    width = max((len(change.key) for change in twins.changes), default=0)
    for change in twins.changes:
        first, second = printable(value_text(change.first)), printable(value_text(change.second))
        lines.append(
            Content.assemble(f"          {printable(change.key):<{width}}  ", first, (" -> ", "$quiet"), second)
        )
    lines += ["", "W writes both files" if changed else "both files are there already"]
    for title, text, other in (
        ("clean", twins.clean_text, twins.profiled_text),
        ("profiled", twins.profiled_text, twins.clean_text),
    ):
        lines += ["", Content.assemble((f"{title} config", "bold")), *_compared(text, other)]
    return lines


def _compared(text: str, other: str) -> list[Content]:
    import difflib

    first, second = text.rstrip("\n").split("\n"), other.rstrip("\n").split("\n")
    own = set(range(len(first)))
    for block in difflib.SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        own -= set(range(block.a, block.a + block.size))
    colours = YamlColours()
    return [
        Content.assemble(("+ ", "$accent bold") if index in own else "  ", _coloured(line, colours, ()))
        for index, line in enumerate(first)
    ]


def read_effective(path: Path) -> EffectiveConfig:
    """Work out the effective config, as ``config show`` does.

    Raises:
        UserInputError: It has errors.
    """
    return effective_config(path)


def read_review(path: Path, output_dir: Path) -> Review:
    """Review a config on this machine, which takes some seconds.

    Raises:
        UserInputError: The framework config has errors.
    """
    from magpie_tui.serving.preflight import review

    return review(path, output_dir=output_dir)


def settings_of(config: EffectiveConfig) -> list[Setting]:
    """Return the settings as ``config show`` prints them."""
    return list(config.settings.values())
