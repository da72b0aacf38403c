"""Which workspaces changed: found by inotify and by polling."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from magpie_tui.workspaces.watch import Change, polling_reason, watch, workspace_of

NAME = "compare_20260901_101500"
MOUNTS = (
    "overlay / overlay rw 0 0\n/dev/sda1 /home ext4 rw 0 0\nserver:/x /home/me/nfs\\040share nfs4 rw 0 0\n"
    "tmpfs /tmp tmpfs rw 0 0\nsshfs /mnt/far fuse.sshfs rw 0 0\nbroken\n"
)


@contextmanager
def watching(root: Path, *, polling: bool) -> Iterator[Callable[[], Change]]:
    changes: queue.Queue[Change] = queue.Queue()
    stop = threading.Event()

    def follow() -> None:
        for change in watch([root], stop, force_polling=polling, poll_seconds=0.05):
            changes.put(change)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield lambda: changes.get(timeout=60)
    finally:
        stop.set()
        thread.join(timeout=60)
        assert not thread.is_alive()


@pytest.mark.parametrize("polling", [True, False])
def test_a_changed_report_names_its_workspace(tmp_path: Path, polling: bool) -> None:
    (tmp_path / "results" / NAME).mkdir(parents=True)
    with watching(tmp_path, polling=polling) as next_change:
        first = next_change()
        assert first.paths == ()
        if first.mode == "inotify":
            assert first.reason is None
        else:
            assert first.reason
        (tmp_path / "results" / "unrelated.txt").write_text("x", encoding="utf-8")
        report = tmp_path / "results" / NAME / "compare_report.json"
        report.write_text("{}", encoding="utf-8")
        assert next_change().paths == (tmp_path / "results" / NAME,)
        new = tmp_path / "results" / "analyze_x_20260901_101500"
        new.mkdir()
        while next_change().paths != (new,):
            pass


def test_a_root_that_does_not_exist_yet_is_polled(tmp_path: Path) -> None:
    with watching(tmp_path / "later", polling=False) as next_change:
        first = next_change()
        assert (first.mode, first.reason) == ("polling", f"{tmp_path / 'later'} does not exist yet")
        (tmp_path / "later" / NAME).mkdir(parents=True)
        assert next_change().paths == (tmp_path / "later" / NAME,)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/home/me", None),
        ("/home/me/nfs share/x", "nfs4"),
        ("/tmp/x", None),
        ("/mnt/far/x", "fuse.sshfs"),
        ("/opt", "overlay"),
    ],
)
def test_mounts_without_announcements_are_polled(path: str, word: str | None) -> None:
    reason = polling_reason(Path(path), MOUNTS)
    assert (reason is None) if word is None else (reason is not None and word in reason)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/r/{NAME}/a/b.json", f"/r/{NAME}"),
        (f"/r/x/{NAME}", f"/r/x/{NAME}"),
        (f"/r/{NAME}/.report.json.tmp", None),
        ("/r/.magpie-tui/runs/1/status.json", None),
        ("/r/x", None),
        ("/elsewhere", None),
        (f"/w/{NAME}/x", f"/w/{NAME}"),
    ],
)
def test_a_path_belongs_to_its_workspace(path: str, expected: str | None) -> None:
    found = workspace_of(Path(path), [Path("/r"), Path(f"/w/{NAME}")])
    assert found == (None if expected is None else Path(expected))


def test_without_inotify_it_polls_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import watchfiles

    def exhausted(*paths: Path, **_settings: object) -> Iterator[object]:
        if paths:
            raise OSError(28, "OS file watch limit reached")
        yield paths

    monkeypatch.setattr(watchfiles, "watch", exhausted)
    monkeypatch.setattr("magpie_tui.workspaces.watch.polling_reason", lambda _path: None)
    (tmp_path / NAME).mkdir()
    with watching(tmp_path, polling=False) as next_change:
        first = next_change()
        assert first.mode == "polling"
        assert first.reason is not None and "watch limit" in first.reason
        (tmp_path / NAME / "new").mkdir()
        assert next_change().paths == (tmp_path / NAME,)


def test_a_root_that_vanishes_is_polled_for(tmp_path: Path) -> None:
    root = tmp_path / "results"
    root.mkdir()
    with watching(root, polling=False) as next_change:
        if next_change().mode == "inotify":
            root.rmdir()
            later = next_change()
            assert (later.mode, later.paths) == ("polling", ())
        (root / NAME).mkdir(parents=True)
        assert next_change().paths == (root / NAME,)
