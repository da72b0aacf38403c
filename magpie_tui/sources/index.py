"""A persistent index of the kernels that checkouts and packages define; only changed files are read again.

One SQLite file a directory, in the cache directory. It is a cache: it may be deleted at any time, and is made anew
where it is damaged or of another version.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.paths import cache_directory, private_directory
from magpie_tui.sources.model import Definition, Repository
from magpie_tui.sources.scan import MAX_BYTES, SUFFIXES, FileFacts, scan

SCHEMA_VERSION = 1
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".mypy_cache", "build"}
)
_BATCH = 400
_PARALLEL_FROM = 1_500
_LOCK_SECONDS = 120
_TABLES = """
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL
);
CREATE TABLE definitions (file INTEGER NOT NULL, symbol TEXT NOT NULL, kind TEXT NOT NULL, line INTEGER NOT NULL,
                          scope TEXT NOT NULL);
CREATE TABLE words (word TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (word, file)) WITHOUT ROWID;
CREATE INDEX definitions_symbol ON definitions (symbol);
CREATE INDEX definitions_file ON definitions (file);
CREATE INDEX words_file ON words (file);
"""
Entry = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Update:
    """What bringing an index up to date took: files seen, read, and forgotten."""

    files: int
    read: int
    removed: int


class SourceIndex:
    """The index of one repository. Use as a context manager."""

    def __init__(self, repository: Repository, *, directory: Path | None = None) -> None:
        self.repository = repository
        folder = private_directory(directory or cache_directory() / "sources")
        digest = hashlib.sha256(os.fsencode(repository.root)).hexdigest()[:16]
        self.path = folder / f"{repository.root.name or 'root'}-{digest}.sqlite"
        self._connection = self._opened()

    def __enter__(self) -> SourceIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        with contextlib.suppress(sqlite3.DatabaseError):
            connection = self._connected()
            try:
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                if version == SCHEMA_VERSION:
                    connection.execute("SELECT count(*) FROM (SELECT 1 FROM files LIMIT 1)").fetchone()
                    return connection
            except sqlite3.DatabaseError:
                pass
            connection.close()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        connection = self._connected()
        connection.executescript(f"{_TABLES} PRAGMA user_version = {SCHEMA_VERSION};")
        return connection

    def _connected(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self.path, timeout=_LOCK_SECONDS, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise MachineError(f"the index of sources cannot be written: {error}", path=self.path) from None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    def update(self, *, on_progress: Callable[[int, int], None] | None = None) -> Update:
        """Read what is new or changed, forget what is gone; all or nothing.

        Raises:
            MachineError: Another process holds the index for too long, the disk is full, or a reader was killed.
        """
        from concurrent.futures import BrokenExecutor

        try:
            return self._updated(on_progress)
        except sqlite3.OperationalError as error:
            raise MachineError(
                f"the index of sources cannot be brought up to date: {error}",
                path=self.path,
                hint="another process that reads the same sources? try again; the file may be deleted at any time",
            ) from None
        except BrokenExecutor:
            raise MachineError("a process that reads sources was ended from outside", path=self.path) from None

    def _updated(self, on_progress: Callable[[int, int], None] | None) -> Update:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")  # a second one that updates waits, and then finds everything done
        try:
            rows = connection.execute("SELECT path, size, mtime_ns FROM files")
            known = {path: (size, mtime) for path, size, mtime in rows}
            changed: list[Entry] = []
            seen = 0
            for entry in _walk(self.repository.root):
                seen += 1
                if known.pop(entry[0], None) != entry[1:]:
                    changed.append(entry)
            self._forget([*known, *(path for path, _, _ in changed)])
            for done, (entry, facts) in enumerate(_scanned(self.repository.root, changed), 1):
                self._remember(entry, facts)
                if on_progress is not None and done % _BATCH == 0:
                    on_progress(done, len(changed))
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return Update(seen, len(changed), len(known))

    def _forget(self, paths: Sequence[str]) -> None:
        if not paths or self._connection.execute("SELECT 1 FROM files LIMIT 1").fetchone() is None:
            return
        for path in paths:
            row = self._connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
            if row is not None:
                for table, column in (("definitions", "file"), ("words", "file"), ("files", "id")):
                    self._connection.execute(f"DELETE FROM {table} WHERE {column} = ?", row)

    def _remember(self, entry: Entry, facts: FileFacts) -> None:
        file = self._connection.execute("INSERT INTO files (path, size, mtime_ns) VALUES (?, ?, ?)", entry).lastrowid
        self._connection.executemany(
            "INSERT INTO definitions VALUES (?, ?, ?, ?, ?)",
            [(file, found.symbol, found.kind, found.line, found.scope) for found in facts.found],
        )
        self._connection.executemany("INSERT INTO words VALUES (?, ?)", [(word, file) for word in facts.words])

    def definitions(self, symbol: str, *, kinds: Iterable[str]) -> list[Definition]:
        """Return where a function of exactly this name is defined."""
        if not _is_text(symbol):
            return []
        wanted = tuple(kinds)
        marks = ", ".join("?" * len(wanted))
        rows = self._connection.execute(
            "SELECT path, symbol, kind, line, scope FROM definitions JOIN files ON files.id = definitions.file "
            f"WHERE symbol = ? AND kind IN ({marks}) ORDER BY path, line",
            (symbol, *wanted),
        )
        return [Definition(self.repository, *row) for row in rows]

    def symbols(self, kind: str) -> list[str]:
        """Return the distinct names of one kind of definition."""
        rows = self._connection.execute(
            "SELECT DISTINCT symbol FROM definitions WHERE kind = ? ORDER BY symbol", (kind,)
        )
        return [symbol for (symbol,) in rows]

    def tests_with(self, word: str) -> list[str]:
        """Return the tests that mention a word."""
        if not _is_text(word):
            return []
        rows = self._connection.execute(
            "SELECT path FROM words JOIN files ON files.id = words.file WHERE word = ? ORDER BY path", (word,)
        )
        return [path for (path,) in rows]

    def functions_of(self, path: str) -> list[str]:
        """Return the functions that a test defines, in its order."""
        rows = self._connection.execute(
            "SELECT symbol FROM definitions JOIN files ON files.id = definitions.file "
            "WHERE path = ? AND kind = 'function' ORDER BY line",
            (path,),
        )
        return [symbol for (symbol,) in rows]


def _walk(root: Path) -> Iterator[Entry]:
    """Yield path, size and time of every source file; links are not followed."""
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(root / prefix if prefix else root) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if name not in _SKIPPED and _is_text(name):
                            pending.append(f"{prefix}{name}/")
                    elif (
                        name[name.rfind(".") :] in SUFFIXES and entry.is_file(follow_symlinks=False) and _is_text(name)
                    ):
                        status = entry.stat(follow_symlinks=False)
                        if status.st_size <= MAX_BYTES:
                            yield f"{prefix}{name}", status.st_size, status.st_mtime_ns
        except OSError:
            continue  # a directory that may not be read holds nothing for us


def _is_text(name: str) -> bool:
    """Tell whether a name can be written as UTF-8; SQLite takes no others."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _scan_batch(root: str, paths: list[str]) -> list[FileFacts]:
    found = []
    for path in paths:
        try:
            data = Path(root, path).read_bytes()
        except OSError:
            found.append(FileFacts(()))
            continue
        found.append(scan(path, data))
    return found


def _scanned(root: Path, entries: list[Entry]) -> Iterator[tuple[Entry, FileFacts]]:
    batches = [entries[start : start + _BATCH] for start in range(0, len(entries), _BATCH)]
    processors = len(os.sched_getaffinity(0))
    if len(entries) < _PARALLEL_FROM or processors < 2:
        for batch in batches:
            yield from zip(batch, _scan_batch(str(root), [entry[0] for entry in batch]), strict=True)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # The main process writes the index meanwhile: one reader less than processors would leave a core idle.
    with ProcessPoolExecutor(processors, mp_context=multiprocessing.get_context("forkserver")) as pool:
        results = pool.map(
            _scan_batch, [str(root)] * len(batches), [[entry[0] for entry in batch] for batch in batches]
        )
        for batch, facts in zip(batches, results, strict=True):
            yield from zip(batch, facts, strict=True)
