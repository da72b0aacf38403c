"""Profilers: their commands, what they write, and the one form in which reports hold it."""
