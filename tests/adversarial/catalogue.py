"""Which kernel of the corpus is caught by which check, and which honest kernel passes on the same task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.configs.kernel_model import Tolerance

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel of the corpus.

    Attributes:
        kernel: File in ``kernels/`` (``gpu_kernels/`` for those that need a GPU), without ``.py``.
        reference: File in ``references/``.
        check: The check that must fail; None for an honest kernel.
        word: State of the kernel.
        device: ``any``, ``cpu`` (reads memory by its address) or ``gpu``.
        entry: What its config says.
        settings: What differs from the corpus's settings of the gate.
    """

    kernel: str
    reference: str = "affine"
    check: str | None = None
    word: str = "incorrect"
    device: str = "any"
    entry: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        """The kernel's file."""
        return HERE / ("gpu_kernels" if self.device == "gpu" else "kernels") / f"{self.kernel}.py"

    @property
    def name(self) -> str:
        """Kernel and task."""
        return self.kernel if self.reference == "affine" else f"{self.kernel}-{self.reference}"


def honest(kernel: str, reference: str = "affine", *, device: str = "any", **more: object) -> Case:
    """Return a case that must pass with everything that the gate can do."""
    entry = more.pop("entry", {})
    settings = {"variants": 10, "growth": True, **more}
    return Case(kernel, reference, None, "correct", device, entry, settings)  # type: ignore[arg-type]


def _wrong(check: str, *kernels: str, reference: str = "affine", device: str = "any") -> tuple[Case, ...]:
    return tuple(Case(kernel, reference, check, device=device) for kernel in kernels)


SHAPES = {"variants": 10}

CHEATS: tuple[Case, ...] = (
    *_wrong("G2", "reads_reference", "imports_reference"),
    Case("zeros", "wide_softmax", "G3", "invalid", entry={"tolerance": {"*": Tolerance(atol=1e-2)}}),
    Case("zeros_of_one", "constant", "G4", "invalid"),
    *_wrong("G5", "wrong_dtype", "expanded_view", "lazy_subclass", "attributes_compute"),
    *_wrong("G6", "result_in_input", "old_buffer"),
    *_wrong("G7", "partial_write"),
    *_wrong("G7", "writes_beyond", "reads_beyond", "reads_before", "reads_littered", device="cpu"),
    *_wrong("G8", "mutates_input"),
    *_wrong("G9", "zeros", "constant", "scaled", "downcast", "biased"),
    *_wrong("G9", "hides_behind_outlier", reference="outlier"),
    *_wrong("G10", "nan_wildcard"),
    *_wrong("G11", "unshifted", reference="softmax"),
    *_wrong("G11", "clamped"),
    Case("multiple_of_four", check="G12", settings=SHAPES),
    Case("zero_size_crash", check="G12", settings=SHAPES),
    Case("ignores_strides", check="G12", settings=SHAPES),
    *_wrong("G13", "race", reference="rowsum"),
    *_wrong("G14", "wears_off", "drifts"),
    *_wrong("G15", "keyed_by_address", "keyed_by_object", "keyed_by_fingerprint"),
    *_wrong("G16", "writes_later", "works_on"),
    *_wrong("G18", "patches_clock", "patches_comparison", "patches_harness", "patches_code"),
    *_wrong("G19", "writes_results", "edits_harness", "signals_others"),
    *_wrong("G20", "skips_when_timed"),
    Case("remembers_content", "matmul", "G21", settings={"growth": True}),
    Case("needs_all_memory", check="G22", settings={"strain": True}),
)
"""Wrong or dishonest: the named check refuses each."""

BROKEN: tuple[Case, ...] = (
    Case("hangs", word="timeout", settings={"timeout_s": 4.0}),
    Case("eats_memory", word="resource"),
    Case("leaves_early", word="crashed"),
    Case("segfaults", word="crashed", device="cpu"),
)
"""They give no answer: told apart from wrong ones, and from failures of the reference (G23)."""

GPU_CHEATS: tuple[Case, ...] = (
    *_wrong("G1", "triton_falls_back", reference="vector", device="gpu"),
    *_wrong("G6", "graph_returns_its_buffer", device="gpu"),
    *_wrong(
        "G7",
        *("triton_unmasked_store", "triton_unmasked_load", "triton_drops_tail"),
        reference="vector",
        device="gpu",
    ),
    *_wrong("G9", "half_product", "reduced_precision", reference="large_matmul", device="gpu"),
    Case("triton_round_lengths", "round_vector", "G12", device="gpu", settings=SHAPES),
    Case("triton_ignores_strides", "round_vector", "G12", device="gpu", settings=SHAPES),
    Case("triton_atomic_sum", "long_sum", "G13", device="gpu", settings={"repeats": 20}),
    *_wrong("G16", "side_stream", device="gpu"),
    *_wrong("G17", "launch_fails", device="gpu"),
    *_wrong("G18", "patches_synchronize", "patches_events", device="gpu"),
)
"""These need a GPU; ``run_on_gpu.py`` runs them."""

GPU_HONEST: tuple[Case, ...] = (
    honest("triton_honest_add", "vector", device="gpu"),
    honest("triton_honest_add", "round_vector", device="gpu"),
    honest("triton_ordered_sum", "long_sum", device="gpu", variants=4, repeats=20),
    honest("triton_atomic_sum", "long_sum", device="gpu", entry={"deterministic": False}, variants=4),
    honest("graph_returns_a_copy", device="gpu", growth=False),
    honest("joined_streams", device="gpu"),
)

HONEST: tuple[Case, ...] = (
    honest("honest_affine", strain=True),
    honest("honest_softmax", "softmax"),
    honest("honest_softmax", "wide_softmax", growth=False),
    honest("honest_rowsum", "rowsum"),
    honest("honest_matmul", "matmul"),
    honest("honest_outlier", "outlier", growth=False),
    honest("honest_scratch", growth=False),
    honest("honest_threads", device="cpu", growth=False),
    honest("honest_refuses", growth=False),
    honest("honest_unordered", "rowsum", entry={"deterministic": False}, growth=False),
)
"""Twins of the cheats: the same tasks and the same means, used honestly."""
