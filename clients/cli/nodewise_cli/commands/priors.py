"""`nodewise priors`: what a server learned from its jobs, and how to pin or undo it."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from nodewise_cli.commands.options import Commands
from nodewise_cli.commands.reload import ADMIN, AdminCall
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.priors import show_learned, show_priors
from nodewise_client import LearnedPriors, ListPriorsRequest, ListPriorsResponse, PriorAction, SetPriorRequest

__all__ = ["priors"]

Namespace = Annotated[
    str,
    Argument(
        metavar="[NAMESPACE]", help="First segment of profile ids. Default: ids without a slash; * = all other ids."
    ),
]

priors = Commands(
    help="List, pin, unpin and roll back what a server learned from its jobs.",
    no_args_is_help=True,
)


@priors.command("list")
def list_priors(
    namespace: Annotated[str | None, Option(metavar="NAMESPACE", help="Only this namespace. Default: all.")] = None,
    call: AdminCall = ADMIN,
) -> None:
    """List what each namespace learned, from which jobs, and the effect."""
    learned_priors: list[LearnedPriors] = []
    shared_namespaces: tuple[str, ...] = ()
    with call.connect() as client:
        token = ""
        while True:
            page = client.list_priors(ListPriorsRequest(namespace=namespace, page_token=token))
            learned_priors += page.learned
            shared_namespaces, token = page.shared_namespaces, page.next_page_token
            if not token:
                break
    call.tell(
        fields_of, show_priors, ListPriorsResponse(learned=tuple(learned_priors), shared_namespaces=shared_namespaces)
    )


@priors.command()
def pin(namespace: Namespace = "", call: AdminCall = ADMIN) -> None:
    """Pin what a namespace learned: later jobs do not change it."""
    _set_prior(SetPriorRequest(namespace=namespace, action=PriorAction.PIN), call)


@priors.command()
def unpin(namespace: Namespace = "", call: AdminCall = ADMIN) -> None:
    """Let a namespace learn from its jobs again."""
    _set_prior(SetPriorRequest(namespace=namespace, action=PriorAction.UNPIN), call)


@priors.command()
def rollback(
    namespace: Namespace = "",
    to: Annotated[
        str | None,
        Option(metavar="LESSONS", help="Lessons as listed, or `shipped`. Default: the previous ones."),
    ] = None,
    call: AdminCall = ADMIN,
) -> None:
    """Return a namespace to what it learned before, and pin it."""
    _set_prior(SetPriorRequest(namespace=namespace, action=PriorAction.ROLL_BACK, lessons_id=to), call)


def _set_prior(request: SetPriorRequest, call: AdminCall) -> None:
    with call.connect() as client:
        response = client.set_prior(request)
    call.tell(fields_of, lambda value: show_learned(value.learned), response)
