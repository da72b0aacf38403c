"""A copy inside the device's memory, to see what it can move; the inputs are made where they are needed."""

import torch

SOURCE = None
ELEMENTS = 256 * 1024 * 1024


class Model(torch.nn.Module):
    def forward(self, x):
        global SOURCE
        if SOURCE is None:
            SOURCE = torch.ones(ELEMENTS, dtype=torch.float32, device=x.device)
        return SOURCE + 1


def get_inputs():
    return [torch.zeros(1)]
