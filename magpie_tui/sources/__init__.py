"""Kernel names → what they are, and the source file, test and reference behind them."""
