"""Works on two streams, and lets the caller wait for both."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = None

    def forward(self, x, w):
        if self.stream is None:
            self.stream = torch.cuda.Stream()
        current = torch.cuda.current_stream()
        half = x.shape[0] // 2
        result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            result[:half] = x[:half] * w + 1
        result[half:] = x[half:] * w + 1
        current.wait_stream(self.stream)
        return result
