"""Every cheat is caught by the check meant for it, every honest twin passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from magpie_tui.kernels.checks import ORDER
from magpie_tui.kernels.sessions import Harness
from tests.adversarial.catalogue import BROKEN, CHEATS, GPU_CHEATS, GPU_HONEST, HERE, HONEST, Case
from tests.adversarial.corpus import Corpus, problem

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def corpus(harness: Harness, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """One corpus for all cases."""
    made = Corpus(harness, tmp_path_factory.mktemp("corpus"))
    yield made
    made.close()


@pytest.mark.parametrize("case", CHEATS, ids=lambda case: f"{case.check}-{case.name}")
def test_cheats_are_caught_by_the_check_meant_for_them(corpus: Corpus, case: Case) -> None:
    judgement = corpus.run(case)
    assert problem(case, judgement) is None
    assert [check.id for check in judgement.checks] == list(ORDER)
    assert all(check.reason for check in judgement.checks if check.status != "pass")


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_broken_kernels_are_told_apart_from_wrong_ones(corpus: Corpus, case: Case) -> None:
    judgement = corpus.run(case)
    assert problem(case, judgement) is None
    assert not judgement.ours
    assert next(check.status for check in judgement.checks if check.id == "G23") == "pass"


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_honest_kernels_pass(corpus: Corpus, case: Case) -> None:
    assert problem(case, corpus.run(case)) is None


def test_nothing_reached_the_results(corpus: Corpus) -> None:
    assert [path.name for path in corpus.results.iterdir()] == ["logs"]


def test_every_file_is_a_case() -> None:
    known = {case.source for case in (*CHEATS, *BROKEN, *HONEST, *GPU_CHEATS, *GPU_HONEST)}
    assert {*(HERE / "kernels").glob("*.py"), *(HERE / "gpu_kernels").glob("*.py")} == known


def test_every_check_that_a_kernel_can_fail_has_a_cheat() -> None:
    caught = {case.check for case in (*CHEATS, *GPU_CHEATS)}
    assert set(ORDER) - caught == {"G23", "G24"}
    assert len(CHEATS) >= 24
