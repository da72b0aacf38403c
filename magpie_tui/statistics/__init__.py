"""Noise: intervals over replicates, verdict words, corrections for many comparisons, shape checks of samples.

Everything here is a pure function of numbers. Samples of one replicate are not independent, so every interval and
test takes one value a replicate (a fresh process, a full benchmark run), never pooled samples.
"""
