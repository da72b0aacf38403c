"""The nine steps, what each rests on, and the templates that leave some of them out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the loop.

    Attributes:
        number: 1 to 9.
        key: Its word in ``campaign.yaml`` and on the command line.
        title: What a person reads.
        needs: Keys of the steps whose results it uses; a skipped one is not waited for.
        workspace: Kind of workspace that it leaves; None where it is a decision or lies in another step's workspace.
        directory: Where its workspaces go below the campaign's output directory, as in the walkthrough.
        inputs: Names of the files in ``campaign.yaml`` (``configs:``, ``sources:``) that it depends on.
    """

    number: int
    key: str
    title: str
    needs: tuple[str, ...]
    workspace: str | None
    directory: str | None
    inputs: tuple[str, ...] = ()


STEPS: tuple[Step, ...] = (
    Step(1, "baseline", "Baseline, clean", (), "benchmark", "walkthrough-benchmark-baseline", ("baseline",)),
    Step(2, "twin", "Profiled twin", ("baseline",), "benchmark", "walkthrough-benchmark-profiled", ("profiled",)),
    Step(3, "stages", "Stages and roofline", ("twin",), None, None),
    Step(4, "kernels", "Kernels and sources", ("stages",), None, None),
    Step(5, "analyze", "Baseline kernel", ("kernels",), "analyze", "walkthrough-kernel-baseline", ("analyze",)),
    Step(6, "candidates", "Candidates", ("analyze",), "analyze", None, ("candidates",)),
    Step(7, "compare", "Compare and confirm", ("candidates",), "compare", "walkthrough-kernel-compare", ("compare",)),
    Step(8, "integrate", "Integrate", ("compare",), None, None),
    Step(
        9, "judge", "Repeat and judge", ("integrate",), "experiment", "walkthrough-benchmark-optimized", ("optimized",)
    ),
)
CANDIDATE_DIRECTORY = "walkthrough-candidate-{label}"
"""Where the workspaces of a candidate go."""
BY_KEY = {step.key: step for step in STEPS}

TEMPLATES: dict[str, tuple[str, tuple[str, ...]]] = {
    "full": ("the whole loop, from a serving baseline to a judged gain", ()),
    "kernels": ("a kernel that is already chosen", ("baseline", "twin", "stages", "kernels", "integrate", "judge")),
    "smoke": (
        "a vector addition built with O2 and O3: tries every part that needs no served model",
        ("baseline", "twin", "stages", "kernels", "integrate", "judge"),
    ),
}
"""Name → what it is for, and the steps that it leaves out."""


def step_of(word: str) -> Step | None:
    """Return the step that a key or a number names; None for anything else."""
    if word in BY_KEY:
        return BY_KEY[word]
    return next((step for step in STEPS if str(step.number) == word), None)


def dependents(key: str) -> tuple[str, ...]:
    """Return the keys of all steps that rest on one, in order, without itself."""
    found: list[str] = []
    for step in STEPS:
        if any(need == key or need in found for need in step.needs):
            found.append(step.key)
    return tuple(found)
