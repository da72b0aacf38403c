"""vLLM, SGLang and Atom, each as one small description of how it is started, profiled, asked and stopped."""

from __future__ import annotations

from magpie_tui.basics.errors import UserInputError
from magpie_tui.serving.engines.model import Engine

ENGINE_NAMES = ("vllm", "sglang", "atom")


def engine_named(name: str) -> Engine:
    """Return the description of a framework.

    Raises:
        UserInputError: It is none that serves (``xdit`` is an offline program).
    """
    if name == "vllm":
        from magpie_tui.serving.engines.vllm import VLLM

        return VLLM
    if name == "sglang":
        from magpie_tui.serving.engines.sglang import SGLANG

        return SGLANG
    if name == "atom":
        from magpie_tui.serving.engines.atom import ATOM

        return ATOM
    raise UserInputError(
        f"{name} is not served by this engine",
        key="framework",
        hint=f"one of {', '.join(ENGINE_NAMES)}; upstream's own `magpie benchmark` runs the others",
    )
