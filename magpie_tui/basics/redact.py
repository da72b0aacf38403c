"""Secrets taken out of what is kept: values are replaced by the name or by how they look, names stay."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

REDACTED = "<redacted>"

_SECRET_WORDS = frozenset(
    [
        "secret",
        "secrets",
        "password",
        "passwd",
        "passphrase",
        "credential",
        "credentials",
        "auth",
        "authorization",
        "cookie",
        "apikey",
        "pat",
    ]
)
_SECRET_ENDINGS = ("password", "passwd", "apikey")
"""Ends of words that are run together (``PGPASSWORD``)."""
_KEY_KINDS = frozenset(["api", "access", "private", "secret", "ssh", "signing", "account", "encryption"])
_NO_SECRET_AFTER_TOKEN = frozenset(["id", "ids", "count", "length", "limit", "budget", "throughput", "type"])
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_VALUE = re.compile(
    r"hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{12,}|xox[abprs]-[A-Za-z0-9-]{8,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|(?<=[Bb]earer )[A-Za-z0-9._~+/-]{8,}=*"
)
_URL_PASSWORD = re.compile(r"(?P<before>[a-z][a-z0-9+.-]*://[^\s/@:]*:)[^\s/@]+(?=@)", re.IGNORECASE)
_NAME_BEFORE_VALUE = re.compile(r"""(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)["']?[ \t]*[:=][ \t]*""")
_VALUE = re.compile(r"""(?P<quote>["'])(?P<inner>[^\n]*?)(?P=quote)|[^\s,}\]{\[#"'][^\s,}\]#]*""")
_NO_VALUES = frozenset({"null", "~", "None"})
_SHORTEST_KNOWN_SECRET = 6


def is_secret_name(name: str) -> bool:
    """True for names of variables, keys and options whose values are not to be kept (``HF_TOKEN``, ``--api-key``)."""
    words = [word.lower() for word in _WORD.findall(name)]
    for position, word in enumerate(words):
        before = words[position - 1] if position else ""
        after = words[position + 1] if position + 1 < len(words) else ""
        if word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS):
            return True
        if word == "pass" and not after and len(words) > 1:
            return True
        if word == "token" and after not in _NO_SECRET_AFTER_TOKEN:
            return True
        if word == "key" and (before in _KEY_KINDS or (not after and len(words) > 1)):
            return True
    return False


def redact_text(text: str) -> str:
    """Replace what looks like a secret anywhere in ``text``: known token forms, passwords in URLs, ``name: value``."""
    parts: list[str] = []
    done = 0
    for match in _NAME_BEFORE_VALUE.finditer(text):
        if match.start() < done or not is_secret_name(match["name"]):
            continue
        value = _VALUE.match(text, match.end())
        if value is None or value.group() in _NO_VALUES or value["inner"] == "":
            continue
        quote = value["quote"] or ""
        parts.append(f"{text[done : match.end()]}{quote}{REDACTED}{quote}")
        done = value.end()
    return redact_values("".join(parts) + text[done:])


def known_secrets(value: object) -> frozenset[str]:
    """Return the texts that stand under secret names anywhere in a tree, to be taken out wherever they occur."""
    found: set[str] = set()
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            for key, inner in item.items():
                if isinstance(inner, str) and len(inner) >= _SHORTEST_KNOWN_SECRET and is_secret_name(str(key)):
                    found.add(inner)
                elif not isinstance(inner, str):
                    pending.append(inner)
        elif isinstance(item, (list, tuple)):
            pending.extend(inner for inner in item if not isinstance(inner, str))
    return frozenset(found)


def without_known(value: object, secrets: frozenset[str]) -> object:
    """Return a JSON tree in which none of ``secrets`` occurs in a text."""
    if isinstance(value, Mapping):
        return {key: without_known(item, secrets) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_known(item, secrets) for item in value]
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):
            value = value.replace(secret, REDACTED)
    return value


def redact_values(text: str) -> str:
    """Replace only what is a secret by its form: known tokens and passwords in URLs; numbers and names stay."""
    return _SECRET_VALUE.sub(REDACTED, _URL_PASSWORD.sub(rf"\g<before>{REDACTED}", text))


def redact_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with the values of secret options replaced, in both forms ``--name V`` and ``--name=V``."""
    redacted: list[str] = []
    value_is_secret = False
    for argument in arguments:
        if value_is_secret and not argument.startswith("-"):
            redacted.append(REDACTED)
            value_is_secret = False
            continue
        name, separator, _value = argument.partition("=")
        is_option = name.startswith("-")
        if separator and is_secret_name(name):
            redacted.append(f"{name}={REDACTED}")
        else:
            redacted.append(redact_text(argument))
        value_is_secret = is_option and not separator and is_secret_name(name)
    return tuple(redacted)


def redact_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables sorted by name, secret values replaced."""
    return {
        name: REDACTED if is_secret_name(name) and environment[name] else redact_values(environment[name])
        for name in sorted(environment)
    }


def redact_tree(value: object) -> object:
    """Return a JSON tree with secret values replaced: those under secret names and those that look like secrets."""
    if isinstance(value, Mapping):
        return {
            key: REDACTED if is_secret_name(str(key)) and isinstance(item, (str, int)) and item else redact_tree(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, str) for item in value):
            return list(redact_command([str(item) for item in value]))
        return [redact_tree(item) for item in value]
    return redact_values(value) if isinstance(value, str) else value
