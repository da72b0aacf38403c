"""Every screen has pictures in every state and both sizes, or a written reason why a state cannot be seen."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import magpie_tui.tui.screens
from magpie_tui.tui.screens.base import PlaceScreen

PICTURES = Path(__file__).parent / "__snapshots__"
STATES = ("empty", "loading", "normal", "error", "huge")
SIZES = ("80x24", "140x40")

MORE, CONFIGS, RUNS, TRACE, PLACES, RESULTS = (
    f"test_{name}" for name in ("more_snapshots", "configs_snapshots", "runs_snapshots", "trace_snapshots", "snapshots",
                                "workspaces_snapshots")
)  # fmt: skip


def _all(test: str, name: str) -> dict[str, str]:
    return {state: f"{test}/{name}[{state}-%]" for state in STATES}


def _more(name: str, *states: str) -> dict[str, str]:
    return {state: f"{MORE}/{name}[{state}-%]" for state in states}


MATRIX: dict[str, dict[str, str]] = {
    "HomeScreen": {
        **{state: f"{PLACES}/test_places[{state}-home-%]" for state in ("empty", "normal", "huge")},
        **{state: f"{PLACES}/test_{state}[home-%]" for state in ("loading", "error")},
    },
    "MachineScreen": {
        **{state: f"{PLACES}/test_places[{state}-machine-%]" for state in ("empty", "normal", "huge")},
        **{state: f"{PLACES}/test_{state}[machine-%]" for state in ("loading", "error")},
    },
    "CampaignScreen": {
        **{state: f"test_campaign_screen/test_pictures[{state}-%]" for state in ("empty", "normal", "error")},
        **_more("test_campaign", "loading", "huge"),
    },
    "RunsScreen": {
        **{state: f"{RUNS}/test_{state}[%]" for state in ("empty", "loading", "error")},
        **{state: f"{RUNS}/test_runs[{state}-list-%]" for state in ("normal", "huge")},
    },
    "RunDetailScreen": {
        **{state: f"{RUNS}/test_runs[{state}-detail-%]" for state in ("normal", "huge")},
        **_more("test_run", "empty", "error"),
        "loading": "its run is known before it opens; a log that is not there yet is the empty state",
    },
    "TraceScreen": {
        **{state: f"{TRACE}/test_list[{state}-%]" for state in ("empty", "normal", "huge")},
        **{state: f"{TRACE}/test_list_{state}[%]" for state in ("loading", "error")},
    },
    "TraceViewScreen": {
        **{state: f"{TRACE}/test_{state}[%]" for state in ("loading", "error", "huge")},
        "normal": f"{TRACE}/test_two_ranks[kernels-%]",
        "empty": f"{MORE}/test_trace_empty[%]",
    },
    "TraceDiffScreen": {
        "normal": f"{TRACE}/test_two_traces[%]",
        **_more("test_trace_difference", "empty", "loading", "error", "huge"),
    },
    "CandidatesScreen": _all(RESULTS, "test_candidates"),
    "ExperimentsScreen": {
        "normal": "test_experiments_screen/test_pictures[ended-%]",
        **_more("test_experiments", "empty", "loading", "error", "huge"),
    },
    "WorkspacesScreen": _all(RESULTS, "test_workspaces"),
    "WorkspaceScreen": _all(RESULTS, "test_workspace"),
    "DifferenceScreen": _all(RESULTS, "test_difference"),
    "FileScreen": _all(MORE, "test_file"),
    "ConfigsScreen": {
        **{state: f"{CONFIGS}/test_list_{state}[%]" for state in ("empty", "loading", "huge")},
        "normal": f"{CONFIGS}/test_list[%]",
        # What is wrong is wrong with one config, and stands in its row and below the list.
        "error": f"{CONFIGS}/test_list[%]",
    },
    "ConfigDetailScreen": {
        "normal": f"{CONFIGS}/test_detail[text-%]",
        **{state: f"{CONFIGS}/test_detail_{state}[%]" for state in ("error", "huge")},
        **_more("test_config", "empty", "loading"),
    },
    "ConfigDifferenceScreen": {
        "normal": f"{CONFIGS}/test_difference[%]",
        **_more("test_config_difference", "empty", "loading", "error", "huge"),
    },
    "ConfigEditScreen": {
        "normal": f"{CONFIGS}/test_editor[%]",
        **_more("test_editor", "empty", "loading", "huge"),
        "error": "a config that cannot be opened closes the editor; the error dialog says why",
    },
    "LaunchScreen": {
        "normal": f"{CONFIGS}/test_launch[pair-%]",
        "loading": f"{CONFIGS}/test_launch_being_checked[%]",
        "error": f"{CONFIGS}/test_launch[d-%]",
        "huge": f"{MORE}/test_launch_huge[%]",
        "empty": "a form always has its fields",
    },
    "UnbuiltScreen": dict.fromkeys(STATES, "stands in for places that are not built; all are"),
}


def _screens() -> set[str]:
    """Names of the screens that are opened: those no other one is made from."""
    found: set[type[PlaceScreen]] = set()
    for module in pkgutil.iter_modules(magpie_tui.tui.screens.__path__, "magpie_tui.tui.screens."):
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and issubclass(value, PlaceScreen):
                found.add(value)
    bases = {base for screen in found for base in screen.__mro__[1:]}
    return {screen.__name__ for screen in found - bases}


def test_every_screen_is_in_the_matrix() -> None:
    assert set(MATRIX) == _screens()


@pytest.mark.parametrize("screen", sorted(MATRIX))
def test_every_state_has_pictures_or_a_reason(screen: str) -> None:
    assert set(MATRIX[screen]) == set(STATES)
    for state, where in MATRIX[screen].items():
        if "%" not in where:
            assert len(where.split()) > 4, f"{state}: {where!r} is no reason"
            continue
        for size in SIZES:
            picture = PICTURES / f"{where.replace('%', size)}.svg"
            assert picture.is_file(), f"{screen} has no picture of the state {state} at {size}: {picture.name}"
