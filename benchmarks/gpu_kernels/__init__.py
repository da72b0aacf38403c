"""Kernels that the benchmarks time on a GPU, as a user would hand them in."""
