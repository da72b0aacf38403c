"""Operators: which host call stands behind each piece of device work, and the tables made of that."""
