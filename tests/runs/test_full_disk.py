"""A disk that fills up during a run: a small file system of its own, where an unprivileged user may have one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process_helpers import Family

PROGRAM = """
import json, sys, time
from pathlib import Path
from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.processes.identity import is_alive
from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.read import read_run
place = Path(sys.argv[1])
def start(*command):
    return launch(LaunchRequest('test', '', command, place, Path('/'), detach=True))
run = start('sh', '-c', 'cat /dev/zero; exit 5')
while not read_run(run.directory).is_over or is_alive(run.supervisor):
    time.sleep(0.01)
run = read_run(run.directory)
status = json.loads((run.directory / 'status.json').read_text())
with (place / 'rest').open('wb', buffering=0) as rest:
    try:
        while True:
            rest.write(bytes(4096))
    except OSError:
        pass
try:
    error = start('true').reason
except MagpieTuiError as failed:
    error = [failed.exit_code, str(failed)]
left = sorted(path.name for path in (place / '.magpie-tui' / 'runs').iterdir())
print(json.dumps([run.state.value, run.exit_code, status['state'], error, left == [run.id]]))
"""


def test_the_end_of_a_run_is_written_even_on_a_full_disk(tmp_path: Path, family: Family) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = f"mount -t tmpfs -o size=256k tmpfs '{place}'"
    namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*namespace, mount], capture_output=True).returncode != 0:
        pytest.skip("no small file system can be mounted here")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [*namespace, f"{mount} && exec '{sys.executable}' '{tmp_path}/program.py' '{place}'"],
        capture_output=True,
        text=True,
        check=True,
    )
    state, exit_code, recorded, error, nothing_half_made = json.loads(done.stdout)
    assert (state, exit_code, recorded) == ("failed", 5, "failed")
    assert error[0] == 3
    assert "No space left on device" in error[1]
    assert nothing_half_made
