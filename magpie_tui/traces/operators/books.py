"""Which ops count as modelled: those of the reference, or all that we have a model for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.model import Model
from magpie_tui.traces.models.registry import (
    family_of,
    find_backward_model,
    find_model,
    gives_way,
    reference_drops,
    reference_models,
    reference_models_call,
)
from magpie_tui.traces.operators.recorded import Recorded

if TYPE_CHECKING:
    from magpie_tui.traces.operators.forest import Forest
    from magpie_tui.traces.operators.tree import Tree

ATTENTION = "InferenceAttention"
"""Category of the ops whose work follows from the label of the step around them."""


@dataclass(frozen=True, slots=True)
class ModelBook:
    """Answers about models, remembered by name.

    Attributes:
        upstream: Only what the reference models counts.
    """

    upstream: bool
    _names: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    _inputs: dict[tuple[str, int], bool] = field(default_factory=dict, repr=False, compare=False)

    def has_model(self, name: str, code: int, recorded: Callable[[], Recorded | None]) -> bool:
        """Say whether an op has a model.

        Args:
            code: Stands for its recorded inputs.
            recorded: Gives them; asked for only where the answer depends on them.
        """
        if not self.may_have_model(name):
            return False
        if not self.asks_for_inputs(name):
            return True
        # Kernels of Inductor count as modelled only where their arguments can be read.
        key = (name, code)
        if key not in self._inputs:
            self._inputs[key] = self._readable(name, recorded())
        return self._inputs[key]

    def asks_for_inputs(self, name: str) -> bool:
        """Say whether it depends on the recorded inputs of an op if it has a model."""
        return self.upstream and name.startswith("triton")

    def may_have_model(self, name: str) -> bool:
        """Say whether some ops of this name have a model."""
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = self._by_name(name)
        return known

    def _by_name(self, name: str) -> bool:
        if self.upstream:
            return reference_models(name)
        return not gives_way(name) and find_model(bare_arguments(name)) is not None

    def _readable(self, name: str, recorded: Recorded | None) -> bool:
        return reference_models_call(call_arguments(name, recorded))

    def model_of(self, arguments: OperatorArguments, *, backward_of: str | None = None) -> Model | None:
        """Model of a call; with ``backward_of`` that of the backward of a forward op."""
        if backward_of is not None:
            return find_backward_model(backward_of)
        return find_model(arguments)

    def has_leaf_model(self, name: str) -> bool:
        """Say whether an op below which nothing has a model has one that counts then."""
        return not self.upstream and gives_way(name) and find_model(bare_arguments(name)) is not None

    def drops(self, name: str) -> bool:
        """Say whether rows of this op are left out."""
        return self.upstream and reference_drops(name)

    def category(self, name: str, kernel: str) -> str:
        """Op category by name, or by the first kernel."""
        return family_of(name, (kernel,) if kernel else ())


def bare_arguments(name: str) -> OperatorArguments:
    """Arguments of which only the name is known."""
    return OperatorArguments(name, (), (), (), (), {}, None, ())


def call_arguments(name: str, recorded: Recorded | None) -> OperatorArguments:
    """Arguments as recorded, without what lies around the call."""
    if recorded is None:
        return bare_arguments(name)
    return OperatorArguments(name, recorded.dims, recorded.types, recorded.strides, recorded.concrete, {}, None, ())


def model_test(forest: Forest, book: ModelBook) -> Callable[[Tree, int], bool]:
    """Say of the nodes of a forest whether they have a model."""
    import numpy as np

    def code_of(tree: Tree, node: int) -> int:
        return int(forest.inputs.codes_of(tree.columns, np.array([tree.row[node]], np.int64))[0])

    def test(tree: Tree, node: int) -> bool:
        name = tree.name[node]
        if not book.may_have_model(name):
            return False
        if not book.asks_for_inputs(name):
            return True
        code = code_of(tree, node)
        return book.has_model(name, code, lambda: forest.inputs[code])

    return test
