"""`nodewise priors`: what a server learned from its jobs, and how to hold or undo it."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from nodewise_cli.commands.options import Commands
from nodewise_cli.commands.reload import ADMIN, AdminCall
from nodewise_cli.service import connect
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.priors import show_learned, show_priors
from nodewise_client import LearnedPriors, ListPriorsRequest, ListPriorsResponse, PriorAction, SetPriorRequest

__all__ = ["priors"]

Namespace = Annotated[
    str,
    Argument(
        metavar="[NAMESPACE]", help="First segment of profile ids. Default: that of ids without a slash; * = the rest."
    ),
]

priors = Commands(
    help="List what a server learned from its jobs, pin it, let it go, or return to what was learned before.",
    no_args_is_help=True,
)


@priors.command("list")
def list_priors(
    namespace: Annotated[str | None, Option(metavar="NAMESPACE", help="Of this one alone. Default: all.")] = None,
    call: AdminCall = ADMIN,
) -> None:
    """List what was learned, namespace by namespace: from what, when, and what it changed."""
    found: list[LearnedPriors] = []
    shared: tuple[str, ...] = ()
    with connect(call.server, call.timeout_s) as client:
        token = ""
        while True:
            page = client.list_priors(ListPriorsRequest(namespace=namespace, page_token=token))
            found += page.learned
            shared, token = page.shared_namespaces, page.next_page_token
            if not token:
                break
    call.tell(fields_of, show_priors, ListPriorsResponse(learned=tuple(found), shared_namespaces=shared))


@priors.command()
def pin(namespace: Namespace = "", call: AdminCall = ADMIN) -> None:
    """Keep what a namespace learned as it is, whatever its jobs say from now on."""
    _set_prior(SetPriorRequest(namespace=namespace, action=PriorAction.PIN), call)


@priors.command()
def unpin(namespace: Namespace = "", call: AdminCall = ADMIN) -> None:
    """Let a namespace learn from its jobs as they are."""
    _set_prior(SetPriorRequest(namespace=namespace, action=PriorAction.UNPIN), call)


@priors.command()
def rollback(
    namespace: Namespace = "",
    to: Annotated[
        str | None,
        Option(metavar="LESSONS", help="Lessons as listed, or `shipped`. Default: those before the present ones."),
    ] = None,
    call: AdminCall = ADMIN,
) -> None:
    """Return a namespace to what it learned before, and pin that."""
    _set_prior(SetPriorRequest(namespace=namespace, action=PriorAction.ROLL_BACK, lessons_id=to), call)


def _set_prior(request: SetPriorRequest, call: AdminCall) -> None:
    with connect(call.server, call.timeout_s) as client:
        found = client.set_prior(request)
    call.tell(fields_of, lambda told: show_learned(told.learned), found)
