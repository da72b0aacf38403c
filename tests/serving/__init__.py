"""Tests of the room ``serving``."""
