"""Overwrites its result from another thread after the call."""

import sys
import threading
import time

import torch


def callers():
    frame, names = sys._getframe(), []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names


def later(result):
    time.sleep(0.02)
    result.mul_(2)


class Model(torch.nn.Module):
    def forward(self, x, w):
        result = x * w + 1
        if "_do_hold" in callers():
            threading.Thread(target=later, args=(result,), daemon=True).start()
        return result
