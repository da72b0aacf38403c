"""Measurements of the program against its budgets and against other programs."""
