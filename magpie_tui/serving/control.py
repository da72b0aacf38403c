"""Short questions to a server: its models, version, counters, and the switches of its profiler."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from magpie_tui.basics.errors import UserInputError

_MOST_BYTES = 64 << 20
_USUAL_TIMEOUT_S = 5.0


class ControlError(Exception):
    """The server did not answer, or with an error; the text is for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of a response."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        """2xx or 3xx, as upstream counts health."""
        return 200 <= self.status < 400

    def text(self, most: int = 300) -> str:
        """Beginning of the body."""
        return self.body[:most].decode("utf-8", "replace").strip()


def root_of(base_url: str) -> str:
    """Return the address without a final ``/v1`` or slash.

    Raises:
        UserInputError: It is no http or https address.
    """
    try:
        parts = urlsplit(base_url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("no http(s)://host[:port] address")
        _ = parts.port  # raises for one that is no number
    except ValueError as error:
        raise UserInputError(
            f"{base_url!r} is not the address of a server: {error}", hint="for instance http://127.0.0.1:8000"
        ) from error
    return base_url.strip().rstrip("/").removesuffix("/v1")


def call(
    base_url: str,
    path: str,
    *,
    method: str = "GET",
    body: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = _USUAL_TIMEOUT_S,
) -> Answer:
    """Send one request on a connection of its own; proxies of the environment are not asked.

    ``timeout_s`` bounds each wait for bytes, and the whole by twice that.

    Raises:
        ControlError: No answer, a broken one, or one that does not end.
    """
    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=timeout_s)
    sent = {"Content-Type": "application/json", **(headers or {})} if body is not None else dict(headers or {})
    deadline = time.monotonic() + 2 * timeout_s
    try:
        connection.request(method, f"{parts.path}{path}", None if body is None else json.dumps(dict(body)), sent)
        response = connection.getresponse()
        data = bytearray()
        while piece := response.read1(1 << 16):
            data += piece
            if len(data) > _MOST_BYTES or time.monotonic() > deadline:
                raise ControlError(f"{path} does not come to an end")
        return Answer(response.status, bytes(data))
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ControlError(f"{base_url}{path}: {_reason(error)}") from error
    finally:
        connection.close()


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text or type(error).__name__


def listed_models(base_url: str, path: str = "/v1/models", headers: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of the models that a server lists.

    Raises:
        ControlError: It does not answer, or not with a list of models.
    """
    answer = call(base_url, path, headers=headers)
    if answer.status != 200:
        raise ControlError(f"{path} answers with status {answer.status}: {answer.text(120)}")
    try:
        value = json.loads(answer.body)
        items = value["data"]
        return tuple(str(item["id"]) for item in items)
    except (ValueError, TypeError, KeyError) as error:
        raise ControlError(f"{path} answers with something that is no list of models: {answer.text(80)}") from error


def stated_version(base_url: str) -> str | None:
    """Return the version that a server states at ``/version`` or ``/get_server_info``; None when it does not."""
    for path in ("/version", "/get_server_info"):
        try:
            answer = call(base_url, path)
            value = json.loads(answer.body) if answer.status == 200 else None
        except (ControlError, ValueError):
            continue
        if isinstance(value, dict) and isinstance(value.get("version"), str):
            return str(value["version"])
    return None


def metrics_text(base_url: str, path: str = "/metrics", *, timeout_s: float = _USUAL_TIMEOUT_S) -> str | None:
    """Return the server's Prometheus text; None when it has none that can be read."""
    try:
        answer = call(base_url, path, timeout_s=timeout_s)
    except ControlError:
        return None
    return answer.body.decode("utf-8", "replace") if answer.status == 200 else None
