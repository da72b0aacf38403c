"""Performance models: what an operator has to compute and to move, from its own arguments."""
