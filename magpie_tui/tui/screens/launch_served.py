"""What keeps a benchmark or an experiment from starting: each point of its review as it is decided, and the price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.options import Values
from magpie_tui.basics.text import plural
from magpie_tui.tui.screens.launch_checks import (
    MOST_PROBLEMS,
    LaunchMode,
    Obstacle,
    Point,
    Readiness,
    of_error,
)

if TYPE_CHECKING:
    from magpie_tui.configs.review import Review, ReviewItem


def find_served(
    path: Path,
    mode: LaunchMode,
    values: Values,
    *,
    output_dir: Path,
    review: Review | None,
    on_point: Callable[[Point], None],
) -> Readiness:
    """Review the config, or both configs of an experiment; blocks for some seconds.

    Args:
        review: What is known of the first config; None: it is reviewed now.
        on_point: Told each point as soon as it is decided.
    """
    found: list[Obstacle] = []
    points: list[Point] = []

    def told(point: Point) -> None:
        points.append(point)
        on_point(point)

    paths = [("", path)] if mode == "benchmark" else _arms(path, values, found)
    for arm, config in paths:
        _review_one(arm, config, values, output_dir, review if config == path else None, found, told)
    price = "" if any(item.blocks for item in found) and not points else _price(mode, paths, values, output_dir, points)
    return Readiness(tuple(found), price, tuple(points))


def _arms(path: Path, values: Values, found: list[Obstacle]) -> list[tuple[str, Path]]:
    """The two configs; what is wrong with the options of the experiment is noted."""
    from magpie_tui.serving.experiment_options import experiment_request

    other = values.get("optimized")
    if not other:
        found.append(
            Obstacle("optimized", "there is no config of B yet", "give the path of the config to compare with")
        )
        return [("A", path)]
    try:
        request = experiment_request({**values, "baseline": str(path)})
    except MagpieTuiError as error:
        found.append(of_error("options", error))
        return [("A", path)]
    if not request.plan.can_claim:
        few = f"{plural(request.plan.pairs, 'pair')} can be indicative only"
        found.append(Obstacle("pairs", few, "a claim needs 6", blocks=False))
    return [("A", path), ("B", Path(str(other)).expanduser())]


def _review_one(
    arm: str,
    path: Path,
    values: Values,
    output_dir: Path,
    known: Review | None,
    found: list[Obstacle],
    told: Callable[[Point], None],
) -> None:
    from magpie_tui.configs.check import check_file
    from magpie_tui.configs.effective import Overrides
    from magpie_tui.serving.preflight import review as review_benchmark

    prefix = f"{arm}: " if arm else ""
    run_mode = values.get("run_mode")
    overrides = Overrides(run_mode=None if run_mode is None else str(run_mode))
    try:
        check = check_file(path, kind="benchmark")
        errors = [problem for problem in check.problems if problem.severity == "error"]
        for problem in errors[:MOST_PROBLEMS]:
            found.append(Obstacle(f"{prefix}line {problem.line}", problem.message, problem.hint or ""))
        if len(errors) > MOST_PROBLEMS:
            found.append(Obstacle("", f"{prefix}{plural(len(errors) - MOST_PROBLEMS, 'more error')} in the config"))
        if errors:
            return
        if known is None:
            known = review_benchmark(
                path, overrides=overrides, output_dir=output_dir, on_item=lambda item: told(Point(arm, item))
            )
        else:
            for item in known.items:
                told(Point(arm, item))
    except MagpieTuiError as error:
        found.append(of_error(f"{prefix}review", error))
        return
    for item in known.items:
        if item.status == "blocker" or (item.status == "warning" and item.name != "config"):
            found.append(Obstacle(prefix + item.name, item.evidence, item.hint or "", blocks=item.status == "blocker"))
    if check.problems:
        found.append(
            Obstacle(
                f"{prefix}config", plural(len(check.problems), "warning"), "its text pane lists them", blocks=False
            )
        )


def _price(
    mode: LaunchMode, paths: Sequence[tuple[str, Path]], values: Values, output_dir: Path, points: Sequence[Point]
) -> str:
    """How long it takes, as far as earlier runs tell."""
    if mode == "benchmark":
        return next((point.item.evidence for point in points if _is_known_time(point.item)), "")
    if len(paths) < 2:
        return ""
    from magpie_tui.configs.benchmark import load_benchmark_config
    from magpie_tui.serving.estimate import expected_experiment

    pairs = values.get("pairs")
    try:
        a, b = (load_benchmark_config(path) for _arm, path in paths)
    except MagpieTuiError:
        return ""
    probes = 2 if values.get("twins") or values.get("kernel") else 0
    price = expected_experiment(a, b, pairs if isinstance(pairs, int) else 8, output_dir, probes=probes)
    return "" if price is None else price.text


def _is_known_time(item: ReviewItem) -> bool:
    return item.name == "time" and item.status == "ok"
