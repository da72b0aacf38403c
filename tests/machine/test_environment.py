"""Secrets never reach a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.machine.environment import REDACTED, is_secret_name, redact, redact_command, redact_text


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "OPENAI_API_KEY",
        "apikey",
        "DB_PASSWORD",
        "PGPASSWORD",
        "SSH_PRIVATE_KEY",
        "GITHUB_PAT",
        "SESSION_COOKIE",
        "NPM_AUTH",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "KEY",
        "MY_PASS",
    ],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)
    assert redact({name: "value"}) == {name: REDACTED}


@pytest.mark.parametrize(
    "name",
    ["PATH", "PWD", "HOME", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "CUDA_VISIBLE_DEVICES", "TP", "CONC"],
)
def test_harmless_names(name: str) -> None:
    assert not is_secret_name(name)
    assert redact({name: "value"}) == {name: "value"}


def test_tokens_and_passwords_inside_harmless_values() -> None:
    environment = {
        "HTTP_PROXY": "http://user:pw@proxy:3128",
        "EXTRA": "--hf hf_abcdefghijklmnopqrstuvwxyz0123 end",
        "GIT": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "PLAIN": "http://proxy:3128/a@b",
    }
    cleaned = redact(environment)
    assert cleaned["HTTP_PROXY"] == f"http://{REDACTED}@proxy:3128"
    assert cleaned["EXTRA"] == f"--hf {REDACTED} end"
    assert cleaned["GIT"] == REDACTED
    assert cleaned["PLAIN"] == environment["PLAIN"]


def test_an_empty_secret_stays_empty_and_names_are_sorted() -> None:
    assert list(redact({"Z": "1", "HF_TOKEN": ""}).items()) == [("HF_TOKEN", ""), ("Z", "1")]


def test_command_lines() -> None:
    command = ("vllm", "serve", "--api-key", "abc", "--api-key=abc", "HF_TOKEN=abc", "--max-num-seqs", "16", "m")
    assert redact_command(command) == (
        "vllm",
        "serve",
        "--api-key",
        REDACTED,
        f"--api-key={REDACTED}",
        f"HF_TOKEN={REDACTED}",
        "--max-num-seqs",
        "16",
        "m",
    )
    assert redact_command(("x", "--api-key", "--next", "v")) == ("x", "--api-key", "--next", "v")


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=30)))
def test_redaction_keeps_every_name_and_is_stable(environment: dict[str, str]) -> None:
    once = redact(environment)
    assert set(once) == set(environment)
    assert redact(once) == once


@given(st.text(alphabet="abcdefghij0123456789", min_size=20, max_size=40))
def test_no_token_survives_in_any_text(secret: str) -> None:
    assert f"hf_{secret}" not in redact_text(f"before hf_{secret} after")
