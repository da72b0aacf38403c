"""Profilers: commands, what they write, and what becomes of a tool that fails.

``ncu_raw.csv`` was recorded on an H200. The other outputs are a few rows made here in the form that the tools'
documentation gives, because no AMD GPU was at hand; programs called ``ncu`` and so on are stand-ins that write them.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.errors import MachineError
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.profilers import metrix, ncu, rocprof_compute, rocprofv3
from magpie_tui.kernels.profilers.choose import asked_backend, choose, choose_here
from magpie_tui.kernels.profilers.model import NO_KERNEL, ProfilerFailedError, ProfileTask, kernels_of
from magpie_tui.kernels.profilers.run import dispatches, profile

NCU_PAGE = """\
==PROF== Connected to process 480 (/tmp/vec)
PASSED, "no" error
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum","launch__registers_per_thread"
"","","","","","","","","","","","%","us","register/thread"
"0","480","vec","h","add(const float *, ""x"")","1","7","(256, 1, 1)","(65,536, 1, 1)","0","9.0","66.78","58.82","16"
"1","480","vec","h","add(const float *, ""x"")","1","7","(256, 1, 1)","(65,536, 1, 1)","0","9.0","65.74","1,059.78","16"
==PROF== Disconnected from process 480
"""
KERNEL_TRACE = """\
"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",\
"Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count"
"KERNEL_DISPATCH","Agent 4","1","0","77","2","12","rms(float*, float*)",2,2000,11100,0,0,32,4,16
"KERNEL_DISPATCH","Agent 4","1","0","77","1","11","__amd_rocclr_copyBuffer",1,1000,1500,0,0,8,0,16
"KERNEL_DISPATCH","Agent 4","1","0","77","3","12","rms(float*, float*)",3,12000,20800,0,0,32,4,16
"""
PMC_PERF = """\
Dispatch_ID,GPU_ID,Kernel_Name,Start_Timestamp,End_Timestamp,SQ_WAVES,TCC_HIT_sum
0,2,"rms(float*, float*)",1000,10100,4096,12.5
1,2,"rms(float*, float*)",20000,29000,4096,12.5
2,2,__hip_fill,30000,31000,1,1
"""
SPEED_OF_LIGHT = """\
Metric_ID,Metric,Avg,Unit,Peak,Pct of Peak
2.1.0,VALU FLOPs,812.4,Gflop,81715.2,0.99
2.1.1,MFMA FLOPs (BF16),,Gflop,653721.6,
2.1.2,L2-Fabric Read BW,"2,810.5",Gb/s,5300.0,53.0
"""


def task_in(directory: Path, *commands: str, **settings: object) -> ProfileTask:
    made = tuple((command,) for command in commands or ("./vec",))
    path = os.pathsep.join([str(directory / "bin"), os.environ["PATH"]])
    return ProfileTask(made, directory, {**os.environ, "PATH": path}, directory / "profile", 30.0, settings)


def stand_in(directory: Path, name: str, script: str) -> None:
    """Put a shell script of that name on the PATH of ``task_in``."""
    (directory / "bin").mkdir(exist_ok=True)
    program = directory / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_ncu_pages_are_read_through_quotes_commas_and_program_output() -> None:
    page = ncu.parse(NCU_PAGE)
    found = ncu.dispatches(page)
    assert [item.duration_ns for item in found] == [pytest.approx(58_820), pytest.approx(1_059_780)]
    assert {(item.name, item.start_ns, item.device, item.stream) for item in found} == {
        ('add(const float *, "x")', None, 0, 7)
    }
    summary = ncu.summary(page)
    dram = summary["dram__throughput.avg.pct_of_peak_sustained_elapsed"]
    assert (dram.value, dram.pct_of_peak) == pytest.approx((66.26, 66.26)) and dram.unit == "%"
    assert summary["gpu__time_duration.sum"].value == pytest.approx(1118.6)
    assert "Grid Size" not in summary


def test_the_recorded_page(reference_data: Path) -> None:
    page = ncu.parse((reference_data / "h200" / "ncu_raw.csv").read_text())
    summary = ncu.summary(page)
    assert len(page.rows) == 5 and page.rows[0]["Kernel Name"].startswith("vector_add(")
    assert (summary["launch__grid_size"].value, summary["launch__registers_per_thread"].value) == (65536, 16)
    assert ncu.dispatches(page) == []
    assert not any(name.startswith("device__") for name in summary)


@given(st.text(max_size=300))
def test_any_output_is_read_without_an_error(text: str) -> None:
    for found in (text, '"ID","Kernel Name"\n' + text, "Kernel_Name,Start_Timestamp,End_Timestamp\n" + text):
        ncu.summary(ncu.parse(found))
        ncu.dispatches(ncu.parse(found))
        rocprofv3.parse(found)
        rocprof_compute.parse_counters(found)
        rocprof_compute.parse_table(found)


def test_ncu_leaves_clocks_alone_and_keeps_what_the_config_says(tmp_path: Path) -> None:
    plain = ncu.command(task_in(tmp_path), ["./vec"], tmp_path / "log")
    assert plain[:5] == ["ncu", "--target-processes", "all", "--clock-control", "none"]
    assert plain[-1] == "./vec" and ncu.DURATION in plain[plain.index("--metrics") + 1].split(",")
    task = task_in(tmp_path, args=("--set", "full", "--clock-control=base"), kernel_filter="add")
    given_ = ncu.command(task, ["./vec"], tmp_path / "log")
    assert "--metrics" not in given_ and given_.count("--clock-control=base") == 1 and "none" not in given_
    assert "regex:add" in given_


def test_rocprofv3_traces() -> None:
    found = rocprofv3.parse(KERNEL_TRACE)
    assert [(item.name[:3], item.start_ns, item.duration_ns, item.device, item.stream) for item in found] == [
        ("__a", 1000, 500, 4, 0),
        ("rms", 2000, 9100, 4, 0),
        ("rms", 12000, 8800, 4, 0),
    ]
    (kernel,) = kernels_of(found)
    assert (kernel.dispatch_count, kernel.avg_ns, kernel.min_ns, kernel.total_ns) == (2, 8950, 8800, 17900)
    assert rocprofv3.summary(KERNEL_TRACE)["VGPR_Count"].value == 32


def test_rocprof_compute_tables_are_renamed() -> None:
    found = rocprof_compute.parse_table(SPEED_OF_LIGHT)
    assert set(found) == {"VALU_FLOPs", "HBM_Read_BW"}
    valu = found["VALU_FLOPs"]
    assert (valu.value, valu.unit, valu.peak, valu.pct_of_peak) == (812.4, "Gflop", 81715.2, 0.99)
    assert found["HBM_Read_BW"].value == 2810.5
    dispatched, counters = rocprof_compute.parse_counters(PMC_PERF)
    assert counters == {"SQ_WAVES": 8193.0, "TCC_HIT_sum": 26.0} and len(dispatched) == 3
    assert rocprof_compute.summary([], dispatched)["profiling_complete"].unit == "bool"


@pytest.mark.parametrize(("roofline", "there"), [(True, False), ("no", True), (None, True)])
def test_roofline_adds_or_removes_an_argument(tmp_path: Path, roofline: object, there: bool) -> None:
    command = rocprof_compute.profile_command(task_in(tmp_path, roofline=roofline), ["./vec", "-n"], tmp_path)
    assert ("--no-roof" in command) is there
    assert command[command.index("-b") + 1] == "1" and command[-3:] == ["--", "./vec", "-n"]


def test_metrix_files() -> None:
    text = json.dumps(
        {
            "add": {
                "duration_us": {"min": 8.0, "max": 9.0, "avg": 8.5},
                "metrics": {"memory.l2_hit_rate": {"avg": 40.0}, "other": {"avg": 1.0}},
            },
            "mul": {"duration_us": {"avg": 20.0}, "metrics": {"memory.l2_hit_rate": {"avg": 60.0}}},
        }
    )
    kernels, summary = metrix.parse(text)
    assert [(item.kernel_name, item.avg_ns, item.min_ns) for item in kernels] == [
        ("mul", 20_000.0, None),
        ("add", 8_500.0, 8_000.0),
    ]
    assert summary["L2_HitRate"].value == 50.0 and summary["other"].value == 1.0
    with pytest.raises(ValueError, match="JSON"):
        metrix.parse("[]")


# Running them: stand-ins that write the documented output


def test_ncu_is_run_and_its_page_becomes_the_report(tmp_path: Path) -> None:
    (tmp_path / "page.csv").write_text(NCU_PAGE)
    script = 'while [ "$1" != --log-file ]; do shift; done; cp "$PWD/page.csv" "$2"'
    stand_in(tmp_path, "ncu", script)
    result = profile("ncu", task_in(tmp_path))
    assert result.success and result.more["profiler"] == "ncu"
    (kernel,) = result.kernels
    assert kernel.dispatch_count == 2 and kernel.total_ns == pytest.approx(1_118_600)
    assert result.workload_dir == str(tmp_path / "profile")
    assert (tmp_path / "profile" / "ncu_1.csv").is_file()
    found = dispatches(
        "ncu",
        ("./vec",),
        cwd=tmp_path,
        environment=task_in(tmp_path).environment,
        directory=tmp_path / "own",
        timeout_s=30,
    )
    assert len(found) == 2


def test_no_kernel_launched_and_no_rights_are_told_apart(tmp_path: Path) -> None:
    log = 'while [ "$1" != --log-file ]; do shift; done; '
    stand_in(tmp_path, "ncu", log + 'echo "==WARNING== No kernels were profiled." > "$2"')
    assert profile("ncu", task_in(tmp_path)).errors == (NO_KERNEL,)
    with pytest.raises(ProfilerFailedError, match="no_kernel_launched"):
        dispatches("ncu", ("./v",), cwd=tmp_path, environment=task_in(tmp_path).environment, directory=tmp_path,
                   timeout_s=30)  # fmt: skip
    denied = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"
    stand_in(tmp_path, "ncu", log + f'echo "{denied}" > "$2"; exit 1')
    result = profile("ncu", task_in(tmp_path))
    assert result.success is False and "may not read the performance counters" in result.errors[0]
    assert result.command is not None and result.command[0] == "ncu"


def test_rocprof_compute_profiles_then_analyses(tmp_path: Path) -> None:
    (tmp_path / "pmc.csv").write_text(PMC_PERF)
    (tmp_path / "sol.csv").write_text(SPEED_OF_LIGHT)
    script = (
        'if [ "$1" = profile ]; then mkdir -p "$5"; cp "$PWD/pmc.csv" "$5/pmc_perf.csv"; else\n'
        f'mkdir -p "$3/analysis"; cp "{tmp_path}/sol.csv" "$3/analysis/2.1_Speed-of-Light.csv"; fi'
    )
    stand_in(tmp_path, "rocprof-compute", script)
    result = profile("rocprof_compute", task_in(tmp_path))
    assert result.success, result.errors
    assert [(item.kernel_name, item.dispatch_count) for item in result.kernels] == [("rms(float*, float*)", 2)]
    assert result.summary["VALU_FLOPs"].value == 812.4
    assert result.workload_dir == str(tmp_path / "profile" / "rocprof_compute_output")


def test_what_fails_says_what_was_run_and_what_it_said(tmp_path: Path) -> None:
    stand_in(tmp_path, "rocprofv3", 'echo "no agents found" >&2; exit 3')
    result = profile("rocprofv3", task_in(tmp_path))
    assert result.errors == ("rocprofv3 failed (exit status 3): no agents found",)
    assert result.command is not None and result.command[:2] == ("rocprofv3", "--kernel-trace")
    stand_in(tmp_path, "rocprof-compute", "exit 0")
    assert "No profiling data (pmc_perf.csv) found in" in profile("rocprof_compute", task_in(tmp_path)).errors[0]
    stand_in(tmp_path, "metrix", "exit 0")
    assert "wrote no metrix_1.json" in profile("metrix", task_in(tmp_path)).errors[0]


# Which one


def test_the_profiler_follows_type_device_and_config() -> None:
    hip = KernelEntry("h", "hip", testcase_commands=(("./t",),))
    cuda = KernelEntry("c", "cuda", testcase_commands=(("./t",),))
    model = KernelEntry("p", "pytorch")
    assert choose(hip, {}, ["AMD"]).backend == "rocprof_compute"
    assert choose(cuda, {}, ["NVIDIA"]).backend == "ncu"
    assert choose(model, {}, ["NVIDIA"]).backend is None
    assert choose(model, {"backend": "ncu"}, ["NVIDIA"]).backend == "ncu"
    assert choose(hip, {"backend": "ncu"}, ["AMD"]).reason == "ncu does not profile kernels on a GPU of AMD"
    assert choose(KernelEntry("x", "cpp"), {"backend": "ncu"}, []).backend is None
    assert asked_backend({"metrix": {"profile": "quick"}}) == "metrix"
    assert asked_backend({"ncu": {}, "rocprof_compute": {}}) is None


def test_a_missing_tool_is_a_reason_or_an_error_when_it_was_asked_for() -> None:
    cuda = KernelEntry("c", "cuda", testcase_commands=(("./t",),))
    absent = choose_here(cuda, {}, ["NVIDIA"], lambda name: False)
    assert absent.backend is None and absent.reason is not None and absent.reason.startswith("ncu not found")
    with pytest.raises(MachineError, match="the config asks for it"):
        choose_here(cuda, {"backend": "ncu"}, ["NVIDIA"], lambda name: False)
