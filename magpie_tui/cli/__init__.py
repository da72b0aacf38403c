"""The command line: Typer commands, thin over the functions of the rooms below."""
