"""Serves the reference: makes inputs, computes what is true, compares what candidates wrote. Loads no candidate."""

from __future__ import annotations

import socket
from typing import Any

from magpie_tui.kernels.harness import frames, numbers, structured, variants
from magpie_tui.kernels.harness.aliasing import shared
from magpie_tui.kernels.harness.carry import Carried, read_value, write_value
from magpie_tui.kernels.harness.limits import describe_error, limit_memory
from magpie_tui.kernels.harness.loading import as_arguments, best_device, seed_generators, to_device
from magpie_tui.kernels.harness.references import ComputedReference, SavedReference, copied, leaves


class Expected:
    """One set of inputs and what the reference makes of it.

    Attributes:
        arguments: The inputs.
        native: Leaves in the reference's own precision: (place, tensor).
        numbers: For each leaf whether the reference returned a plain number there.
        doubles: Their values when computed in float64; None where that does not work, with ``doubles_note`` saying why.
        exact: The values that count, under the rules of the kernel that is judged now; empty until they are settled.
        precision: Of these: ``float64``, or ``native`` with ``note`` saying why.
        sizes: For each leaf the size that its bound follows; computed when it is first compared.
        factors: For each leaf how far the reference's own rounding widens a starting point.
        shared: Outputs of the reference that lie in the memory of its inputs or of each other, by place.
        floors: The smallest normal number counts as zero: kernels may flush what is below it.
    """

    def __init__(self, arguments: list[Any], seed: int, *, floors: bool = False) -> None:
        self.arguments = arguments
        self.floors = floors
        self.shared: list[list[str]] = []
        self.seed = seed
        self.native: list[Any] = []
        self.numbers: list[bool] = []
        self.doubles: list[Any] | None = None
        self.doubles_note: str | None = None
        self.exact: list[Any] = []
        self.precision = "float64"
        self.note: str | None = None
        self.sizes: dict[int, float] = {}
        self.factors: list[float] = []

    def size(self, index: int) -> float:
        """Return the size that the bound of a leaf follows."""
        if index not in self.sizes:
            self.sizes[index] = numbers.size_of(self.exact[index])
        return self.sizes[index]


def _same_bytes(first: Any, second: Any) -> bool:
    import torch

    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    one, other = first.detach().contiguous().cpu().reshape(-1), second.detach().contiguous().cpu().reshape(-1)
    return bool(torch.equal(one.view(torch.uint8), other.view(torch.uint8))) if one.numel() else True


def _as_tensor(leaf: Any, device: str) -> Any:
    import torch

    if isinstance(leaf, torch.Tensor):
        return leaf
    return torch.tensor(leaf, device=device)


class JudgeServer:
    """The reference in its own process; the parent drives it request by request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reference: ComputedReference | SavedReference | None = None
        self._source: str | None = None
        self._configured: dict[str, dict[str, float | None]] = {}
        self._in_place = False
        self._threads = 1
        self._sets: dict[str, Expected] = {}

    def serve(self) -> None:
        """Answer requests until the parent hangs up."""
        reader = frames.FrameReader()
        while True:
            request = frames.receive(self._connection, reader)
            if request is None:
                return
            try:
                answer = getattr(self, f"_do_{request['do']}")(request)
            # A reference may raise anything; the parent must learn of it as a failure on our side, not the candidate's.
            except BaseException as error:
                answer = describe_error(error, self._source)
            frames.send(self._connection, answer)

    @property
    def reference(self) -> ComputedReference | SavedReference:
        """The reference; loaded first."""
        if self._reference is None:
            raise RuntimeError("no reference is loaded")
        return self._reference

    def _do_load(self, request: dict[str, Any]) -> dict[str, Any]:
        import torch

        # Comparing is a few passes over memory: one thread, so that a busy machine's threads wait for none of its own.
        torch.set_num_threads(1)
        self._threads = request.get("threads") or 1
        if best_device() == "cpu":  # GPU drivers map far more than they use
            limit_memory(request.get("memory_bytes"))
        self._source = request["source"]
        self._configured = request["tolerance"]
        self._in_place = request["in_place"]
        self._reference = SavedReference(request) if request["kind"] == "saved" else ComputedReference(request)
        return {**self._reference.facts(), "torch": torch.__version__}

    def _do_carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.reference.carry_out(request)

    def _do_settings(self, request: dict[str, Any]) -> dict[str, Any]:
        """Take the tolerance and the in-place rule of the kernel that is judged next."""
        changed = self._in_place != request["in_place"]
        self._configured, self._in_place = request["tolerance"], request["in_place"]
        for expected in self._sets.values():
            expected.exact = []
            if changed:
                expected.native, expected.doubles = [], None
        return {}

    def _do_legal(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say whether the reference has a value (no NaN) everywhere for the set ``key``, and its precision."""
        expected = self._expected(request["key"])
        defined = not any(bool(exact.isnan().any()) for exact in expected.exact)
        return {"defined": defined, "precision": expected.precision}

    def _do_inputs(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make inputs (or adopt a file of inputs), remember them under ``key``, write them for the candidates."""
        if request.get("adopt"):
            arguments = as_arguments(read_value(request["adopt"]).value())
        else:
            arguments = to_device(self.reference.make_inputs(request["seed"], request.get("shape")), "cpu")
        if request.get("structure"):
            arguments = structured.with_structure(arguments, request["structure"])
        floors = request.get("structure") == "denormals"
        self._sets[request["key"]] = Expected(arguments, request["seed"], floors=floors)
        size = write_value(request["path"], arguments)
        read_value(request["path"]).value()  # what cannot be carried is told now
        return {"bytes": size}

    def _do_extents(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the extents that the inputs of the set ``key`` have, and whether they hold indices."""
        arguments = self._sets[request["key"]].arguments
        return {
            "extents": variants.extents(arguments),
            "leading": variants.leading_extents(arguments),
            "indices": variants.holds_indices(arguments),
        }

    def _do_derive(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make inputs from those of the set ``base`` and say whether the reference takes them.

        ``how`` is ``resized`` (dimensions of the extent ``old`` become ``new``), ``relaid`` (other strides) or
        ``touched`` (one element of each tensor changed).
        """
        base = self._sets[request["base"]]
        given = [copied(item) for item in base.arguments]
        if request["how"] == "resized":
            arguments = variants.resized(given, request["old"], request["new"])
        else:
            arguments = variants.relaid(given) if request["how"] == "relaid" else variants.touched(given, base.seed)
        expected = Expected(arguments, base.seed)
        self._sets[request["key"]] = expected
        try:
            self._compute(expected)
            self._settle(expected)
            why = "its result is not a number" if any(bool(item.isnan().any()) for item in expected.exact) else None
        # What a reference refuses is outside of its contract, whatever it raises.
        except Exception as error:
            why = f"{type(error).__name__}: {str(error)[:200]}"
        if why is not None:
            self._sets.pop(request["key"])
            return {"legal": False, "reason": why}
        size = write_value(request["path"], arguments)
        return {"legal": True, "bytes": size, "elements": sum(int(item.numel()) for item in expected.exact)}

    def _do_time(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the shortest of three calls of the reference on the set ``key``, in ns."""
        import torch

        expected, reference = self._sets[request["key"]], self.reference
        if isinstance(reference, SavedReference):
            raise TypeError("saved outputs take no time")
        torch.set_num_threads(self._threads)
        try:
            return {"ns": min(reference.timed(expected.arguments, expected.seed) for _ in range(3))}
        finally:
            torch.set_num_threads(1)

    def _do_drop(self, request: dict[str, Any]) -> dict[str, Any]:
        for key in request["keys"]:
            self._sets.pop(key, None)
        return {}

    def _run(self, compute: Any, expected: Expected) -> list[Any]:
        import torch

        torch.set_num_threads(self._threads)
        try:
            outputs, inputs_after = compute(expected.arguments, expected.seed)
        finally:
            torch.set_num_threads(1)
        expected.shared = shared(outputs, inputs_after)
        return leaves({"returned": outputs, "inputs": inputs_after} if self._in_place else outputs)

    def _expected(self, key: str) -> Expected:
        """Return the set ``key`` with the reference's outputs, computed on first use."""
        expected = self._sets[key]
        if not expected.native:
            self._compute(expected)
        if not expected.exact:
            self._settle(expected)
        return expected

    def _compute(self, expected: Expected) -> None:
        import torch

        device = self.reference.device
        found = self._run(self.reference.native, expected)
        expected.native = [(name, _as_tensor(leaf, device)) for name, leaf in found]
        expected.numbers = [not isinstance(leaf, torch.Tensor) for _name, leaf in found]
        try:
            computed = self._run(self.reference.exact, expected)
            expected.doubles = [numbers.exact_values(_as_tensor(leaf, device)) for _name, leaf in computed]
        # Many references cannot run in float64 (fixed dtypes, hand-written kernels): then their own precision counts.
        except Exception as error:
            expected.doubles = None
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            expected.doubles_note = f"the reference does not run in float64 ({reason})"

    def _settle(self, expected: Expected) -> None:
        """Take the float64 values where they belong to the native ones; widen the bounds by the native rounding."""
        native = [numbers.exact_values(tensor) for _name, tensor in expected.native]
        factors = [1.0] * len(native)
        note = expected.doubles_note
        expected.sizes = {}
        if expected.doubles is not None:
            note = self._why_not_double(expected, native, expected.doubles, factors)
        expected.note = note
        expected.precision = "float64" if note is None else "native"
        if note is not None:
            expected.sizes = {}
        expected.exact = native if expected.doubles is None or note is not None else expected.doubles
        expected.factors = factors if note is None else [1.0] * len(native)

    def _why_not_double(
        self, expected: Expected, native: list[Any], doubles: list[Any], factors: list[float]
    ) -> str | None:
        """Return why the float64 values do not count; None when they do, with ``factors`` filled in."""
        if [tensor.shape for tensor in native] != [tensor.shape for tensor in doubles]:
            return "the reference's outputs have other shapes in float64"
        for index, (own, exact) in enumerate(zip(native, doubles, strict=True)):
            tolerance = numbers.tolerance_for(_dtype_name(expected.native[index][1]), self._configured)
            if tolerance.origin == "exact":
                if not bool((own == exact).all()):
                    return "exact outputs differ between float64 and the reference's own precision"
                continue
            if tolerance.origin != "dtype":
                continue
            expected.sizes[index] = numbers.size_of(exact)
            worst = numbers.deviation(own, exact, tolerance, expected.sizes[index])["worst"]
            same = numbers.nonfinite_mismatch(own, exact)["count"] == 0
            if not same or worst is None or 2 * worst > numbers.widest_factor(tolerance):
                return "the reference's own precision is too far from its float64 result"
            factors[index] = max(1.0, 2 * worst)
        return None

    def _tolerance(self, expected: Expected, index: int) -> numbers.Tolerance:
        tolerance = numbers.tolerance_for(_dtype_name(expected.native[index][1]), self._configured)
        tolerance.factor = expected.factors[index] if tolerance.origin == "dtype" else 1.0
        if expected.floors and tolerance.origin != "exact":
            # Each element that goes into a result may have been flushed.
            inputs = [leaf for _name, leaf in leaves(expected.arguments) if hasattr(leaf, "numel")]
            terms = sum(int(leaf.numel()) for leaf in inputs) / max(1, int(expected.native[index][1].numel()))
            tolerance.atol += numbers.smallest_normal(expected.native[index][1]) * max(1.0, terms)
        return tolerance

    def _do_discriminates(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say for each output which impostors its bound would let pass, and whether it is finite."""
        expected = self._expected(request["key"])
        outputs = []
        for index, (name, tensor) in enumerate(expected.native):
            tolerance = self._tolerance(expected, index)
            exact = expected.exact[index]
            outputs.append(
                {
                    "name": name,
                    "dtype": _dtype_name(tensor),
                    "shape": list(tensor.shape),
                    "elements": int(exact.numel()),
                    "finite": int(exact.isfinite().sum()),
                    "nan": int(exact.isnan().sum()),
                    "accepted": numbers.accepted_impostors(exact, tolerance, exact=tolerance.origin == "exact"),
                    "tolerance": tolerance.facts(),
                }
            )
        return {"outputs": outputs, "precision": expected.precision, "note": expected.note}

    def _do_varies(self, request: dict[str, Any]) -> dict[str, Any]:
        """Change one input at a time and say which of them the reference's outputs do not follow."""
        import torch

        expected = self._expected(request["key"])
        before = [tensor for _name, tensor in expected.native]
        ignored, tried = [], []
        seed_generators(expected.seed ^ 0x5EED)
        flat = [(name, leaf) for name, leaf in leaves(expected.arguments) if isinstance(leaf, torch.Tensor)]
        for name, leaf in flat:
            changed = structured.perturbed(leaf)
            if _same_bytes(changed, leaf):
                continue
            saved = copied(leaf)
            leaf.copy_(changed)
            try:
                outputs, _after = self.reference.native(expected.arguments, expected.seed)
            finally:
                leaf.copy_(saved)
            after = [_as_tensor(item, self.reference.device) for _name, item in leaves(outputs)]
            tried.append(name)
            if len(after) == len(before) and all(_same_bytes(old, new) for old, new in zip(before, after, strict=True)):
                ignored.append(name)
        return {"tried": tried, "ignored": ignored}

    def _do_check(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compare what a candidate wrote with what is true for the set ``key``."""
        expected = self._expected(request["key"])
        answer: dict[str, Any] = {"precision": expected.precision, "note": expected.note, "outputs": [], "form": []}
        answer["may_share"] = expected.shared
        try:
            carried = read_value(request["outputs"])
            if carried.tree.keys() != {"dict"}:
                raise ValueError("no outputs")
        # The file comes from the candidate's process: whatever is wrong with it is the candidate's result.
        except Exception as error:
            answer["form"].append(f"its outputs cannot be read ({type(error).__name__}: {str(error)[:200]})")
            return answer
        other = _first_other(carried.tree)
        if other is not None:
            answer["form"].append(f"it returned a value of type {other}, which is no tensor")
            return answer
        value = carried.value(self.reference.device)
        answer["mutated"] = self._mutated(value["inputs_after"], expected) if value["inputs_after"] else None
        judged = {"returned": value["outputs"], "inputs": value["inputs_after"]} if self._in_place else value["outputs"]
        got = leaves(judged)
        answer["form"] = self._wrong_form(got, carried, expected, any_strides=bool(request.get("any_strides")))
        if answer["form"]:
            return answer
        for index, (name, leaf) in enumerate(got):
            tolerance = self._tolerance(expected, index)
            output = numbers.exact_values(_as_tensor(leaf, self.reference.device))
            exact = expected.exact[index]
            found = numbers.deviation(output, exact, tolerance, expected.size(index))
            answer["outputs"].append(
                {
                    "name": name,
                    "dtype": _dtype_name(expected.native[index][1]),
                    "tolerance": tolerance.facts(),
                    "nonfinite": numbers.nonfinite_mismatch(output, exact),
                    "deviation": found,
                    "within": numbers.within(found),
                }
            )
        return answer

    def _mutated(self, inputs_after: list[Any], expected: Expected) -> list[str]:
        import torch

        after = dict(leaves(inputs_after))
        return [
            name
            for name, leaf in leaves(expected.arguments)
            if isinstance(leaf, torch.Tensor) and not _same_bytes(leaf, after[name].cpu())
        ]

    def _wrong_form(
        self, got: list[Any], carried: Carried, expected: Expected, *, any_strides: bool = False
    ) -> list[str]:
        """Say what is wrong with number, places, kinds, shapes, dtypes, devices, strides or storage of the outputs."""
        import torch

        wrong: list[str] = []
        names, wanted = [name for name, _leaf in got], [name for name, _leaf in expected.native]
        if names != wanted:
            return [f"it returned {_counted(names)} instead of {_counted(wanted)}"]
        for (name, leaf), (_name, reference), number in zip(got, expected.native, expected.numbers, strict=True):
            place = f"output{name}"
            if not isinstance(leaf, torch.Tensor):
                if not number or leaf is None or isinstance(leaf, str):
                    wrong.append(f"{place} is {leaf!r:.60} instead of a {'number' if number else 'tensor'}")
                continue
            known = carried.facts_of(leaf)
            for what, found, needed in (
                ("shape", known["shape"], list(reference.shape)),
                ("dtype", known["dtype"], _dtype_name(reference)),
                ("device", known["device"], reference.device.type),
                ("layout", known["layout"], str(reference.layout).rpartition(".")[2]),
            ):
                if found != needed:
                    wrong.append(f"{place} has {what} {found} instead of {needed}")
            if known["attributes"]:
                wrong.append(f"{place} carries attributes of its own ({', '.join(known['attributes'][:4])})")
            if known["lazy"] or not known["memory"]:
                wrong.append(f"{place} {'is a lazy view' if known['lazy'] else 'has no memory'}")
            if not known["plain"]:
                wrong.append(f"{place} is of the type {known['type']} instead of a plain tensor")
            if (
                known["strides"] is not None
                and reference.layout is torch.strided
                and known["shape"] == list(reference.shape)
            ):
                wrong += _wrong_memory(place, known, None if any_strides else reference)
        return wrong


def _wrong_memory(place: str, known: dict[str, Any], reference: Any) -> list[str]:
    strides = [stride for stride, extent in zip(known["strides"], known["shape"], strict=True) if extent > 1]
    if reference is None:
        return [f"{place} is a view that repeats its elements (strides {known['strides']})"] if 0 in strides else []
    wanted = [stride for stride, extent in zip(reference.stride(), reference.shape, strict=True) if extent > 1]
    if 0 in strides:
        return [f"{place} is a view that repeats its elements (strides {known['strides']})"]
    if strides != wanted:
        return [f"{place} has strides {known['strides']} instead of {list(reference.stride())}"]
    return []


def _dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _counted(names: list[str]) -> str:
    if not names:
        return "nothing"
    if names == [""]:
        return "one tensor"
    return f"{len(names)} values ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})"


def _first_other(tree: Any) -> str | None:
    """Return the name of the first type in a carried tree that is no tensor, number or container."""
    ((kind, value),) = tree.items()
    if kind == "other":
        return str(value)
    if kind in ("list", "tuple"):
        children = value
    elif kind == "dict":
        children = [item for _key, item in value]
    else:
        return None
    return next((found for found in map(_first_other, children) if found is not None), None)
