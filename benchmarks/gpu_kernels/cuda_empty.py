"""A kernel that does nothing, built by NVRTC: what is left of its time belongs to whoever measures it."""

import torch

KERNEL = None


class Model(torch.nn.Module):
    def forward(self, x):
        global KERNEL
        if KERNEL is None:
            KERNEL = torch.cuda._compile_kernel('extern "C" __global__ void cuda_empty(float* x) {}', "cuda_empty")
        KERNEL(grid=(1, 1, 1), block=(32, 1, 1), args=[x])
        return x


def get_inputs():
    return [torch.zeros(32)]
