"""Tests of the statistics room."""
