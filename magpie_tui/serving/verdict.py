"""The verdict on workspaces that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.paths import real_path
from magpie_tui.serving.experiment import judge_experiment
from magpie_tui.serving.experiment_state import STATE_NAME
from magpie_tui.serving.verdict_comparability import declared_changes
from magpie_tui.serving.verdict_model import ServingVerdict
from magpie_tui.serving.verdict_reading import find_runs, pair_up, split_profiled
from magpie_tui.serving.verdict_rule import Question, Twins, decide


def judge_workspaces(
    baseline: Path, optimized: Path | None, question: Question, *, invalid: Sequence[str] = ()
) -> ServingVerdict:
    """Judge workspaces, directories of workspaces, or an experiment (``optimized`` is None then).

    Runs are paired in the order of time. Only runs that took turns can carry a claim; others give ``indicative`` at
    most.

    Args:
        question: ``planned`` is taken from the number of runs; the change under test is what the configs change on
            purpose, and what ``changes`` names.
        invalid: Reasons against any verdict, from a control.

    Raises:
        UserInputError: There are no runs, or a report is damaged.
    """
    if optimized is None:
        if not (baseline / STATE_NAME).is_file():
            raise UserInputError(
                "one directory can be judged only if it is an experiment",
                path=baseline,
                hint="give two: magpie-tui verdict BASELINE OPTIMIZED",
            )
        return judge_experiment(baseline, write=False)
    if real_path(baseline) == real_path(optimized):
        raise UserInputError("baseline and optimized are the same directory", path=optimized)
    runs_a, twin_a = split_profiled(find_runs(baseline))
    runs_b, twin_b = split_profiled(find_runs(optimized))
    pairing = pair_up(runs_a, runs_b)
    changes = question.changes
    if pairing.pairs:
        changes = (*declared_changes(pairing.pairs[0].a.config, pairing.pairs[0].b.config), *changes)
    return decide(
        replace(question, planned=len(pairing.pairs), changes=changes),
        pairing.pairs,
        interleaved=pairing.interleaved,
        not_interleaved_reason=pairing.reason,
        twins=Twins(twin_a, twin_b),
        invalid=invalid,
    )
