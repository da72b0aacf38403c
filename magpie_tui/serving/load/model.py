"""What a load is, and what came back: plans, rows, the health of the client.

Times of a result are seconds after ``LoadResult.origin`` (the start of the measured part) on the machine's monotonic
clock; those of the warm-up are negative. A time that was not observed is ``None``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Endpoint = Literal["completions", "chat"]
RowStatus = Literal["completed", "failed", "cancelled"]
RowPart = Literal["warmup", "measured"]

REQUESTS_NAME = "requests.jsonl"
LOAD_NAME = "load.json"
LOAD_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """So many requests are in flight at any time; the next is sent when one ends. Hides queueing.

    Attributes:
        concurrency: Requests in flight.
    """

    concurrency: int
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True, slots=True)
class ConstantRate:
    """One request every ``1 / requests_per_s`` seconds, whatever the server does.

    Attributes:
        concurrency: Most requests in flight; None: no limit. A request that waits for a slot counts from its schedule.
    """

    requests_per_s: float
    concurrency: int | None = None
    kind: Literal["constant"] = "constant"


@dataclass(frozen=True, slots=True)
class GammaRate:
    """Gaps between requests drawn from a gamma distribution of mean ``1 / requests_per_s``.

    Attributes:
        burstiness: Shape of the distribution: 1 is a Poisson process, below 1 comes in bursts, above 1 is more even.
        concurrency: As in ``ConstantRate``.
    """

    requests_per_s: float
    burstiness: float = 1.0
    concurrency: int | None = None
    kind: Literal["gamma"] = "gamma"


@dataclass(frozen=True, slots=True)
class Replay:
    """Requests at recorded times.

    Attributes:
        path: JSON lines (``timestamp`` in s or ms as ``unit`` says) or one number a line.
        unit: Of the times in the file.
        speed: 2.0 replays twice as fast.
        concurrency: As in ``ConstantRate``.
    """

    path: Path
    unit: Literal["s", "ms"] = "s"
    speed: float = 1.0
    concurrency: int | None = None
    kind: Literal["replay"] = "replay"


Arrival = ClosedLoop | ConstantRate | GammaRate | Replay


@dataclass(frozen=True, slots=True)
class RandomPrompts:
    """Prompts of random content, so that no prefix cache can hold them.

    Attributes:
        input_min, input_max: Tokens of the prompt, drawn evenly from this range, both ends included.
        form: ``tokens`` sends token ids (exact; completions only), ``words`` sends text whose length is calibrated
            against the server's own count; ``auto`` takes tokens for completions and words for chat.
        token_low, token_high: Range of the token ids; the upper end is left out.
        shared_prefix: Tokens (or words) that all prompts begin with, to load a prefix cache on purpose.
    """

    input_min: int
    input_max: int
    form: Literal["auto", "tokens", "words"] = "auto"
    token_low: int = 1000
    token_high: int = 4000
    shared_prefix: int = 0
    kind: Literal["random"] = "random"


@dataclass(frozen=True, slots=True)
class FixedPrompt:
    """The same text every time."""

    text: str
    kind: Literal["fixed"] = "fixed"


@dataclass(frozen=True, slots=True)
class PromptFile:
    """Prompts of a file, in order, again from the start when it ends.

    Attributes:
        path: One prompt a line, or JSON lines of strings or of objects with ``prompt`` (text, token ids) or
            ``messages``, and optionally ``output_len`` or ``max_tokens``.
        shuffle: Order by the seed.
    """

    path: Path
    shuffle: bool = False
    kind: Literal["file"] = "file"


@dataclass(frozen=True, slots=True)
class ShareGptFile:
    """First turns of conversations in ShareGPT's JSON form, in an order given by the seed.

    Attributes:
        path: A JSON list of objects with ``conversations: [{"from": "human", "value": …}, …]``.
    """

    path: Path
    kind: Literal["sharegpt"] = "sharegpt"


Prompts = RandomPrompts | FixedPrompt | PromptFile | ShareGptFile


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """A load, complete: the same plan and seed send the same requests.

    Attributes:
        base_url: ``http://host:port``, with or without a final ``/v1``.
        model: Name that the server lists.
        requests: Measured requests.
        output_min, output_max: ``max_tokens``, drawn evenly, both ends included; a prompt file may override it.
        ignore_eos: Ask for exactly ``max_tokens`` (``ignore_eos`` is an extension of vLLM, SGLang and Atom).
        warmup_requests: Sent before, with other seeds, ``min(concurrency, warmup_requests)`` at a time; kept in the
            rows as ``warmup``.
        timeout_s: Of one request; it fails then.
        headers: Sent with every request (``Authorization: Bearer …``); kept out of every file.
        sampling: Further keys of the request's body.
        stream: False asks for one answer at the end; then there is no TTFT.
        extra_path: Path of the endpoint where it is not ``/v1/completions`` or ``/v1/chat/completions``.
    """

    base_url: str
    endpoint: Endpoint
    model: str
    requests: int
    arrival: Arrival
    prompts: Prompts
    output_min: int
    output_max: int
    ignore_eos: bool = True
    seed: int = 0
    warmup_requests: int = 0
    timeout_s: float = 600.0
    headers: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, object] = field(default_factory=lambda: {"temperature": 0.0})
    stream: bool = True
    extra_path: str | None = None


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request, one line of ``requests.jsonl``.

    Attributes:
        index: Position in its part, from 0.
        scheduled_s: When it was to be sent: by the arrival process, or (closed loop) when its slot was free.
        sent_s: When its bytes were handed to the kernel.
        waited_s: Time it waited for a free slot, where the load has a limit of requests in flight.
        connect_s: Time for opening its connection, which lies before ``sent_s``; None when it was open already.
        first_content_s: First chunk with content that is not empty.
        last_content_s: Last chunk with content; for an answer that does not stream the end of the body.
        ended_s: End of the response, or of waiting for it.
        prompt_tokens, output_tokens, cached_tokens: From the server's usage.
        requested_input, requested_output: Tokens asked for; the input is None where prompts come as text.
        chunks: Chunks with content.
        coalesced: Those that arrived in one read with an earlier one, so their gap says nothing.
        gaps_us: Gaps between chunks with content, in µs.
        error: What went wrong; None when completed.
        finish_reason: As the server gives it.
        streamed: The server answered with an event stream.
    """

    part: RowPart
    index: int
    status: RowStatus
    scheduled_s: float
    sent_s: float | None = None
    waited_s: float = 0.0
    connect_s: float | None = None
    first_content_s: float | None = None
    last_content_s: float | None = None
    ended_s: float | None = None
    http_status: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    requested_input: int | None = None
    requested_output: int | None = None
    chunks: int = 0
    coalesced: int = 0
    gaps_us: tuple[int, ...] = ()
    finish_reason: str | None = None
    streamed: bool = True
    error: str | None = None

    @property
    def latency_s(self) -> float | None:
        """E2EL: last content minus scheduled send; None unless completed."""
        if self.status != "completed" or self.last_content_s is None:
            return None
        return self.last_content_s - self.scheduled_s

    @property
    def service_latency_s(self) -> float | None:
        """Last content minus actual send; the difference to ``latency_s`` is queueing in the client."""
        if self.status != "completed" or self.last_content_s is None or self.sent_s is None:
            return None
        return self.last_content_s - self.sent_s

    @property
    def ttft_s(self) -> float | None:
        """First content minus scheduled send; None when the answer did not stream."""
        if self.status != "completed" or not self.streamed or self.first_content_s is None:
            return None
        return self.first_content_s - self.scheduled_s

    @property
    def tpot_s(self) -> float | None:
        """(E2EL - TTFT) / (output tokens - 1); None below two tokens."""
        latency, first, tokens = self.latency_s, self.ttft_s, self.output_tokens
        if latency is None or first is None or tokens is None or tokens < 2:
            return None
        return (latency - first) / (tokens - 1)


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """How busy the client itself was in the measured part.

    Attributes:
        cpu_share: CPU time of the thread that does the work / wall time; 1.0 is one core.
        cpu_share_peak: The same in its busiest second.
        loop_lag_p99_ms, loop_lag_max_ms: How late its own timer fired.
        send_lag_p50_ms, send_lag_p99_ms, send_lag_max_ms: Actual minus scheduled send.
        coalesced_share: Chunks that came in one read with an earlier one / all chunks.
        reconnects: Connections that the server had closed and that were opened again.
        client_bound: Why the client, not the server, may have been measured; empty when it was not.
        warnings: What else limits trust in single figures.
        library: HTTP library and loop with versions.
    """

    cpu_share: float | None = None
    cpu_share_peak: float | None = None
    loop_lag_p99_ms: float | None = None
    loop_lag_max_ms: float | None = None
    send_lag_p50_ms: float | None = None
    send_lag_p99_ms: float | None = None
    send_lag_max_ms: float | None = None
    coalesced_share: float | None = None
    reconnects: int = 0
    client_bound: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    library: str = ""

    @property
    def is_valid(self) -> bool:
        """True when the run may be judged."""
        return not self.client_bound


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is.

    Attributes:
        phase: ``connecting``, ``calibrating``, ``warmup``, ``measuring``, ``ended``.
        in_flight, completed, failed, total: Requests of the phase.
        elapsed_s: Since the phase began.
        output_tokens: Chunks with content so far (tokens are known at the end of a request only).
        ttft_ms, tokens_per_s: Median TTFT and chunk rate since the progress before; None when there was none.
    """

    phase: str
    in_flight: int
    completed: int
    failed: int
    total: int
    elapsed_s: float
    output_tokens: int = 0
    ttft_ms: float | None = None
    tokens_per_s: float | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Everything that a load brought.

    Attributes:
        plan: What was asked, without headers.
        requests: Measured rows, by index.
        warmup: Rows of the warm-up.
        client: Health of the client.
        started_at, ended_at: UTC, ISO 8601, of the measured part.
        first_send_s, last_response_s: Window of the throughputs; None when nothing was sent or answered.
        stopped: Why it ended before its plan; None when it did not.
        connect_ms: Median time to open a connection.
    """

    plan: LoadPlan
    requests: tuple[RequestRow, ...]
    client: ClientHealth
    warmup: tuple[RequestRow, ...] = ()
    started_at: str | None = None
    ended_at: str | None = None
    first_send_s: float | None = None
    last_response_s: float | None = None
    stopped: str | None = None
    connect_ms: float | None = None

    @property
    def completed(self) -> tuple[RequestRow, ...]:
        """Rows of requests that were answered in full."""
        return tuple(row for row in self.requests if row.status == "completed")

    @property
    def failed(self) -> tuple[RequestRow, ...]:
        """Rows of requests that were not, cancelled ones included."""
        return tuple(row for row in self.requests if row.status != "completed")

    @property
    def first_error(self) -> str | None:
        """Text of the first failure."""
        return next((row.error for row in self.requests if row.error), None)
