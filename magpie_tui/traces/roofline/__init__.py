"""Rooflines: ceilings as data, and how far each operator is from the nearest one."""
