"""Kernels: build them, prove them correct, time them, rank them. A candidate only ever runs in a child process."""
