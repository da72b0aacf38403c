"""Environment variables for records and screens, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

REDACTED = "<redacted>"
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|BEARER|(^|_)(KEY|KEYS|PASS|PWD|AUTH|APIKEY|PAT|SID)(_|$)"
    r"|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|SIGNATURE",
    re.IGNORECASE,
)
_HARMLESS = frozenset(
    {"PWD", "OLDPWD", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "XDG_SESSION_ID", "GPG_AGENT_INFO", "MAX_TOKENS"}
)
# user:password@ inside a URL; well-known shapes of tokens wherever they stand.
_URL_PASSWORD = re.compile(r"(?<=://)[^/\s@]+@")
_TOKEN_SHAPE = re.compile(
    r"\b(hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name holds a secret (TOKEN, KEY, SECRET, PASSWORD and the like are in its name)."""
    return name.upper() not in _HARMLESS and _SECRET_NAME.search(name) is not None


def redact_text(text: str) -> str:
    """Blank out passwords in URLs and strings in the form of well-known tokens."""
    return _TOKEN_SHAPE.sub(REDACTED, _URL_PASSWORD.sub(f"{REDACTED}@", text))


def redact(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy for records, sorted by name: values of secrets replaced whole, tokens inside other values blanked out.

    An empty secret stays empty, because it says that the variable is set to nothing.
    """
    return {
        name: (REDACTED if environment[name] else "") if is_secret_name(name) else redact_text(environment[name])
        for name in sorted(environment)
    }


def redact_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command line for records: values of options and assignments with secret names are blanked out.

    ``--api-key abc``, ``--api-key=abc`` and ``HF_TOKEN=abc`` are recognized.
    """
    cleaned: list[str] = []
    hide_next = False
    for argument in command:
        if hide_next and not argument.startswith("-"):
            cleaned.append(REDACTED)
            hide_next = False
            continue
        name, equals, _value = argument.partition("=")
        bare = name.lstrip("-").replace("-", "_")
        secret = bool(re.match(r"^-{0,2}[A-Za-z_][\w-]*$", name)) and is_secret_name(bare)
        hide_next = secret and not equals and argument.startswith("--")
        cleaned.append(f"{name}={REDACTED}" if secret and equals else redact_text(argument))
    return tuple(cleaned)
