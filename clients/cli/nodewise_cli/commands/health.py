"""`nodewise health`: whether a server serves, for people, containers and scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer
from typer import Option

from nodewise_cli.commands.options import Call
from nodewise_cli.console import print_json, say
from nodewise_cli.failures import CommandError, ExitStatus
from nodewise_client import HealthStatus, NotFoundError

__all__ = ["health"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCall(Call):
    """A call to a server that is thought to run."""

    server: Annotated[
        str | None, Option("--server", metavar="HOST:PORT", envvar="NODEWISE_SERVER", help="The server to ask.")
    ] = "127.0.0.1:50551"


SOON: Final = HealthCall(timeout_s=5.0)


def health(
    service: Annotated[
        str, Option("--service", help="One service, such as nodewise.v1.PredictionService; empty = all.")
    ] = "",
    call: HealthCall = SOON,
) -> None:
    """Ask a server whether it serves; exit 0 if it does, else 1."""
    with call.connect() as client:
        try:
            status = client.health(service)
        except NotFoundError:
            raise CommandError(f"the server at {call.server} offers no service {service!r}") from None
    if call.as_json:
        print_json({"status": status.upper()})
    else:
        say(status.upper())
    if status is not HealthStatus.SERVING:
        raise typer.Exit(ExitStatus.FAILURE)
