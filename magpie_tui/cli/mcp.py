"""``magpie-tui mcp``: the commands as tools for agents."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from magpie_tui.basics.errors import MachineError
from magpie_tui.cli.group import Command, command_app


class Transport(str, Enum):
    """How the server is spoken to."""

    stdio = "stdio"
    http = "http"


app = command_app("Serve the commands as tools for agents (Model Context Protocol).")


@app.command(cls=Command)
def mcp(
    transport: Annotated[
        Transport, typer.Option("--transport", help="stdio (default), or http: streamable HTTP on this machine only.")
    ] = Transport.stdio,
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="Port of http.")] = 8765,
) -> None:
    """Serve the commands as tools for agents, with structured results.

    Long work is started as a run, which can be asked after and stopped. HTTP listens on 127.0.0.1 alone.

    Example: magpie-tui mcp --transport http --port 8765
    """
    try:
        from magpie_tui.cli.mcp_tools import build_server
    except ModuleNotFoundError as error:
        raise MachineError(
            f"the library {error.name} is not installed", hint="pip install 'magpie-tui[mcp]' brings it"
        ) from None
    server = build_server()
    if transport is Transport.stdio:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)
