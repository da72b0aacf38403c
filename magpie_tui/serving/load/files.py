"""A plan as JSON, and the two files of a result: one row a request, and everything about the load as a whole."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import msgspec

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import atomic_writer, write_json
from magpie_tui.serving.load.model import (
    LOAD_NAME,
    LOAD_SCHEMA_VERSION,
    REQUESTS_NAME,
    Arrival,
    ClientHealth,
    Endpoint,
    LoadPlan,
    LoadResult,
    Prompts,
    RandomPrompts,
    RequestRow,
)

_NOT_IN_A_HEADER = "\r\n\x00"


def check_plan(plan: LoadPlan) -> None:
    """Refuse what cannot be sent.

    Raises:
        UserInputError: With the key that is wrong.
    """
    url = urlsplit(plan.base_url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UserInputError(f"{plan.base_url!r} is no address of a server", hint="http://host:port", key="base_url")
    if url.username or url.password:
        raise UserInputError("a password in the address would be written to files", key="base_url")
    for key, value in (("requests", plan.requests), ("output_min", plan.output_min)):
        if value < 1:
            raise UserInputError(f"{key} must be at least 1, not {value}", key=key)
    if plan.output_max < plan.output_min:
        raise UserInputError(f"output_max {plan.output_max} is below output_min {plan.output_min}", key="output_max")
    if plan.warmup_requests < 0:
        raise UserInputError("warmup_requests cannot be negative", key="warmup_requests")
    if not plan.timeout_s > 0:
        raise UserInputError(f"a timeout must be above 0 s, not {plan.timeout_s}", key="timeout_s")
    for name, header in plan.headers.items():
        if any(character in name + header for character in _NOT_IN_A_HEADER) or ":" in name or not name.isascii():
            raise UserInputError(f"the header {name!r} cannot be sent", key="headers")
    _check_arrival(plan.arrival)
    if isinstance(plan.prompts, RandomPrompts):
        _check_random(plan, plan.prompts)


def _check_arrival(arrival: Arrival) -> None:
    concurrency = arrival.concurrency
    if concurrency is not None and concurrency < 1:
        raise UserInputError(f"concurrency must be at least 1, not {concurrency}", key="concurrency")
    for key in ("requests_per_s", "burstiness", "speed"):
        value = getattr(arrival, key, 1.0)
        if not (value > 0 and math.isfinite(value)):
            raise UserInputError(f"{key} must be above 0, not {value}", key=key)


def _check_random(plan: LoadPlan, prompts: RandomPrompts) -> None:
    if prompts.input_min < 1 or prompts.input_max < prompts.input_min:
        raise UserInputError(
            f"input lengths of {prompts.input_min} to {prompts.input_max} tokens make no sense", key="input_min"
        )
    if not 0 <= prompts.token_low < prompts.token_high <= 2**31:
        raise UserInputError("the range of token ids is empty", key="token_low")
    if prompts.form == "tokens" and plan.endpoint == "chat":
        raise UserInputError("the chat endpoint takes text, not token ids", key="form")


def encode_plan(plan: LoadPlan) -> bytes:
    """Return the plan as JSON, headers included: for a pipe, not for a file."""
    return msgspec.json.encode(plan, enc_hook=str)


def _tagged_plan(data: Mapping[str, object]) -> LoadPlan:
    """Read a plan: the words in ``kind`` say which arrival and which prompts it has."""
    values = dict(data)
    for key, classes in (("arrival", get_args(Arrival)), ("prompts", get_args(Prompts))):
        raw = values.pop(key)
        kind = raw.get("kind") if isinstance(raw, dict) else None
        chosen = next((item for item in classes if item.__dataclass_fields__["kind"].default == kind), None)
        if chosen is None:
            raise UserInputError(f"{kind!r} is no {key} of a load", key=key)
        values[key] = msgspec.convert(raw, chosen, dec_hook=_path)
    converted = msgspec.convert(
        {name: value for name, value in values.items() if name not in ("arrival", "prompts")}, _PlainPlan
    )
    return LoadPlan(
        arrival=values["arrival"],  # type: ignore[arg-type]
        prompts=values["prompts"],  # type: ignore[arg-type]
        **{name: getattr(converted, name) for name in converted.__struct_fields__},
    )


class _PlainPlan(msgspec.Struct):
    """The fields of a plan that are plain values."""

    base_url: str
    endpoint: Endpoint
    model: str
    requests: int
    output_min: int
    output_max: int
    ignore_eos: bool = True
    seed: int = 0
    warmup_requests: int = 0
    timeout_s: float = 600.0
    headers: dict[str, str] = {}
    sampling: dict[str, object] = {}
    stream: bool = True
    extra_path: str | None = None


def _path(kind: type, value: object) -> object:
    if kind is Path:
        return Path(str(value))
    raise NotImplementedError


def decode_plan(data: bytes) -> LoadPlan:
    """Read a plan that ``encode_plan`` wrote.

    Raises:
        UserInputError: It is none.
    """
    try:
        value = msgspec.json.decode(data)
        return _tagged_plan(value)
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, AttributeError, TypeError) as error:
        raise UserInputError(f"this is no plan of a load: {error}") from error


def write_rows(path: Path, rows: Iterable[RequestRow]) -> None:
    """Write one JSON line a request, atomically.

    Raises:
        MachineError: The disk is full or the directory cannot be written.
    """
    encoder = msgspec.json.Encoder()
    with atomic_writer(path) as file:
        for row in rows:
            file.write(encoder.encode(row))
            file.write(b"\n")


def write_result(directory: Path, result: LoadResult) -> None:
    """Write ``requests.jsonl`` (warm-up first) and ``load.json``; headers are left out.

    Raises:
        MachineError: The disk is full or the directory cannot be written.
    """
    write_rows(directory / REQUESTS_NAME, (*result.warmup, *result.requests))
    plan = dataclasses.asdict(dataclasses.replace(result.plan, headers={}))
    values = {
        field.name: plan if field.name == "plan" else getattr(result, field.name)
        for field in dataclasses.fields(result)
        if field.name not in ("requests", "warmup")
    }
    write_json(directory / LOAD_NAME, {"schema_version": LOAD_SCHEMA_VERSION, **values})


def read_rows(path: Path) -> tuple[tuple[RequestRow, ...], tuple[RequestRow, ...]]:
    """Return the rows of the warm-up and of the measured part.

    Raises:
        UserInputError: The file cannot be read, or a line is no row.
    """
    decoder = msgspec.json.Decoder(RequestRow)
    rows = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    rows.append(decoder.decode(line))
                except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
                    raise UserInputError(
                        f"this line is no row of a request: {error}", path=path, line=number
                    ) from error
    except OSError as error:
        raise UserInputError(f"the rows of the requests cannot be read: {error.strerror}", path=path) from error
    return tuple(row for row in rows if row.part == "warmup"), tuple(row for row in rows if row.part == "measured")


class _ResultFile(msgspec.Struct):
    """``load.json`` without its plan."""

    plan: dict[str, object]
    client: msgspec.Raw
    started_at: str | None = None
    ended_at: str | None = None
    first_send_s: float | None = None
    last_response_s: float | None = None
    stopped: str | None = None
    connect_ms: float | None = None


def read_result(directory: Path) -> LoadResult:
    """Read what ``write_result`` wrote.

    Raises:
        UserInputError: A file is missing or damaged.
    """
    path = directory / LOAD_NAME
    try:
        value = msgspec.json.decode(path.read_bytes(), type=_ResultFile)
        client = msgspec.json.decode(value.client, type=ClientHealth)
        plan = _tagged_plan(value.plan)
    except OSError as error:
        raise UserInputError(f"the load cannot be read: {error.strerror}", path=path) from error
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, RecursionError) as error:
        raise UserInputError(f"this is no record of a load: {error}", path=path) from error
    except UserInputError as error:
        raise UserInputError(f"this is no record of a load: {error.message}", path=path) from error
    warmup, measured = read_rows(directory / REQUESTS_NAME)
    return LoadResult(
        plan=plan,
        requests=measured,
        client=client,
        warmup=warmup,
        started_at=value.started_at,
        ended_at=value.ended_at,
        first_send_s=value.first_send_s,
        last_response_s=value.last_response_s,
        stopped=value.stopped,
        connect_ms=value.connect_ms,
    )
