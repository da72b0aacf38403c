"""The ground floor: errors and exit codes, printable text, atomic files, strict JSON, XDG paths, units."""
