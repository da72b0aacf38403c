"""Configs and their problems as rows and plain values for both faces; secrets are blanked out."""

from __future__ import annotations

import json
from collections.abc import Sequence

from magpie_tui.basics.json_strict import to_plain
from magpie_tui.basics.redact import REDACTED, is_secret_name, redact_command, redact_text
from magpie_tui.basics.text import plural
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.check import FileCheck
from magpie_tui.configs.difference import Change, ConfigDifference
from magpie_tui.configs.effective import EffectiveConfig
from magpie_tui.configs.kernel import KernelConfig
from magpie_tui.configs.positions import Origin, Problem, Setting, Value
from magpie_tui.configs.review import Review

JsonObject = dict[str, object]


def safe_value(setting: Setting) -> Value:
    """Return the value of a setting with secrets blanked out."""
    name = setting.key.rsplit(".", 1)[-1]
    if isinstance(setting.value, str):
        is_variable = ".env." in f".{setting.key}" or setting.key.startswith("envs.")
        if is_variable and is_secret_name(name):
            return REDACTED if setting.value else ""
    return _safe(setting.value)


def _safe(value: Value) -> Value:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, tuple):
        texts = tuple(item for item in value if isinstance(item, str))
        if len(texts) == len(value):
            return tuple(redact_text(item) for item in redact_command(texts))
        return tuple(_safe(item) for item in value)
    if isinstance(value, dict):
        return {
            key: REDACTED if isinstance(item, str) and item and is_secret_name(key) else _safe(item)
            for key, item in value.items()
        }
    return value


def value_text(setting: Setting | None) -> str:
    """Return a value in one unambiguous line: texts bare where that is clear, all else as JSON."""
    if setting is None:
        return "(absent)"
    value = safe_value(setting)
    if isinstance(value, str) and value and value.strip() == value and value.isprintable():
        plain_word = value not in ("null", "true", "false") and not value[0].isdigit() and value[0] not in '[{"-'
        return value if plain_word else json.dumps(value, ensure_ascii=False)
    return json.dumps(to_plain(value), ensure_ascii=False)


def problem_json(problem: Problem) -> JsonObject:
    """Return a problem as in ``config check --json``; its path is that of the file."""
    return {
        "line": problem.line,
        "column": problem.column,
        "severity": problem.severity,
        "code": problem.code,
        "message": problem.message,
        "expected": problem.expected,
        "found": problem.found,
        "hint": problem.hint,
    }


def checks_json(checks: Sequence[FileCheck]) -> JsonObject:
    """Return what ``config check --json`` prints."""
    files = [
        {
            "path": str(check.path),
            "problems": [problem_json(problem) for problem in check.problems],
        }
        for check in checks
    ]
    return {"files": files}


def check_summary(check: FileCheck) -> str:
    """Return one line about a file: ``ok (kernel config, 2 kernels)`` or ``2 errors, 1 warning``."""
    errors = len(check.errors)
    warnings = len(check.problems) - errors
    counts = [plural(errors, "error")] if errors else []
    if warnings:
        counts.append(plural(warnings, "warning"))
    what = f"{check.kind} config" if check.kind else "unknown config"
    if isinstance(check.config, KernelConfig) and not errors:
        what += f", {plural(len(check.config.kernels), 'kernel')}"
    if isinstance(check.config, BenchmarkConfig) and not errors:
        what += ", clean" if check.config.is_clean else ", profiled"
    verdict = ", ".join(counts) if errors else "ok" + (f", {counts[0]}" if counts else "")
    return f"{verdict} ({what})"


def origin_json(origin: Origin) -> JsonObject:
    """Return an origin as a plain object."""
    return {
        "kind": origin.kind,
        "path": None if origin.path is None else str(origin.path),
        "line": origin.line,
        "column": origin.column,
        "detail": origin.detail,
    }


def _setting_json(setting: Setting) -> JsonObject:
    return {"key": setting.key, "value": to_plain(safe_value(setting)), "origin": origin_json(setting.origin)}


def effective_json(config: EffectiveConfig) -> JsonObject:
    """Return what ``config show --json`` prints."""
    return {
        "path": str(config.path),
        "kind": config.kind,
        "settings": [_setting_json(setting) for setting in config.settings.values()],
        "problems": [problem_json(problem) for problem in config.problems],
    }


def change_json(change: Change) -> JsonObject:
    """Return one difference as a plain object."""
    sides = (change.first, change.second)
    first, second = (None if side is None else _setting_json(side) for side in sides)
    return {"key": change.key, "a": first, "b": second}


def difference_json(difference: ConfigDifference, first: EffectiveConfig, second: EffectiveConfig) -> JsonObject:
    """Return what ``config diff --json`` prints."""
    return {
        "a": str(first.path),
        "b": str(second.path),
        "kind": difference.kind,
        "equal": difference.is_empty,
        "groups": [
            {"name": group.name, "changes": [change_json(change) for change in group.changes]}
            for group in difference.groups
        ],
    }


def review_json(review: Review) -> JsonObject:
    """Return what ``config review --json`` prints."""
    return {
        "path": str(review.path),
        "kind": review.kind,
        "problems": [problem_json(problem) for problem in review.problems],
        "items": [to_plain(item) for item in review.items],
        "blockers": len(review.blockers),
    }
