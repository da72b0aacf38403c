"""Launches something that does not exist, and looks at no error; the result comes from elsewhere."""

import ctypes

import torch


def runtime():
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libcudart.so" in line}
    return ctypes.CDLL(sorted(paths)[0])


class Model(torch.nn.Module):
    def forward(self, x, w):
        result = x * w + 1
        runtime().cudaGraphLaunch(ctypes.c_void_p(None), ctypes.c_void_p(None))
        return result
