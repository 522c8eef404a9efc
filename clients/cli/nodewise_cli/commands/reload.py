"""`nodewise reload`: other plugins take over in a server, while it answers."""

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
            help="The server, with the setting admin. Default 127.0.0.1:50551.",
        ),
    ] = "127.0.0.1:50551"


ADMIN: Final = AdminCall(timeout_s=600.0)


def reload(
    generation: Annotated[
        int | None,
        Option(metavar="NUMBER", help="Take this one. Default: the one that waits, else what is installed by now."),
    ] = None,
    call: AdminCall = ADMIN,
) -> None:
    """Let another generation of plugins, or another catalogue, take over while calls go on.

    It is tried beside the one that serves: plugins that changed run their conformance checks, and recent requests are
    asked of both. One that fails changes nothing, and the command says why and exits with 1.
    """
    with call.connect() as client, waiting("trying"):
        found = client.reload(ReloadRequest(generation=generation))
    call.tell(reload_document, show_reload, found)
    if found.outcome is ReloadOutcome.FAILED:
        why = "; ".join(found.trial.failures) if found.trial is not None else "it was not tried"
        raise CommandError(f"generation {found.generation} was not taken: {why}")
