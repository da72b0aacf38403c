"""What was asked: YAML with positions, kernel, benchmark and framework configs, their effective values and problems."""
