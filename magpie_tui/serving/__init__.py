"""Benchmarks of served models: engines, load, metrics, experiments and their verdicts."""
