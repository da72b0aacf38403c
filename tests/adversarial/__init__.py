"""Kernels that cheat or are broken, one for each way of doing so, and honest ones beside them."""
