"""The start and the first opening of a place: nothing is drawn in vain, parsed twice or imported while a key waits."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from textual.css import stylesheet as textual_stylesheet
from textual.screen import Screen

from magpie_tui.tui.places import PLACES
from magpie_tui.tui.preload import BELOW_PLACES, modules_to_import, preload
from magpie_tui.tui.stylesheet import FrugalStylesheet
from tests.tui.support import World, wait_ready, wait_until

ROW = "Static { color: $quiet; }"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every source that Textual parses."""
    sources: list[str] = []
    parse: Any = vars(textual_stylesheet)["parse"]

    def noted(scope: str, css: str, *arguments: Any, **options: Any) -> Any:
        sources.append(css)
        return parse(scope, css, *arguments, **options)

    monkeypatch.setattr(textual_stylesheet, "parse", noted)
    return sources


def test_a_source_is_parsed_once_for_each_set_of_variables(parsed: list[str]) -> None:
    green, blue = {"quiet": "#00ff01"}, {"quiet": "#0000fe"}
    sheet = FrugalStylesheet(variables=green)
    sheet.add_source(ROW, ("here", "row"))

    def color() -> str:
        return sheet.rules_map["Static"][0].styles.color.hex

    assert color() == "#00FF01"
    sheet.set_variables(dict(green))
    sheet.reparse()
    sheet.add_source("Input { height: 1; }", ("here", "input"))
    assert (color(), parsed.count(ROW)) == ("#00FF01", 1)
    sheet.set_variables(blue)
    sheet.reparse()
    assert (color(), parsed.count(ROW)) == ("#0000FE", 2)
    sheet.set_variables(green)
    sheet.reparse()
    assert (color(), parsed.count(ROW)) == ("#00FF01", 2)


def test_a_wrong_source_leaves_the_rules_as_they_were() -> None:
    sheet = FrugalStylesheet(variables={})
    sheet.add_source("Static { height: 1; }", ("here", "right"))
    before = sheet.rules
    sheet.add_source("Static { height: purple; }", ("here", "wrong"))
    with pytest.raises(textual_stylesheet.StylesheetParseError):
        sheet.reparse()
    assert sheet._rules is before


async def test_a_second_app_parses_nothing(world: World, parsed: list[str]) -> None:
    for _ in range(2):
        app = world.app()
        parsed.clear()
        async with app.run_test(size=(100, 28)) as pilot:
            await wait_ready(pilot)
            await pilot.press("2")
            await pilot.pause()
    assert parsed == []


async def test_a_place_that_opens_parses_nothing_and_styles_no_other(
    world: World, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its style sheets were parsed behind the first paint; opened again, nothing is styled at all."""
    app = world.app()
    styled: list[str] = []
    update = app.update_styles

    def noted(node: Any, animate: bool = True) -> None:
        if isinstance(node, Screen):
            styled.append(type(node).__name__)
        update(node, animate)

    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        parsed.clear()
        monkeypatch.setattr(app, "update_styles", noted)
        await pilot.press("6", "2", "6")
        assert (parsed, styled) == ([], [])
        app.theme = "magpie-light"
        await pilot.pause()
        await pilot.press("2")
        assert app.screen.styles.background.brightness > 0.5, "a hidden screen takes another theme when it is shown"


@pytest.mark.usefixtures("painting_at_once")
async def test_nothing_is_drawn_that_cannot_be_painted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    app = world.app()
    in_vain: list[object] = []
    display = app._display

    def noted(screen: Any, renderable: Any) -> None:
        if renderable is not None and app._batch_count:
            in_vain.append(renderable)
        display(screen, renderable)

    monkeypatch.setattr(app, "_display", noted)
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        assert app.screen.name is None and type(app.screen).__name__ == "HomeScreen"
        assert app.screen_stack == [app.screen]
    assert in_vain == []


async def test_the_other_places_are_imported_behind_the_first_paint(world: World) -> None:
    wanted = modules_to_import()
    assert len(wanted) == sum(place.screen is not None for place in PLACES) + len(BELOW_PLACES)
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await wait_until(pilot, lambda: set(wanted) <= set(sys.modules), "the screens")


def test_importing_ends_with_the_app() -> None:
    asked: list[bool] = []

    def is_cancelled() -> bool:
        asked.append(True)
        return len(asked) > 2

    preload(is_cancelled)
    assert len(asked) == 3
