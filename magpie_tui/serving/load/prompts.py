"""What is sent: contents and lengths, the same for the same plan and seed."""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from magpie_tui.basics.errors import UserInputError
from magpie_tui.serving.load.model import FixedPrompt, LoadPlan, PromptFile, RandomPrompts, RowPart, ShareGptFile

_WORDS_TEXT = (  # common, so that most are one token
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father "
    "power hour game line end member law car city name team minute idea body back parent face level office door "
    "health person art war history party result change morning reason research girl guy moment air teacher force order"
)
_WORDS = tuple(_WORDS_TEXT.split())


@dataclass(frozen=True, slots=True)
class Calibration:
    """Tokens of a text of random words, as the server counts them: ``fixed + per_word * words``."""

    fixed: float = 0.0
    per_word: float = 1.0

    def words(self, tokens: int) -> int:
        """Return how many words make about so many tokens; at least one."""
        return max(1, round((tokens - self.fixed) / self.per_word))


@dataclass(frozen=True, slots=True)
class Prompt:
    """The content of one request.

    Attributes:
        content: Text, token ids, or chat messages.
        requested_input: Tokens asked for; None where the text decides.
        output: ``max_tokens``.
    """

    content: str | list[int] | list[dict[str, object]]
    requested_input: int | None
    output: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request ready to be sent: the JSON of its body, and what it asks for."""

    body: bytes
    requested_input: int | None
    output: int


def uses_words(plan: LoadPlan) -> bool:
    """True when prompts are random text whose length has to be calibrated."""
    prompts = plan.prompts
    if not isinstance(prompts, RandomPrompts) or prompts.form == "tokens":
        return False
    return prompts.form == "words" or plan.endpoint == "chat"


_SHORT, _LONG, _REPEATS = 8, 24, 3


def calibration_texts() -> tuple[str, str, str]:
    """Return the texts whose tokens the server is to count: one word 8 and 24 times, and every word 3 times."""
    one = _WORDS[0]
    return " ".join([one] * _SHORT), " ".join([one] * _LONG), " ".join(_WORDS * _REPEATS)


def calibrate(counted: Sequence[int]) -> Calibration | None:
    """Return what the server's counts of ``calibration_texts`` tell; None where they make no sense."""
    if len(counted) != 3 or counted[1] <= counted[0]:
        return None
    short, long, every = counted
    fixed = short - _SHORT * (long - short) / (_LONG - _SHORT)
    per_word = (every - fixed) / (len(_WORDS) * _REPEATS)
    return Calibration(fixed, per_word) if per_word > 0 else None


def random_words(generator: random.Random, count: int) -> str:
    """Return so many random words."""
    return " ".join(generator.choices(_WORDS, k=count))


def random_tokens(generator: random.Random, count: int, low: int, high: int) -> list[int]:
    """Return so many random token ids of ``low`` … ``high - 1``; fast for long prompts.

    Without numpy, whose threads would spin in the process that measures.
    """
    drawn = array("I", generator.randbytes(4 * count))
    if sys.byteorder == "big":
        drawn.byteswap()
    span = high - low
    return [low + (value * span >> 32) for value in drawn]


def prompts_of(plan: LoadPlan, part: RowPart, count: int, calibration: Calibration) -> list[Prompt]:
    """Return the contents of ``count`` requests; those of the warm-up differ from the measured ones.

    Raises:
        UserInputError: A file of prompts cannot be read or has none.
    """
    outputs = _outputs(plan, part, count)
    prompts = plan.prompts
    if isinstance(prompts, RandomPrompts):
        return _random_prompts(plan, prompts, part, outputs, calibration)
    if isinstance(prompts, FixedPrompt):
        return [Prompt(prompts.text, None, output) for output in outputs]
    if isinstance(prompts, PromptFile):
        read = read_prompt_file(prompts.path)
        shuffled = prompts.shuffle
    else:
        read = read_sharegpt(prompts)
        shuffled = True
    if shuffled:
        random.Random(f"{plan.seed}:order").shuffle(read)
    # The warm-up takes from the end, so that the measured requests are not in the prefix cache already.
    chosen = [read[index % len(read)] if part == "measured" else read[-1 - index % len(read)] for index in range(count)]
    return [
        Prompt(item.content, item.requested_input, item.output or output)
        for item, output in zip(chosen, outputs, strict=True)
    ]


def _outputs(plan: LoadPlan, part: RowPart, count: int) -> list[int]:
    generator = random.Random(f"{plan.seed}:{part}:outputs")
    return [generator.randint(plan.output_min, plan.output_max) for _ in range(count)]


def _random_prompts(
    plan: LoadPlan, prompts: RandomPrompts, part: RowPart, outputs: Sequence[int], calibration: Calibration
) -> list[Prompt]:
    lengths = random.Random(f"{plan.seed}:{part}:inputs")
    contents = random.Random(f"{plan.seed}:{part}:contents")
    shared = random.Random(f"{plan.seed}:shared")
    words = uses_words(plan)
    low, high = prompts.token_low, prompts.token_high
    prefix = [] if words else random_tokens(shared, prompts.shared_prefix, low, high)
    prefix_words = random_words(shared, prompts.shared_prefix) + " " if words and prompts.shared_prefix else ""
    made = []
    for output in outputs:
        length = lengths.randint(prompts.input_min, prompts.input_max)
        own = max(1, length - prompts.shared_prefix)
        content: str | list[int]
        if words:
            content = prefix_words + random_words(contents, calibration.words(own))
        else:
            content = prefix + random_tokens(contents, own, low, high)
        made.append(Prompt(content, length, output))
    return made


@dataclass(frozen=True, slots=True)
class _Read:
    content: str | list[int] | list[dict[str, object]]
    requested_input: int | None = None
    output: int | None = None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserInputError(f"the prompts cannot be read: {error.strerror}", path=path) from error


def read_prompt_file(path: Path) -> list[_Read]:
    """Return the prompts of a file: one a line, or JSON lines.

    Raises:
        UserInputError: It cannot be read, holds none, or a JSON line has no prompt.
    """
    found = []
    for number, line in enumerate(_bytes_of(path).splitlines(), 1):
        text = line.decode("utf-8", "replace").strip()
        if text:
            found.append(_prompt_of(text, path, number))
    if not found:
        raise UserInputError("the file holds no prompt", path=path)
    return found


def _prompt_of(text: str, path: Path, number: int) -> _Read:
    if text[0] not in '{"':
        return _Read(text)
    try:
        value = msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return _Read(text)
    if isinstance(value, str):
        return _Read(value)
    output = value.get("output_len", value.get("max_tokens", value.get("output_length")))
    output = output if isinstance(output, int) and not isinstance(output, bool) and output > 0 else None
    content = value.get("messages", value.get("prompt", value.get("text")))
    if isinstance(content, str) and content:
        return _Read(content, None, output)
    if isinstance(content, list) and content:
        if all(isinstance(item, int) for item in content):
            return _Read(content, len(content), output)
        if all(isinstance(item, dict) for item in content):
            return _Read(content, None, output)
    raise UserInputError(
        "this line has no prompt", path=path, line=number, hint='an object with "prompt" or "messages", or plain text'
    )


def read_sharegpt(source: ShareGptFile) -> list[_Read]:
    """Return the first human turn of every conversation.

    Raises:
        UserInputError: The file is no list of conversations, or has no human turn.
    """
    try:
        value = msgspec.json.decode(_bytes_of(source.path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserInputError(f"the conversations are no JSON: {error}", path=source.path) from error
    found = []
    for item in value if isinstance(value, list) else []:
        turns = item.get("conversations", item.get("conversation")) if isinstance(item, dict) else None
        for turn in turns if isinstance(turns, list) else []:
            if isinstance(turn, dict) and turn.get("from", turn.get("role")) in ("human", "user"):
                text = turn.get("value", turn.get("content"))
                if isinstance(text, str) and text.strip():
                    found.append(_Read(text))
                break
    if not found:
        raise UserInputError(
            "no conversation with a human turn was found",
            path=source.path,
            hint='a list of objects with "conversations": [{"from": "human", "value": …}]',
        )
    return found


def prepare(plan: LoadPlan, prompt: Prompt) -> Prepared:
    """Return the body of one request.

    Raises:
        UserInputError: Token ids or messages for an endpoint that does not take them.
    """
    body: dict[str, object] = {"model": plan.model}
    content = prompt.content
    is_messages = isinstance(content, list) and bool(content) and isinstance(content[0], dict)
    if plan.endpoint == "chat":
        if isinstance(content, list) and not is_messages:
            raise UserInputError("the chat endpoint takes text, not token ids", hint="use form: words, or completions")
        body["messages"] = content if is_messages else [{"role": "user", "content": content}]
    elif is_messages:
        raise UserInputError("the completions endpoint takes no messages", hint="use the chat endpoint")
    else:
        body["prompt"] = content
    body["max_tokens"] = prompt.output
    if plan.ignore_eos:
        body["ignore_eos"] = True
    body.update(plan.sampling)
    body["stream"] = plan.stream
    if plan.stream:
        body["stream_options"] = {"include_usage": True}
    return Prepared(msgspec.json.encode(body), prompt.requested_input, prompt.output)
