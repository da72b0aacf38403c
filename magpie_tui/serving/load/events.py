"""Events of a streamed answer: bytes of the body in, chunks of content, usage, errors and the end out.

An event is content only when it bears text that is not empty: the role of the first chat chunk, empty strings and the
final usage are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Any] | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    """Token counts of the server."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: Any = None
    object: Any = None
    message: Any = None


_DECODER = msgspec.json.Decoder(_Event)
_DONE = b"[DONE]"
_ERROR_TEXT_CHARACTERS = 300


def split_events(buffer: bytes) -> tuple[list[bytes], bytes]:
    """Return the data of the complete events in ``buffer`` and the bytes that are left (WHATWG HTML, 9.2.6).

    Comments, ids and event names are passed over; several data lines of one event are joined by line feeds.
    """
    if b"\r" in buffer:
        held = b"\r" if buffer.endswith(b"\r") else b""
        buffer = buffer[: len(buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
    *events, rest = buffer.split(b"\n\n")
    return [data for data in map(_data_of, events) if data], rest


def _data_of(event: bytes) -> bytes:
    if event.startswith(b"data: ") and b"\n" not in event:
        return event[6:]
    lines = []
    for line in event.split(b"\n"):
        if line.startswith(b"data:"):
            value = line[5:]
            lines.append(value[1:] if value.startswith(b" ") else value)
    return b"\n".join(lines)


def error_text(error: object) -> str:
    """Return one line for an error object of a server, whatever its form."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error.get("error") or error
        if isinstance(error, dict):
            return error_text(error) if "message" in error else str(error)[:_ERROR_TEXT_CHARACTERS]
    return " ".join(str(error).split())[:_ERROR_TEXT_CHARACTERS]


class StreamReader:
    """Takes the body of one streamed answer as it comes.

    Attributes:
        content_chunks: Chunks with content so far.
        done: ``[DONE]`` was seen.
        finish_reason: Of the last choice that gave one.
        usage: The last one given.
        error: Text of an error inside the stream, or of an event that could not be read.
    """

    __slots__ = ("_rest", "content_chunks", "done", "error", "finish_reason", "usage")

    def __init__(self) -> None:
        self._rest = b""
        self.content_chunks = 0
        self.done = False
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.error: str | None = None

    def feed(self, data: bytes) -> int:
        """Take the next bytes of the body; return how many chunks with content they completed."""
        events, self._rest = split_events(self._rest + data if self._rest else data)
        content = 0
        for event in events:
            content += self._take(event)
        self.content_chunks += content
        return content

    def end(self) -> int:
        """The body is over: take an event whose blank line is missing; return its chunks with content."""
        rest, self._rest = self._rest.strip(), b""
        return self.feed(rest + b"\n\n") if rest else 0

    def _take(self, data: bytes) -> int:
        if data == _DONE:
            self.done = True
            return 0
        try:
            event = _DECODER.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            shown = data[:80].decode("utf-8", "replace")
            self.error = self.error or f"an event that cannot be read ({error}): {shown}"
            return 0
        if event.usage is not None:
            self.usage = event.usage
        if event.error is not None or event.object == "error":
            self.error = self.error or error_text(event.error if event.error is not None else event.message)
            return 0
        content = 0
        for choice in event.choices:
            if choice.finish_reason is not None:
                self.finish_reason = choice.finish_reason
            if choice.text or (choice.delta is not None and _has_content(choice.delta)):
                content = 1
        return content


def _has_content(delta: _Delta) -> bool:
    return bool(delta.content or delta.reasoning_content or delta.reasoning or delta.tool_calls)


class WholeAnswer(msgspec.Struct, frozen=True):
    """An answer that came at once."""

    has_content: bool
    finish_reason: str | None
    usage: Usage | None
    error: str | None


def read_whole(body: bytes) -> WholeAnswer:
    """Read an answer that did not stream."""
    try:
        event = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        shown = body[:80].decode("utf-8", "replace")
        return WholeAnswer(False, None, None, f"an answer that cannot be read ({error}): {shown}")
    if event.error is not None:
        return WholeAnswer(False, None, event.usage, error_text(event.error))
    reasons = [choice.finish_reason for choice in event.choices if choice.finish_reason]
    content = any(
        choice.text or (choice.message is not None and _has_content(choice.message)) for choice in event.choices
    )
    if not event.choices:
        return WholeAnswer(False, None, event.usage, "an answer without choices")
    return WholeAnswer(content, reasons[-1] if reasons else None, event.usage, None)


def body_error(body: bytes) -> str:
    """Return what the body of a refusal says, in one line."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return error_text(body[:1000].decode("utf-8", "replace"))
    return error_text(value)


def iterate_data(body: bytes) -> Iterator[bytes]:
    """Yield the data of every event of a whole body, for readers of recorded streams."""
    events, rest = split_events(body + b"\n\n")
    yield from events
    if rest.strip():
        yield rest
