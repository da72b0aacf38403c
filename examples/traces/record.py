"""Record the small serving-like traces that lie beside this script.

A tiny decoder with a KV cache runs prefill, mixed and decode steps under ``torch.profiler``. Every step carries the
annotation that vLLM writes (``execute_context_<requests>(<tokens>)_generation_<requests>(<tokens>)``), so that the
stage split works on the result as it does on a trace of a real server.

    python record.py cpu       --output .      eager, on the CPU
    python record.py eager     --output .      one GPU: eager steps, a Triton RMSNorm, an Inductor fusion
    python record.py graph     --output .      one GPU: decode steps replayed from a CUDA graph
    python record.py nccl      --output .      every GPU of the machine, one process each, NCCL all-reduce
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as distributed
import torch.nn.functional as functional
from torch.profiler import ProfilerActivity, profile, record_function

HIDDEN, HEADS, LAYERS, INTERMEDIATE, VOCABULARY, CONTEXT = 512, 8, 2, 1408, 4096, 160

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton is not None:

    @triton.jit
    def rms_norm_kernel(x_pointer, weight_pointer, y_pointer, columns, epsilon, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        offsets = tl.arange(0, BLOCK)
        inside = offsets < columns
        x = tl.load(x_pointer + row * columns + offsets, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_pointer + offsets, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + epsilon)
        tl.store(y_pointer + row * columns + offsets, (x * scale * weight).to(tl.bfloat16), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """RMSNorm over the last dimension: a Triton kernel on a GPU, ATen operators on the CPU."""
    if not x.is_cuda:
        return functional.rms_norm(x, (x.shape[-1],), weight)
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    y = torch.empty_like(rows)
    rms_norm_kernel[(rows.shape[0],)](rows, weight, y, rows.shape[1], 1e-6, BLOCK=triton.next_power_of_2(rows.shape[1]))
    return y.reshape(x.shape)


def silu_and_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up`` of a tensor that holds both halves in its last dimension."""
    gate, up = gate_up.chunk(2, dim=-1)
    return functional.silu(gate) * up


@dataclass
class Layer:
    """Weights and KV cache ``[requests, heads, context, head size]`` of one layer."""

    norm_attention: torch.Tensor
    qkv: torch.Tensor
    output: torch.Tensor
    norm_mlp: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor


class TinyDecoder:
    """A decoder of two layers; with several ranks, heads and the MLP are split and their outputs all-reduced."""

    def __init__(self, device: torch.device, requests: int, ranks: int = 1) -> None:
        self.ranks = ranks
        self.heads = HEADS // ranks
        self.head_size = HIDDEN // HEADS
        local, intermediate = self.heads * self.head_size, INTERMEDIATE // ranks
        generator = torch.Generator(device="cpu").manual_seed(1)

        def weight(*shape: int) -> torch.Tensor:
            values = torch.randn(*shape, generator=generator) * shape[0] ** -0.5
            return values.to(device=device, dtype=torch.bfloat16)

        ones = torch.ones(HIDDEN, device=device, dtype=torch.bfloat16)
        cache = (requests, self.heads, CONTEXT, self.head_size)
        self.embedding = weight(VOCABULARY, HIDDEN)
        self.head = weight(HIDDEN, VOCABULARY)
        self.layers = [
            Layer(
                ones,
                weight(HIDDEN, 3 * local),
                weight(local, HIDDEN),
                ones,
                weight(HIDDEN, 2 * intermediate),
                weight(intermediate, HIDDEN),
                torch.zeros(cache, device=device, dtype=torch.bfloat16),
                torch.zeros(cache, device=device, dtype=torch.bfloat16),
            )
            for _ in range(LAYERS)
        ]
        self.activation = torch.compile(silu_and_mul) if device.type == "cuda" else silu_and_mul

    def forward(self, tokens: torch.Tensor, first_request: int, position: int) -> torch.Tensor:
        """Run ``tokens`` ``[requests, new tokens]`` at ``position`` and return the next token of each request."""
        count, new = tokens.shape
        requests = slice(first_request, first_request + count)
        x = functional.embedding(tokens, self.embedding)
        for layer in self.layers:
            qkv = torch.matmul(rms_norm(x, layer.norm_attention), layer.qkv)
            q, k, v = qkv.view(count, new, 3, self.heads, self.head_size).permute(2, 0, 3, 1, 4)
            layer.keys[requests, :, position : position + new] = k
            layer.values[requests, :, position : position + new] = v
            attention = functional.scaled_dot_product_attention(
                q,
                layer.keys[requests, :, : position + new],
                layer.values[requests, :, : position + new],
                is_causal=new > 1,
            )
            x = x + self._reduced(torch.matmul(attention.transpose(1, 2).reshape(count, new, -1), layer.output))
            gate_up = torch.matmul(rms_norm(x, layer.norm_mlp), layer.gate_up)
            x = x + self._reduced(torch.matmul(self.activation(gate_up), layer.down))
        return torch.matmul(x[:, -1], self.head).argmax(dim=-1)

    def _reduced(self, partial: torch.Tensor) -> torch.Tensor:
        if self.ranks > 1:
            distributed.all_reduce(partial)
        return partial


def step_label(prefill_requests: int, prefill_tokens: int, decode_requests: int) -> str:
    """The annotation of one engine step in vLLM's native form."""
    return f"execute_context_{prefill_requests}({prefill_tokens})_generation_{decode_requests}({decode_requests})"


def run_steps(model: TinyDecoder, device: torch.device, decode_steps: int, *, graph: bool) -> None:
    """Two prefill steps, two mixed steps, then decode steps; with ``graph`` the decode steps are replays."""
    prompt = torch.arange(4 * 64, device=device).reshape(4, 64) % VOCABULARY
    last = torch.zeros(8, 1, dtype=torch.long, device=device)
    replay = capture_decode(model, last) if graph else None
    with torch.inference_mode():
        for first in (0, 4):
            with record_function(step_label(4, 256, 0)):
                last[first : first + 4, 0] = model.forward(prompt, first, 0)
        for _ in range(2):
            with record_function(step_label(1, 64, 6)):
                model.forward(prompt[:1], 7, 0)
                last[:6, 0] = model.forward(last[:6], 0, 64)
        for step in range(decode_steps):
            with record_function(step_label(0, 0, 8)):
                if replay is not None:
                    replay.replay()
                else:
                    last[:, 0] = model.forward(last, 0, 65 + step)
    if device.type == "cuda":
        torch.cuda.synchronize()


_captured: dict[int, torch.cuda.CUDAGraph] = {}


def capture_decode(model: TinyDecoder, last: torch.Tensor) -> torch.cuda.CUDAGraph:
    """Capture one decode step of eight requests, once a model."""
    if id(model) not in _captured:
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode():
            model.forward(last, 0, 65)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                model.forward(last, 0, 65)
        _captured[id(model)] = graph
    return _captured[id(model)]


def record(path: Path, device: torch.device, *, ranks: int = 1, graph: bool = False, decode_steps: int = 12) -> None:
    """Warm up, profile one pass over all steps and write the trace."""
    model = TinyDecoder(device, requests=8, ranks=ranks)
    for _ in range(2):
        run_steps(model, device, 2, graph=graph)
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    if ranks > 1:
        distributed.barrier()
    with profile(activities=activities, record_shapes=True) as profiler:
        run_steps(model, device, decode_steps, graph=graph)
    profiler.export_chrome_trace(str(path))
    print(f"{path}: {path.stat().st_size:,} bytes")


def record_rank(rank: int, ranks: int, output: Path) -> None:
    """One process of the multi-GPU recording."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    path = output / f"{device_name()}_nccl_rank-{rank}.pt.trace.json.gz"
    record(path, torch.device("cuda", rank), ranks=ranks, decode_steps=6)
    distributed.destroy_process_group()


def device_name() -> str:
    """Short lower-case name of the GPU for file names: ``h200``."""
    return torch.cuda.get_device_name().split()[-1].lower()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cpu", "eager", "graph", "nccl"])
    parser.add_argument("--output", type=Path, default=Path())
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    if arguments.what == "cpu":
        record(arguments.output / "cpu_rank-0.pt.trace.json.gz", torch.device("cpu"), decode_steps=6)
    elif arguments.what == "nccl":
        ranks = torch.cuda.device_count()
        torch.multiprocessing.spawn(record_rank, args=(ranks, arguments.output), nprocs=ranks)
    else:
        name = f"{device_name()}_{arguments.what}_rank-0.pt.trace.json.gz"
        record(arguments.output / name, torch.device("cuda"), graph=arguments.what == "graph")


if __name__ == "__main__":
    main()
