"""Shares the interpreter that has imported PyTorch."""

from tests.kernels.conftest import harness

__all__ = ["harness"]
