"""The MCP server, spoken to with the official client library over stdio and over HTTP on this machine."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.campaigns import edit
from magpie_tui.runs.read import read_run
from tests.process_helpers import wait_for

ROOT = Path(__file__).parents[2]
COMMAND = ["-m", "magpie_tui", "mcp"]


async def call(client: Any, tool: str, **arguments: object) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    value: dict[str, Any] = answer.structured_content
    return value


async def test_an_agent_checks_runs_and_reads_a_kernel(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(command=sys.executable, args=COMMAND, env=dict(os.environ), cwd=str(tmp_path))
    async with Client(server, read_timeout_seconds=120) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"hardware_spec", "analyze", "compare", "benchmark", "gap_analysis", "run_status"} <= tools
        wrong = await call(client, "check_config", path=str(tmp_path / "missing.yaml"))
        assert wrong["exit_status"] == 2
        for name in ("--help", "a\0b"):
            refused = await call(client, "verify", path=name)
            assert (refused["exit_status"], refused["result"]) == (2, None), refused
        started = await call(
            client,
            "analyze",
            kernel_path=str(ROOT / "examples" / "cpp_vector_add" / "vector_add.cpp"),
            kernel_type="cpp",
            compile_command=f"g++ -O2 -o {tmp_path}/add {ROOT}/examples/cpp_vector_add/vector_add.cpp",
            testcase_command=f"{tmp_path}/add",
            output_dir=str(tmp_path / "out"),
        )
        assert started["exit_status"] == 0, started
        run = started["result"]["run"]
        status = await call(client, "run_status", run_id=run)
        assert (status["result"]["id"], status["result"]["kind"]) == (run, "analyze")
        # An agent would ask again and again; each answer is a process, so the files are asked here.
        directory = Path(status["result"]["directory"])
        await asyncio.to_thread(wait_for, lambda: read_run(directory).is_over)
        status = await call(client, "run_status", run_id=run)
        assert status["result"]["state"] == "ended"
        assert status["result"]["exit_code"] == 0
        shown = await call(client, "get_workspace", path=status["result"]["workspace"])
        assert shown["result"]["kind"] == "analyze"
        edit.new_campaign(tmp_path / "one", template="kernels")
        told = await call(client, "campaign_report", directory=str(tmp_path / "one"), form="pr")
        assert "No kernel was measured" in told["result"]["text"]
        log = await call(client, "run_log", run_id=run)
        assert '"success": true' in log["result"]["text"]


async def test_http_listens_on_this_machine_alone() -> None:
    from mcp import Client

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, *COMMAND, "--transport", "http", "--port", str(port)]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    try:
        await _wait_for(port, process)
        async with Client(f"http://127.0.0.1:{port}/mcp", read_timeout_seconds=60) as client:
            answer = await call(client, "list_configs")
            assert answer["exit_status"] == 0
        listening = _sockets()
        assert f"0100007F:{port:04X}" in listening
        assert f"00000000:{port:04X}" not in listening
    finally:
        process.terminate()
        await process.wait()


def _sockets() -> str:
    return Path("/proc/net/tcp").read_text()


async def _wait_for(port: int, process: asyncio.subprocess.Process) -> None:
    while process.returncode is None:
        try:
            _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    pytest.fail(f"the server ended with status {process.returncode}")
