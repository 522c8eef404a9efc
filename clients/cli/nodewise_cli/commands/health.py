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
    """A call to a server that should be running."""

    server: Annotated[
        str | None, Option("--server", metavar="HOST:PORT", envvar="NODEWISE_SERVER", help="Server to call.")
    ] = "127.0.0.1:50551"


SOON: Final = HealthCall(timeout_s=5.0)


def health(
    service: Annotated[
        str, Option("--service", help="One service, such as nodewise.v1.PredictionService. Default: all.")
    ] = "",
    call: HealthCall = SOON,
) -> None:
    """Check whether a server serves. Exit status: 0 = it does, 1 = it does not."""
    with call.connect() as client:
        try:
            status = client.health(service)
        except NotFoundError:
            raise CommandError(f"the server at {call.server} has no service {service!r}") from None
    if call.as_json:
        print_json({"status": status.upper()})
    else:
        say(status.upper())
    if status is not HealthStatus.SERVING:
        raise typer.Exit(ExitStatus.FAILURE)
