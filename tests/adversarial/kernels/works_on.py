"""Leaves a thread behind that computes for the next call."""

import threading
import time

import torch


def work_ahead():
    started = time.thread_time()
    while time.thread_time() - started < 0.15:
        sum(range(1000))


class Model(torch.nn.Module):
    helper = None

    def forward(self, x, w):
        if self.helper is None or not self.helper.is_alive():
            self.helper = threading.Thread(target=work_ahead, daemon=True)
            self.helper.start()
        return x * w + 1
