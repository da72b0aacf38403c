"""From a trace to a kernel's files: shapes and test found, gaps marked, originals untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.choosing import ChoiceRequest
from magpie_tui.campaigns.configure import Configured, ConfigureRequest, configure
from magpie_tui.campaigns.difference import candidate_difference, changed_lines
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.report import report_blocks
from magpie_tui.campaigns.report_blocks import to_html, to_markdown
from magpie_tui.campaigns.report_facts import gather_facts
from magpie_tui.campaigns.report_pr import pull_request_blocks
from magpie_tui.campaigns.state import view_campaign
from magpie_tui.campaigns.verify import verify
from magpie_tui.configs.check import check_file
from magpie_tui.traces.each import Reading
from tests.conftest import PROJECT_ROOT

TRACE = PROJECT_ROOT / "examples" / "traces" / "h200_eager_rank-0.pt.trace.json.gz"
SOURCE = """\
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x, out, n: tl.constexpr):
    pass


def rms_norm(x):
    rms_norm_kernel[(1,)](x, x, 4)
    return x
"""
TEST = """\
def ref_rms_norm(x):
    return x


def test_rms_norm():
    assert ref_rms_norm("rms_norm_kernel rms_norm")
"""


@pytest.fixture(autouse=True)
def plain_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of a checkout are run by a pytest of their own; the plugins of this one would take a second each."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def checkout(root: Path, *, passes: bool = True) -> Path:
    (root / "lib").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "lib" / "rms_norm.py").write_text(SOURCE)
    (root / "tests" / "test_rms_norm.py").write_text(TEST if passes else TEST.replace("assert ", "assert not "))
    return root


def configured(
    tmp_path: Path, kernel: str = "rms_norm_kernel", *, seconds: float = 0, force: bool = False
) -> Configured:
    directory = tmp_path / "one"
    campaign = load_campaign(directory) if directory.exists() else edit.new_campaign(directory, template="full")
    root = tmp_path / "repo" if (tmp_path / "repo").exists() else checkout(tmp_path / "repo")
    request = ConfigureRequest(kernel, TRACE, ChoiceRequest(repos=(root,)), seconds, force)
    return configure(campaign, request, Reading())


def test_files_are_written_and_only_gaps_are_reported(tmp_path: Path) -> None:
    found = configured(tmp_path, seconds=120)
    files = found.files
    assert found.test.word == "passed", found.test
    assert files.copy.read_text() == SOURCE == files.source.read_text()
    for path in (files.analyze, files.candidate, files.compare):
        problems = check_file(path).problems
        assert {problem.code for problem in problems} == {"to-fill-in"}, problems
    assert len(check_file(files.compare).problems) == len(found.files.gaps) == 2
    text = files.analyze.read_text()
    assert "# TODO by a person: the shapes that matter" in text
    assert f'reference: "{tmp_path}/repo/tests/test_rms_norm.py:ref_rms_norm"' in text
    assert 'kernel_name: "rms_norm"' in text
    filled = text.replace(text.partition("shapes: ")[2].splitlines()[0], "[{tensors: [[4, 8]], dtypes: [float32]}]")
    files.analyze.write_text(filled)
    assert check_file(files.analyze).problems == ()


def test_the_decision_is_written_down_verified_and_reported(tmp_path: Path) -> None:
    campaign = configured(tmp_path).campaign
    decision = campaign.step("kernels").decision or {}
    assert decision["kernel"] == "rms_norm_kernel"
    assert decision["share_pct"] == 6.622
    assert set(campaign.files) == {"analyze", "compare"}
    assert changed_lines(campaign, "a") == (0, 0, "source")
    copy = campaign.directory / "kernels" / "rms_norm_kernel" / "candidate_a" / "rms_norm.py"
    copy.write_text(copy.read_text() + "# faster\n")
    assert changed_lines(campaign, "a") == (1, 0, "source")
    assert "+# faster" in candidate_difference(campaign, "a")
    assert verify(campaign.directory).differing == ()
    campaign.path.write_text(campaign.path.read_text().replace("share_pct: 6.622", "share_pct: 6.632"))
    (wrong,) = verify(campaign.directory).differing
    assert wrong.key == "steps.kernels.decision.share_pct"
    action = view_campaign(campaign)[4].action
    assert action is not None and action.person and "gaps of analyze.yaml" in action.text
    facts = gather_facts(campaign, view_campaign(campaign))
    page, text = to_html(report_blocks(facts), "one"), to_markdown(report_blocks(facts))
    assert "<script" not in page and "http://www.w3.org/2000/svg" not in page.replace("xmlns=", "")
    for part in ("Assumed, not measured", "Not verified", "6.632", "step 9 has not been run", "magpie-tui verify"):
        assert part in text
    assert "## rms_norm_kernel: no claim yet" in to_markdown(pull_request_blocks(facts))


PAGED = """\
template <typename scalar_t>
__global__ __launch_bounds__(256) void paged_attention_ll4mi_QKV_mfma16_kernel(const scalar_t* q, float* out) {
}
"""


def paged_checkout(root: Path) -> Path:
    """Where the kernel with the most to be won of a recorded decode step lies, with a test that names it."""
    for place in ("csrc/cpp_itfs/pa", "csrc/kernels", "op_tests", "aiter/ops"):
        (root / place).mkdir(parents=True)
    (root / "csrc" / "cpp_itfs" / "pa" / "pa_ragged.cuh").write_text(PAGED)
    (root / "op_tests" / "test_pa_ragged.py").write_text(
        "def run_torch(q):\n    return q\n\n\n"
        'def test_paged_attention():\n    assert run_torch("paged_attention_ll4mi_QKV_mfma16_kernel pa_ragged")\n'
    )
    return root


def test_the_recommended_kernel_of_a_recorded_step_becomes_files(tmp_path: Path, reference_data: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "one", template="full")
    choice = ChoiceRequest(repos=(paged_checkout(tmp_path / "repo"),))
    found = configure(
        campaign, ConfigureRequest(None, reference_data / "traces" / "sglang_decode", choice, 120), Reading()
    )
    assert found.chosen.against == ""
    assert "paged_attention_ll4mi_QKV_mfma16_kernel" in found.chosen.choice.evidence.name
    assert found.test.word == "passed", found.test
    files = found.files
    assert files.source.name == "pa_ragged.cuh" and files.copy.read_text() == PAGED == files.source.read_text()
    text = files.analyze.read_text()
    assert "# shape in the trace: 32x32x128 bfloat16, 10905190400 uint8" in text
    assert "test_pa_ragged.py" in text.partition("testcase_command:")[2].splitlines()[0]
    for path in (files.analyze, files.candidate, files.compare):
        assert {problem.code for problem in check_file(path).problems} == {"to-fill-in"}
        path.write_text(path.read_text().replace('"<fill in:', '"true # ').replace('>"', '"'))
        assert check_file(path).problems == (), "only the gaps were wrong"
    decision = found.campaign.step("kernels").decision or {}
    assert decision["gain"] == "end to end at most +12.8 %, +6.0 % at half the way"
    assert str(decision["existing_test"]).startswith("passed")
    assert verify(campaign.directory).differing == ()
    states = {view.key: view.state.value for view in view_campaign(found.campaign)}
    assert states["kernels"] == "done"


def test_a_test_that_cannot_be_loaded_here_has_not_failed(tmp_path: Path) -> None:
    root = checkout(tmp_path / "repo")
    (root / "tests" / "test_rms_norm.py").write_text("import no_such_module_at_all\n" + TEST)
    found = configured(tmp_path, seconds=120)
    assert found.test.word == "not run"
    assert "No module named 'no_such_module_at_all'" in found.test.detail


def test_nothing_is_overwritten_and_a_failing_test_is_told(tmp_path: Path) -> None:
    checkout(tmp_path / "repo", passes=False)
    assert configured(tmp_path, seconds=120).test.word == "failed"
    with pytest.raises(UserInputError, match="there already"):
        configured(tmp_path)
    assert configured(tmp_path, force=True).test.word == "not run"
    with pytest.raises(UserInputError, match="no kernel of stage"):
        configured(tmp_path, "no_such_kernel")
    with pytest.raises(AnswerIsNoError, match="source of this kernel was not found"):
        configured(tmp_path, "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_NNT")


def test_a_compiled_kernel_gets_its_shapes_as_words_and_gaps_for_its_build(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / "csrc").mkdir(parents=True)
    (root / "tests").mkdir()
    source = (
        "namespace at { namespace native {\ntemplate <typename T> __global__ void indexSelectSmallIndex(T* a) { }\n}}\n"
    )
    (root / "csrc" / "idx.cu").write_text(source)
    (root / "tests" / "test_index_select.py").write_text('def test_index(): assert "indexSelectSmallIndex"\n')
    files = configured(tmp_path, "indexSelectSmallIndex").files
    assert "# shape in the trace: 4096x512 bfloat16, 8 int64" in files.analyze.read_text()
    found = [(problem.code, problem.line) for problem in check_file(files.compare).problems]
    assert [code for code, _ in found] == ["to-fill-in"] * 3, found
    assert len(files.gaps) == 3
