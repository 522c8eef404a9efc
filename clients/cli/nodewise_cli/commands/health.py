"""`nodewise health`: whether a server serves, for people, containers and scripts."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from nodewise_cli.commands.options import AsJson, TimeoutS
from nodewise_cli.console import print_json, say
from nodewise_cli.failures import CommandError, ExitStatus
from nodewise_cli.service import connected
from nodewise_client import HealthStatus, NotFoundError

__all__ = ["health"]


def health(
    server: Annotated[
        str, Option("--server", metavar="HOST:PORT", envvar="NODEWISE_SERVER", help="The server to ask.")
    ] = "127.0.0.1:50551",
    service: Annotated[
        str, Option("--service", help="One service, such as nodewise.v1.PredictionService; empty = all.")
    ] = "",
    as_json: AsJson = False,
    timeout_s: TimeoutS = 5.0,
) -> None:
    """Ask a server whether it serves; exit 0 if it does, else 1."""
    with connected(server, timeout_s) as client:
        try:
            status = client.health(service)
        except NotFoundError:
            raise CommandError(f"the server at {server} offers no service {service!r}") from None
    if as_json:
        print_json({"status": status.upper()})
    else:
        say(status.upper())
    if status is not HealthStatus.SERVING:
        raise typer.Exit(ExitStatus.FAILURE)
