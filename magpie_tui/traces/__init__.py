"""Traces of the torch profiler: file → columns → quality balance and kernel ranking. See ``docs/traces.md``."""
