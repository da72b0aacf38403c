"""Timestamped result directories: names, report models, reproducibility record, tolerant browsing and watching."""
