"""Proofs of the actions of dialogs, lists, texts and forms."""

from __future__ import annotations

from magpie_tui.basics.options import OptionSpec
from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog, ChoiceList
from magpie_tui.tui.dialogs.form import FormDialog
from magpie_tui.tui.dialogs.help import HelpDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.widgets.option_form import ChoiceField
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.support import Stage, proves, screen_text, status

SPECS = (
    OptionSpec("kernels", (), "paths", "Kernel sources."),
    OptionSpec("timeout", ("--timeout",), "integer", "Seconds a kernel may take.", default=600, minimum=1),
    OptionSpec("environment", ("--environment", "-e"), "choice", "Where.", default="local", choices=("local", "ray")),
    OptionSpec("quick", ("--quick",), "flag", "A first look."),
)


async def _choices(stage: Stage, count: int = 40) -> tuple[ChoiceDialog, ChoiceList, list[str | None]]:
    answers: list[str | None] = []
    dialog = ChoiceDialog("Pick", [Choice(str(index), f"line {index}") for index in range(count)], has_filter=False)
    await stage.app.push_screen(dialog, answers.append)
    await stage.pilot.pause()
    return dialog, dialog.query_one(ChoiceList), answers


async def _text(stage: Stage) -> TextLines:
    dialog = TextDialog("Text", [f"{index:04d} " + "x" * 300 for index in range(200)])
    await stage.app.push_screen(dialog)
    await stage.pilot.pause()
    return dialog.query_one(TextLines)


async def _form(stage: Stage) -> tuple[FormDialog, list[tuple[str, ...] | None]]:
    answers: list[tuple[str, ...] | None] = []
    dialog = FormDialog("Analyze", SPECS, ("magpie-tui", "analyze"), {"kernels": ("a b.hip",)})
    await stage.app.push_screen(dialog, answers.append)
    await stage.pilot.pause()
    return dialog, answers


@proves("dialog.show_help")
async def a_dialog_has_help_of_its_own(stage: Stage) -> None:
    dialog, _answers = await _form(stage)
    await stage.press()
    assert isinstance(stage.app.screen, HelpDialog)
    shown = screen_text(stage.pilot)
    assert "Take the form as it is" in shown and "Go to Runs" not in shown
    await stage.pilot.press("question_mark")
    await stage.pilot.pause()
    left: object = stage.app.screen
    assert left is dialog


@proves("dialog.close")
async def close_answers_nothing(stage: Stage) -> None:
    _dialog, _list, answers = await _choices(stage)
    await stage.press()
    await stage.wait(lambda: answers == [None], "the answer")


@proves("dialog.focus_next", "dialog.focus_previous")
async def focus_moves_inside_the_dialog(stage: Stage) -> None:
    dialog, _answers = await _form(stage)
    before = stage.app.focused
    await stage.press()
    after = stage.app.focused
    assert after is not None and after is not before and dialog in after.ancestors


@proves("dialog.choose")
async def choose_answers_the_line(stage: Stage) -> None:
    _dialog, _list, answers = await _choices(stage)
    await stage.pilot.press("j", "j")
    await stage.press()
    await stage.wait(lambda: answers == ["2"], "the answer")


@proves("dialog.up", "dialog.down")
async def arrows_move_while_the_filter_is_typed(stage: Stage) -> None:
    dialog = ChoiceDialog("Pick", [Choice(str(index), f"line {index}") for index in range(12)])
    await stage.app.push_screen(dialog)
    await stage.pilot.press("l", "i", "n")
    choices = dialog.query_one(ChoiceList)
    assert choices.highlighted == 0
    await stage.press()
    assert choices.highlighted == (11 if stage.key == "up" else 1)


@proves("dialog.copy")
async def the_text_is_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"
    await stage.app.push_screen(TextDialog("Text", "gemm[m=16]\nx[/b]"))
    await stage.press()
    await stage.wait(lambda: "16 characters written" in status(stage.app), "the report")
    assert (state_directory() / "copied.txt").read_text(encoding="utf-8") == "gemm[m=16]\nx[/b]"


@proves("form.copy_command")
async def the_forms_command_is_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"
    await _form(stage)
    await stage.press()
    await stage.wait(lambda: "written" in status(stage.app), "the report")
    assert (state_directory() / "copied.txt").read_text(encoding="utf-8") == "magpie-tui analyze 'a b.hip'"


@proves("form.submit")
async def the_form_answers_its_command(stage: Stage) -> None:
    dialog, answers = await _form(stage)
    await stage.pilot.press("tab", "backspace", "backspace", "backspace", *"0", "ctrl+s")
    assert answers == [] and "--timeout" in status(stage.app), "0 is below the minimum"
    await stage.pilot.press("backspace", *"30")
    await stage.press()
    await stage.wait(lambda: answers != [], "the answer")
    assert answers == [("magpie-tui", "analyze", "a b.hip", "--timeout", "30")]
    assert dialog not in stage.app.screen_stack


@proves("form.next_word", "form.previous_word")
async def words_are_chosen(stage: Stage) -> None:
    dialog, _answers = await _form(stage)
    field = next(iter(dialog.query(ChoiceField)))
    field.focus()
    await stage.press()
    assert field.value == "ray"
    await stage.press()
    assert field.value == "local"


@proves("list.up", "list.down", "list.page_up", "list.page_down", "list.first", "list.last")
async def lists_move(stage: Stage) -> None:
    _dialog, choices, _answers = await _choices(stage)
    choices.highlighted = 20
    await stage.pilot.pause()
    await stage.press()
    place = choices.highlighted
    assert place is not None
    expected = {"up": place == 19, "down": place == 21, "pageup": place < 15, "pagedown": place > 25}
    expected |= {"g": place == 0, "G": place == 39}
    assert expected[stage.key], place


@proves("text.up", "text.down", "text.page_up", "text.page_down", "text.first", "text.last", "text.left", "text.right")
async def texts_scroll(stage: Stage) -> None:
    text = await _text(stage)
    text.scroll_to(16, 50, animate=False)
    await stage.pilot.pause()
    await stage.press()
    x, y = text.scroll_offset
    expected = {"up": y == 49, "down": y == 51, "pageup": y < 40, "pagedown": y > 60, "g": y == 0, "left": x == 8}
    expected |= {"G": y == text.max_scroll_y, "right": x == 24}
    assert expected[stage.key], (x, y)
