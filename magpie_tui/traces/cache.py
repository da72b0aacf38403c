"""Columns kept in the user's cache directory, so that the second look at a trace costs next to nothing.

One Arrow file a trace (one row; each column of the trace is a list in it) and an index in JSON beside it that says
where in the file each list's values lie, so that reading needs numpy only. The key is made of the trace's size, its
modification time and its first and last 64 KiB. A pair that is damaged in any way is ignored.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import logging
import mmap
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.files import atomic_writer, write_json
from magpie_tui.basics.paths import private_directory
from magpie_tui.traces.columns import KeptTexts, OpInputs, ReadingFacts, TraceColumns, Track
from magpie_tui.traces.identity import FORMAT, cache_key, cache_root, drop_oldest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

LIMIT_BYTES = 4 << 30
_ARRAYS = (
    "phase",
    "category",
    "name",
    "track",
    "ts_ns",
    "dur_ns",
    "device",
    "stream",
    "correlation",
    "external_id",
    "op_row",
    "op_dims",
    "op_types",
    "op_strides",
    "op_concrete",
    "kept_row",
    "kept_end",
    "kept_rows_of_block",
    "kept_bytes_of_block",
    "kept_data",
)
_STRINGS = ("categories", "names", "streams", "texts", "tracks")

_log = logging.getLogger(__name__)


def load(path: Path, *, salvage: bool) -> TraceColumns | None:
    """Return the cached columns of a trace, or None."""
    for kind in {False, salvage}:
        key = cache_key(path, salvage=kind)
        if key is None:
            return None
        index_path = cache_root() / f"{key}.json"
        try:
            index = json.loads(index_path.read_bytes())
            columns = _mapped(path, index_path.with_suffix(".arrow"), index)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            if not isinstance(error, FileNotFoundError):
                _log.debug("ignoring a damaged cache entry of %s: %s", path, error)
            continue
        with contextlib.suppress(OSError):
            os.utime(index_path)
        return columns
    return None


def store(columns: TraceColumns, *, key: str) -> None:
    """Keep the columns; a full disk or an unwritable directory is no error of the analysis."""
    try:
        root = private_directory(cache_root())
        arrow_path = root / f"{key}.arrow"
        index = _written(columns, arrow_path)
        write_json(root / f"{key}.json", index, indent=None)
        prune(root)
    except (OSError, MagpieTuiError) as error:
        _log.info("the columns of %s were not cached: %s", columns.path, error)


def prune(root: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Delete the entries used longest ago until the rest fits, and what a crash has left."""
    drop_oldest([(index, index.with_suffix(".arrow")) for index in root.glob("*.json")], limit_bytes)
    old = time.time() - 3600
    for stray in (*root.glob(".*.tmp"), *root.glob("*.arrow")):
        with contextlib.suppress(OSError):
            if not stray.with_suffix(".json").exists() and stray.stat().st_mtime < old:
                stray.unlink()


def _arrays(columns: TraceColumns) -> dict[str, npt.NDArray[Any]]:
    import numpy as np

    kept = columns.kept.blocks
    plain: dict[str, npt.NDArray[Any]] = {name: getattr(columns, name) for name in _ARRAYS[:10]}
    ops = columns.ops
    plain.update(op_row=ops.row, op_dims=ops.dims, op_types=ops.types, op_strides=ops.strides, op_concrete=ops.concrete)
    plain["kept_row"] = np.concatenate([rows for rows, _ends, _data in kept]) if kept else np.empty(0, np.int32)
    plain["kept_end"] = np.concatenate([ends for _rows, ends, _data in kept]) if kept else np.empty(0, np.int32)
    plain["kept_rows_of_block"] = np.array([len(rows) for rows, _ends, _data in kept], np.int64)
    plain["kept_bytes_of_block"] = np.array([len(data) for _rows, _ends, data in kept], np.int64)
    plain["kept_data"] = np.frombuffer(b"".join([data for _rows, _ends, data in kept]), np.uint8)
    return plain


def _written(columns: TraceColumns, path: Path) -> dict[str, Any]:
    """Write the Arrow file and return its index. Arrays are written from where they lie, without a copy."""
    import numpy as np
    import pyarrow as pa

    def as_list(flat: pa.Array) -> pa.Array:
        limits = pa.py_buffer(np.array([0, len(flat)], np.int64))
        return pa.LargeListArray.from_buffers(pa.large_list(flat.type), 1, [None, limits], children=[flat])

    # pa.array() would import pandas, which costs more than all the rest.
    dtypes: dict[str, str] = {}
    lists: list[pa.Array] = []
    for name, values in _arrays(columns).items():
        dtypes[name] = str(values.dtype)
        kind = pa.from_numpy_dtype(values.dtype)
        buffer = pa.py_buffer(np.ascontiguousarray(values))
        lists.append(as_list(pa.Array.from_buffers(kind, len(values), [None, buffer])))
    for texts in _strings(columns).values():
        encoded = [text.encode("utf-8", "replace") for text in texts]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
        lists.append(as_list(pa.LargeStringArray.from_buffers(len(encoded), *buffers[1:])))
    batch = pa.RecordBatch.from_arrays(lists, names=[*_ARRAYS, *_STRINGS])
    with atomic_writer(path) as file:
        counted = _CheckedFile(file)
        with pa.ipc.new_file(pa.PythonFile(counted, mode="w"), batch.schema) as writer:
            writer.write_batch(batch)
    del batch, lists
    with pa.memory_map(str(path)) as source:
        read = pa.ipc.open_file(source).get_batch(0)
        base = _base_address(source)
        index: dict[str, Any] = {
            "format": FORMAT,
            "metadata": json.loads(json.dumps(columns.metadata, allow_nan=True), parse_constant=lambda _name: None),
            "facts": dataclasses.asdict(columns.facts),
            "bytes": counted.size,
            "crc32": counted.crc32,
            "arrays": {name: [dtypes[name], *_place(read.column(name).values, base)] for name in _ARRAYS},
            "strings": {name: _string_place(read.column(name).values, base) for name in _STRINGS},
        }
        del read
    return index


def _base_address(source: Any) -> int:
    """Address at which a memory-mapped file begins."""
    source.seek(0)
    address: int = source.read_buffer(1).address
    return address


class _CheckedFile:
    """A file to write to that also counts and sums up what is written.

    Arrow asks for these methods.
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = 0
        self.crc32 = 0

    def write(self, data: bytes) -> int:
        """Write and sum up."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self.crc32 = _crc32(view, self.crc32)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        """How much was written."""
        return self.size

    def flush(self) -> None:
        """Pass on."""
        self._file.flush()

    def close(self) -> None:
        """The file belongs to somebody else."""


def _place(values: pa.Array, base: int) -> list[int]:
    return [values.buffers()[1].address - base, len(values)] if len(values) else [0, 0]


def _string_place(values: pa.Array, base: int) -> list[int]:
    _validity, offsets, data = values.buffers()
    if not len(values):
        return [0, 0, 0]
    return [len(values), offsets.address - base, data.address - base if data is not None and data.size else 0]


def _strings(columns: TraceColumns) -> dict[str, Sequence[str]]:
    return {
        "categories": columns.categories,
        "names": columns.names,
        "streams": columns.streams,
        "texts": columns.ops.texts,
        "tracks": [json.dumps([track.pid, track.tid]) for track in columns.tracks],
    }


def _crc32(data: memoryview, start: int = 0) -> int:
    try:
        from isal.isal_zlib import crc32
    except ImportError:
        from zlib import crc32
    return int(crc32(data, start))


def _mapped(path: Path, arrow_path: Path, index: dict[str, Any]) -> TraceColumns:
    """Build columns over the mapped file.

    Raises:
        ValueError, KeyError, TypeError, OSError: The pair is damaged.
    """
    import numpy as np

    with arrow_path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = memoryview(mapping)
    if index["format"] != FORMAT or len(view) != index["bytes"] or _crc32(view) != index["crc32"]:
        raise ValueError("the cache entry is not what was written")

    def array(name: str) -> npt.NDArray[Any]:
        dtype, offset, count = index["arrays"][name]
        return np.frombuffer(mapping, np.dtype(dtype), count, offset) if count else np.empty(0, np.dtype(dtype))

    def strings(name: str) -> list[str]:
        count, offsets_at, data_at = index["strings"][name]
        if not count:
            return []
        offsets = np.frombuffer(mapping, np.int64, count + 1, offsets_at).tolist()
        text = bytes(view[data_at : data_at + offsets[-1]])
        if text.isascii():
            whole = text.decode("ascii")
            return [whole[a:b] for a, b in itertools.pairwise(offsets)]
        return [text[a:b].decode("utf-8") for a, b in itertools.pairwise(offsets)]

    facts = index["facts"]
    facts["wrapped_rows"] = tuple(facts["wrapped_rows"])
    plain: dict[str, Any] = {name: array(name) for name in _ARRAYS}
    return TraceColumns(
        path=path,
        metadata=index["metadata"],
        **{name: plain[name] for name in _ARRAYS[:10]},
        categories=strings("categories"),
        names=strings("names"),
        tracks=[Track(*json.loads(text)) for text in strings("tracks")],
        streams=strings("streams"),
        ops=OpInputs(
            row=plain["op_row"],
            dims=plain["op_dims"],
            types=plain["op_types"],
            strides=plain["op_strides"],
            concrete=plain["op_concrete"],
            texts=strings("texts"),
        ),
        kept=_kept(plain),
        facts=ReadingFacts(**facts),
    )


def _kept(plain: dict[str, npt.NDArray[Any]]) -> KeptTexts:
    data = plain["kept_data"]
    blocks: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], bytes | memoryview]] = []
    row = byte = 0
    for rows, size in zip(plain["kept_rows_of_block"].tolist(), plain["kept_bytes_of_block"].tolist(), strict=True):
        part = slice(row, row + rows)
        blocks.append((plain["kept_row"][part], plain["kept_end"][part], data[byte : byte + size].data))
        row += rows
        byte += size
    return KeptTexts([int(rows[0]) for rows, _ends, _data in blocks], blocks)
