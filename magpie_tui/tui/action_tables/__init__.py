"""The entries of the action registry: one module of plain data an area, each with a tuple ``ACTIONS``."""

from __future__ import annotations

TABLES: tuple[str, ...] = (
    "frame",
    "dialogs",
    "tables",
    "logs",
    "home",
    "campaign",
    "machine",
    "runs",
    "workspaces",
    "candidates",
    "experiments",
    "trace",
    "configs",
    "launch",
)
"""Modules, in the order in which help and documentation show them."""
