"""c = a + b in Triton, with its own check: exit status 0 only when every element is right."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add(a_pointer, b_pointer, c_pointer, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    a = tl.load(a_pointer + offsets, mask=inside)
    b = tl.load(b_pointer + offsets, mask=inside)
    tl.store(c_pointer + offsets, a + b, mask=inside)


def add(a: torch.Tensor, b: torch.Tensor, block: int) -> torch.Tensor:
    c = torch.empty_like(a)
    vector_add[(triton.cdiv(a.numel(), block),)](a, b, c, a.numel(), BLOCK=block)
    return c


def main() -> int:
    block = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    n = (1 << 20) + 3  # not a multiple of the block
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = (torch.randn(n, device=device) for _ in range(2))
    wrong = int((add(a, b, block) != a + b).sum())
    if wrong:
        print(f"FAILED: {wrong} of {n} elements are wrong")
        return 1
    print(f"PASSED: all {n} elements are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
