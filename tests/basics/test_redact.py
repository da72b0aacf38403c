"""Secrets taken out of command lines, environments, configs and texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.redact import (
    REDACTED,
    is_secret_name,
    known_secrets,
    redact_command,
    redact_environment,
    redact_text,
    redact_tree,
    without_known,
)


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "apiKey",
        "accessToken",
        "--api-key",
        "DB_PASSWORD",
        "SSH_KEY",
        "PGPASSWORD",
        "MYSQL_PASS",
        "OPENAI_API_KEY",
        "HUGGING_FACE_HUB_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "NPM_AUTH",
    ],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PWD",
        "KEY",
        "max_tokens",
        "TOKENIZERS_PARALLELISM",
        "EOS_TOKEN_ID",
        "KEYBOARD",
        "monkey",
        "--max-model-len",
    ],
)
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)


def test_command_lines() -> None:
    assert redact_command(["run", "--token", "abc", "HF_TOKEN=xyz", "--api-key=s", "--max-tokens", "5"]) == (
        "run",
        "--token",
        REDACTED,
        f"HF_TOKEN={REDACTED}",
        f"--api-key={REDACTED}",
        "--max-tokens",
        "5",
    )


def test_texts_keep_everything_else() -> None:
    text = (
        "model: a/b\nHF_TOKEN: hunter2 # mine\nurl: https://me:pw@host/x\nhead: Bearer abcdefghijkl\nx: hf_" + "a" * 20
    )
    redacted = redact_text(text)
    for secret in ("hunter2", "pw@", "abcdefghijkl", "hf_a"):
        assert secret not in redacted
    assert redacted.startswith("model: a/b\n") and "# mine" in redacted and "https://me:" in redacted


def test_environment_and_trees() -> None:
    assert redact_environment({"B": "1", "A_TOKEN": "x", "C_TOKEN": ""}) == {
        "A_TOKEN": REDACTED,
        "B": "1",
        "C_TOKEN": "",
    }
    tree = {"envs": {"HF_TOKEN": "x", "TP": 1}, "args": ["--token", "y"], "url": "http://a:b@c"}
    assert redact_tree(tree) == {
        "envs": {"HF_TOKEN": REDACTED, "TP": 1},
        "args": ["--token", REDACTED],
        "url": f"http://a:{REDACTED}@c",
    }


@given(st.text())
def test_no_text_upsets_it(text: str) -> None:
    redact_text(text)
    redact_text(f"A_TOKEN: {text}")
    is_secret_name(text)
    redact_command([text])


def test_known_secrets_are_taken_out_wherever_they_are() -> None:
    secrets = known_secrets(
        {"HF_TOKEN": "hunter22", "envs": [{"API_KEY": "abcdefgh", "X_KEY": "no"}], "TP": "hunter23"}
    )
    assert secrets == {"hunter22", "abcdefgh"}
    assert without_known({"a": ["x hunter22 y", 3]}, secrets) == {"a": [f"x {REDACTED} y", 3]}
