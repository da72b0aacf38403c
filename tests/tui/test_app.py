"""The app around the screens: errors, messages, places, quietness."""

from __future__ import annotations

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.dialogs.error import ErrorDialog
from tests.tui.support import World, screen_text, status, wait_ready, wait_until


async def test_work_that_breaks_opens_the_error_dialog(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        world.stop_run = lambda run: 1 / 0  # type: ignore[method-assign,assignment,return-value]
        app.run_worker(lambda: 1 // 0, thread=True, exit_on_error=False, name="count the stars")
        await wait_until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "hint:" in screen_text(pilot))
        text = screen_text(pilot)
        assert "error: count the stars failed" in text and "ZeroDivisionError" in text
        world.environment["STY"] = "1"
        await pilot.press("y")
        await wait_until(pilot, lambda: "written" in status(app))
        assert "Traceback" in (state_directory() / "copied.txt").read_text(encoding="utf-8")


async def test_error_dialog_names_place_and_hint(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        error = UserInputError("no [such] key", path="a[b].yaml", line=3, column=7, hint="remove [it]")
        app.show_error("check a[b].yaml", error)
        await wait_until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "hint:" in screen_text(pilot))
        text = screen_text(pilot)
        assert "error: check a[b].yaml" in text
        assert "a[b].yaml:3:7: no [such] key" in text and "hint: remove [it]" in text


async def test_confirmation_starts_on_cancel(world: World) -> None:
    answers: list[str | None] = []
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        for keys in (("enter",), ("escape",), ("q",), ("down", "enter")):
            await app.push_screen(ConfirmDialog("Stop pa[1]?", "stop", "4 processes end"), answers.append)
            await pilot.pause()
            assert "Stop pa[1]?" in screen_text(pilot) and "4 processes end" in screen_text(pilot)
            await pilot.press(*keys)
            await pilot.pause()
    assert answers == ["cancel", None, None, "yes"]


async def test_impossible_choices_show_their_reason_only_when_looked_for(world: World) -> None:
    dialog = ChoiceDialog("Do", [Choice("a", "stop it", reason="nothing runs"), Choice("b", "go")], has_filter=True)
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        await app.push_screen(dialog)
        await pilot.pause()
        assert "stop it" not in screen_text(pilot)
        await pilot.press(*"stop")
        await pilot.pause()
        assert "stop it  nothing runs" in screen_text(pilot)
        await pilot.press("enter")
        assert app.screen is dialog, "it cannot be chosen"


async def test_message_goes_with_the_next_key(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        app.say("copied 61 characters through tmux")
        await pilot.pause()
        assert screen_text(pilot).split("\n")[-3] == "copied 61 characters through tmux"
        await pilot.press("j")
        await pilot.pause()
        assert set(screen_text(pilot).split("\n")[-3]) == {"─"}


async def test_standing_note_comes_back(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        app.screen.stand("data 4 s old, polling: NFS")  # type: ignore[attr-defined]
        app.say("stopped")
        await pilot.press("j")
        await pilot.pause()
        assert "polling: NFS" in screen_text(pilot)


async def test_digit_a_second_time_goes_to_the_top_of_its_place(world: World) -> None:
    from magpie_tui.tui.screens.unbuilt import UnbuiltScreen

    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("2")
        await app.push_screen(UnbuiltScreen("runs"))
        await pilot.press("1")
        await pilot.press("2")
        await pilot.pause()
        assert len(app.screen_stack) == 2, "the place is as it was left"
        await pilot.press("2")
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_keys_do_nothing_unseen_in_a_small_terminal(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(59, 15)) as pilot:
        await wait_ready(pilot)
        assert "too small, needs 60x16" in screen_text(pilot)
        await pilot.press("8", "question_mark", "q", "ctrl+p")
        await pilot.pause()
        assert app.current_mode == "campaign" and len(app.screen_stack) == 1 and app.return_code is None
        await pilot.resize_terminal(100, 28)
        await wait_until(pilot, lambda: "Where to begin" in screen_text(pilot), "the screen of a larger terminal")


async def test_digits_are_text_in_a_filter(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("ctrl+p", "8", "q", "question_mark")
        await pilot.pause()
        assert app.current_mode == "campaign" and "8q?" in screen_text(pilot)


@pytest.mark.usefixtures("painting_at_once")
async def test_at_rest_nothing_is_painted(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        painted: list[object] = []
        original = app._display  # private in Textual: the one way to everything that reaches the terminal
        app._display = lambda screen, renderable: painted.append(renderable) or original(screen, renderable)  # type: ignore[method-assign,func-returns-value]
        for _ in range(20):
            # What the start has left to paint comes first; equal readings that paint would do so every time.
            painted.clear()
            for _ in range(3):
                app.background.read_now()
                await app.workers.wait_for_complete()
                await pilot.pause()
            shown = [item for item in painted if item is not None and getattr(item, "spans", True) != []]
            if not shown:
                break
    assert shown == [], "equal readings paint nothing"


async def test_nothing_is_animated(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        assert app.animation_level == "none"
