"""Why the times of two kernel workspaces cannot be put beside each other: another quantity, shape, flag or device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.extras import Extras
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.values import as_list, as_mapping, as_text

_CONDITIONS = {
    "quantity": "what was timed",
    "cache": "the state of the caches",
    "method": "the method",
    "reduction": "how stamps become one number",
    "device": "the device",
    "threads": "the number of threads",
    "torch": "the version of PyTorch",
    "process_start": "how processes start",
    "allocator": "what the allocator does with freed memory",
}
_FLAGS = ("compiling_command", "env", "kernel_type", "input_shapes", "shapes", "arguments", "grid", "block")


def obstacles(first: WorkspaceDetail, second: WorkspaceDetail) -> tuple[str, ...]:
    """Return what makes the times of two kernel workspaces incomparable, as sentences; empty when nothing does.

    What one side does not tell (upstream's workspaces tell none of it) is no difference.
    """
    a, b = first.report, second.report
    if a is None or b is None or isinstance(a, BenchmarkReport) or isinstance(b, BenchmarkReport):
        return ()
    found = list(_differing(_timing(a.extras), _timing(b.extras), _CONDITIONS))
    states_a, states_b = _by_id(a.kernels), _by_id(b.kernels)
    flags_a, flags_b = _entries(first), _entries(second)
    for name in states_a.keys() & states_b.keys():
        shapes = [_shapes(states[name]) for states in (states_a, states_b)]
        if shapes[0] != shapes[1] and (shapes[0] or shapes[1]):
            found.append(f"{name}: the shapes differ: {_said(shapes[0])} and {_said(shapes[1])}")
        for flag in _FLAGS:
            one, other = flags_a.get(name, {}).get(flag), flags_b.get(name, {}).get(flag)
            if name in flags_a and name in flags_b and one != other:
                found.append(f"{name}: {flag} differs: {_said(one)} and {_said(other)}")
    return tuple(found)


def _timing(extras: Extras | None) -> dict[str, object]:
    return as_mapping(None if extras is None else extras.timing)


def _differing(a: Mapping[str, object], b: Mapping[str, object], titles: Mapping[str, str]) -> Iterator[str]:
    for key, title in titles.items():
        one, other = a.get(key), b.get(key)
        if one is not None and other is not None and one != other:
            yield f"{title} differs: {_said(one)} and {_said(other)}"


def _by_id(kernels: Sequence[KernelState]) -> dict[str, KernelState]:
    return {state.kernel_id: state for state in kernels if state.kernel_id}


def _shapes(state: KernelState) -> list[str]:
    shapes = as_list(_timing(state.extras).get("shapes"))
    return sorted(text for item in shapes if (text := as_text(as_mapping(item).get("shape"))))


def _entries(detail: WorkspaceDetail) -> dict[str, Mapping[str, object]]:
    """Return the effective entries of the kernels by id, as the record holds them."""
    config = as_mapping(as_mapping(detail.record).get("effective_config"))
    entries = (as_mapping(item) for item in as_list(config.get("kernels")))
    return {name: entry for entry in entries if (name := as_text(entry.get("kernel_id")))}


def _said(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_said(item) for item in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_said(item)}" for name, item in value.items()) or "none"
    return "none" if value is None else str(value)
