"""Computes every stated number and verdict of a workspace, campaign or bundle again from the raw data kept there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.paths import expanded
from magpie_tui.campaigns.bundle_files import unpack_bundle
from magpie_tui.campaigns.configure import SHARE_DIGITS
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.findings import twin_workspace
from magpie_tui.campaigns.inputs import counting_links
from magpie_tui.campaigns.model import FILE_NAME, Campaign
from magpie_tui.campaigns.recommend import evidence_of
from magpie_tui.campaigns.steps import STEPS
from magpie_tui.campaigns.verify_kernel import kernel_checks
from magpie_tui.campaigns.verify_model import Check, CheckState, Originals, Verification, agrees, cannot, sha256_of
from magpie_tui.campaigns.verify_record import record_checks
from magpie_tui.campaigns.verify_serving import benchmark_checks, experiment_checks
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.each import Reading
from magpie_tui.workspaces.browse import summarize

_RUNS = ("pair_*_[ab]", "twin_[ab]")


def verify(path: Path) -> Verification:
    """Verify what is at a path.

    Args:
        path: A workspace (ours or upstream's), an experiment, a campaign's directory or file, or a bundle.

    Raises:
        UserInputError: It is none of these, or a campaign or bundle cannot be read at all.
    """
    found = expanded(path).absolute()
    if not found.exists():
        raise UserInputError("nothing is there", path=path)
    if found.is_file() and found.name != FILE_NAME:
        return _verify_bundle(found)
    if found.is_file() or (found / FILE_NAME).is_file():
        checks = _campaign_checks(load_campaign(found), Originals())
        return Verification(found, "campaign", tuple(checks))
    return verify_workspace(found)


def verify_workspace(workspace: Path, originals: Originals | None = None) -> Verification:
    """Verify one workspace or experiment.

    Raises:
        UserInputError: It is none.
    """
    summary = summarize(workspace)
    if summary is None:
        raise UserInputError(
            "no workspace, campaign or bundle",
            path=workspace,
            hint="give a timestamped directory, the directory of a campaign, or a bundle (.tar.gz)",
        )
    known = originals or Originals()
    kind = summary.kind
    if kind == "experiment":
        checks = _experiment(workspace, known)
    elif kind == "benchmark":
        checks = (*record_checks(workspace, known), *benchmark_checks(workspace))
    else:
        checks = (*record_checks(workspace, known), *kernel_checks(workspace, kind))
    return Verification(workspace, kind, checks)


def _experiment(directory: Path, originals: Originals) -> tuple[Check, ...]:
    checks = list(experiment_checks(directory))
    for pattern in _RUNS:
        for run in sorted(directory.glob(pattern)):
            if run.is_dir():
                found = (*record_checks(run, originals), *benchmark_checks(run))
                checks += [check.below(run.name) for check in found]
    return tuple(checks)


def _campaign_checks(campaign: Campaign, originals: Originals) -> Iterator[Check]:
    """Check every workspace that counts, and the numbers of the campaign's decisions."""
    for step in STEPS:
        for link in counting_links(campaign.step(step.key).links):
            name = _shown(link.path, campaign.directory)
            if not link.path.is_dir() or summarize(link.path) is None:
                yield cannot(name, "", f"the workspace of step {step.number} {step.key} is not there any more")
                continue
            for check in verify_workspace(link.path, originals).checks:
                yield check.below(name)
    yield from _decision_checks(campaign)


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _decision_checks(campaign: Campaign) -> Iterator[Check]:
    """Compute the share of the chosen kernel again from the trace of the twin."""
    decision = campaign.step("kernels").decision
    if decision is None or decision.get("share_pct") is None:
        return
    key, workspace = "steps.kernels.decision.share_pct", twin_workspace(campaign)
    trace = decision.get("trace")
    place = workspace or (Path(str(trace)) if trace else None)
    if place is None or not place.exists():
        yield cannot(FILE_NAME, key, "the trace that it was read from is not there")
        return
    try:
        computed = stage_share(place, str(decision.get("stage")), str(decision.get("kernel")))
    except MagpieTuiError as error:
        yield cannot(FILE_NAME, key, f"the trace cannot be read: {error.message}")
        return
    stated = decision["share_pct"]
    if computed is not None and agrees(stated, round(computed, SHARE_DIGITS)):
        yield Check(FILE_NAME, key, CheckState.OK)
    else:
        yield Check(FILE_NAME, key, CheckState.DIFFERS, stated, computed)


def stage_share(trace: Path, stage: str, kernel: str) -> float | None:
    """Return a kernel's share of the device time of a stage, in percent; None when it does not run there."""
    from magpie_tui.traces.operators.roofline_report import RooflineRequest, analyze_roofline

    report = analyze_roofline(find_traces(trace), Reading(use_cache=False), RooflineRequest(None, None, None, ()))
    rows = (item for found in report.roofline.stages if found.stage == stage for item in evidence_of(found, None))
    return next((item.share_of_stage_pct for item in rows if item.name == kernel), None)


def _verify_bundle(path: Path) -> Verification:
    with tempfile.TemporaryDirectory(prefix="magpie-tui-verify-") as place:
        unpacked = unpack_bundle(path, Path(place))
        checks = list(_manifest_checks(unpacked.directory, unpacked.digests))
        originals = Originals({unpacked.directory / name: digest for name, digest in unpacked.originals.items()})
        checks += _campaign_checks(load_campaign(unpacked.directory), originals)
    return Verification(path, "bundle", tuple(checks))


def _manifest_checks(directory: Path, digests: Mapping[str, str]) -> Iterator[Check]:
    good = 0
    for name, stated in digests.items():
        computed = sha256_of(directory / name)
        if computed == stated:
            good += 1
        else:
            yield Check(name, "sha256 (manifest.json)", CheckState.DIFFERS, stated, computed)
    if good:
        yield Check("manifest.json", "hashes of all files", CheckState.OK, values=good)
    present = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    for name in sorted(present - set(digests) - {"manifest.json"}):
        yield Check(name, "", CheckState.DIFFERS, "not in the manifest", "a file of the bundle")
