"""`nodewise reload`: replace the plugins of a server while it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from typer import Option

from nodewise_cli.commands.options import Call
from nodewise_cli.failures import CommandError
from nodewise_cli.views.generations import reload_document, show_reload
from nodewise_cli.waiting import waiting
from nodewise_client import ReloadOutcome, ReloadRequest

__all__ = ["ADMIN", "AdminCall", "reload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminCall(Call):
    """A call to a server whose AdminService is on."""

    server: Annotated[
        str | None,
        Option(
            "--server",
            metavar="HOST:PORT",
            envvar="NODEWISE_SERVER",
            help="Server with the setting admin. Default: 127.0.0.1:50551.",
        ),
    ] = "127.0.0.1:50551"


ADMIN: Final = AdminCall(timeout_s=600.0)


def reload(
    generation: Annotated[
        int | None,
        Option(metavar="NUMBER", help="Generation to activate. Default: the pending one, else what is installed now."),
    ] = None,
    call: AdminCall = ADMIN,
) -> None:
    """Activate another generation of plugins, or another catalogue, without interrupting calls.

    The server first tries it beside the current generation: changed plugins run their conformance checks, and both
    generations answer recent requests. If the trial fails, nothing changes; the command states why and exits with 1.
    """
    with call.connect() as client, waiting("trying the new generation"):
        response = client.reload(ReloadRequest(generation=generation))
    call.tell(reload_document, show_reload, response)
    if response.outcome is ReloadOutcome.FAILED:
        why = "; ".join(response.trial.failures) if response.trial is not None else "the trial did not run"
        raise CommandError(f"generation {response.generation} was not activated: {why}")
