"""Options that several commands take, and the way they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from nodewise_cli.failures import InputError

__all__ = ["AsJson", "HolderServer", "Plot", "Server", "TimeoutS", "Wait", "holder"]

Server: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="HOST:PORT",
        envvar="NODEWISE_SERVER",
        help="Ask this server. Default: one embedded in this process, with an empty store.",
    ),
]
HolderServer: TypeAlias = Annotated[
    str | None,
    typer.Option("--server", metavar="HOST:PORT", envvar="NODEWISE_SERVER", help="The server that stores profiles."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
TimeoutS: TypeAlias = Annotated[
    float, typer.Option("--timeout-s", metavar="SECONDS", help="Longest wait for an answer.")
]
Wait = 60.0
"""Seconds that a command waits for an answer unless told otherwise."""
Plot: TypeAlias = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE.png", help="Draw the predicted curve, its interval and the measured points."),
]


def holder(server: str | None) -> str:
    """The server of a command about stored profiles: it must be named, as an embedded one stores none.

    Raises
    ------
    InputError
    """
    if server is None:
        raise InputError("--server: must name the server that stores the profiles, such as 127.0.0.1:50551")
    return server
