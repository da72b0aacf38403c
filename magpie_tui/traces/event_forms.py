"""The fields of an event that become columns, as msgspec decodes them; field by field where their types are odd."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from magpie_tui.traces.decimals import MISSING, MISSING_TEXT
from magpie_tui.traces.repair import whole_number

NO_TEXT = msgspec.Raw(b"")
NO_TIME = msgspec.Raw(MISSING_TEXT)
NOTHING = msgspec.Raw(b"null")
_Loose = int | str | None


class Arguments(msgspec.Struct, gc=False, frozen=True):
    """What becomes a column of an event's ``args``."""

    external_id: _Loose = msgspec.field(name="External id", default=MISSING)
    old_external_id: _Loose = msgspec.field(name="external id", default=MISSING)
    correlation: _Loose = MISSING
    device: _Loose = None
    stream: _Loose = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NO_TEXT)
    types: msgspec.Raw = msgspec.field(name="Input type", default=NO_TEXT)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NO_TEXT)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NO_TEXT)


NO_ARGUMENTS = Arguments()


class Event(msgspec.Struct, gc=False):
    """An event whose duration is a JSON number or absent, as in nearly all files."""

    ph: str = ""
    cat: str = ""
    name: str | None = None
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: msgspec.Raw = NO_TIME
    dur: float = float("nan")
    id: _Loose = MISSING
    args: msgspec.Raw = NOTHING


class ExactEvent(msgspec.Struct, gc=False):
    """An event whose duration is kept as text."""

    ph: str = ""
    cat: str = ""
    name: str | None = None
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: msgspec.Raw = NO_TIME
    dur: msgspec.Raw = NO_TIME
    id: _Loose = MISSING
    args: msgspec.Raw = NOTHING


@dataclass(slots=True)
class Repairs:
    """What had to be repaired in one chunk."""

    not_objects: int = 0
    not_json: int = 0


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def loose_event(raw: msgspec.Raw, repairs: Repairs) -> ExactEvent:
    """Make an event of any JSON value: fields of the wrong type are read as far as they have a meaning."""
    try:
        fields = _FIELDS.decode(raw)
    except msgspec.ValidationError:
        repairs.not_objects += 1
        return ExactEvent()

    def value(key: str) -> Any:
        return json.loads(bytes(fields[key])) if key in fields else None

    name = value("name")
    return ExactEvent(
        ph=_text(value("ph")),
        cat=_text(value("cat")),
        name=None if name is None else _text(name),
        pid=_id_or_text(value("pid")),
        tid=_id_or_text(value("tid")),
        ts=fields.get("ts", NO_TIME),
        dur=fields.get("dur", NO_TIME),
        id=whole_number(value("id")),
        args=fields.get("args", NOTHING),
    )


def loose_arguments(raw: msgspec.Raw) -> Arguments:
    """Make arguments of any JSON value; what is no object has none."""
    try:
        fields = _FIELDS.decode(raw)
    except msgspec.ValidationError:
        return NO_ARGUMENTS

    def value(key: str) -> Any:
        return json.loads(bytes(fields[key])) if key in fields else None

    return Arguments(
        external_id=whole_number(value("External id")),
        old_external_id=whole_number(value("external id")),
        correlation=whole_number(value("correlation")),
        device=_id_or_text(value("device")),
        stream=_id_or_text(value("stream")),
        dims=fields.get("Input Dims", NO_TEXT),
        types=fields.get("Input type", NO_TEXT),
        strides=fields.get("Input Strides", NO_TEXT),
        concrete=fields.get("Concrete Inputs", NO_TEXT),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _id_or_text(value: object) -> int | str | None:
    if value is None or (isinstance(value, (int, str)) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return json.dumps(value)
