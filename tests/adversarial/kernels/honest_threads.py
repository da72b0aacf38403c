"""Works in two threads, and waits for both."""

import threading

import torch


def part(out, x, w):
    out.copy_(x * w + 1)


class Model(torch.nn.Module):
    def forward(self, x, w):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        half = x.shape[0] // 2
        parts = [
            threading.Thread(target=part, args=(out[:half], x[:half], w)),
            threading.Thread(target=part, args=(out[half:], x[half:], w)),
        ]
        for item in parts:
            item.start()
        for item in parts:
            item.join()
        return out
