"""`nodewise plugins`: what can be asked, what was left out and why, and a start for one of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nodewise_cli.commands.options import AsJson, Server, TimeoutS, Wait
from nodewise_cli.console import print_json, say
from nodewise_cli.scaffold import KINDS, scaffolded
from nodewise_cli.service import connected
from nodewise_cli.views.table import print_table, words
from nodewise_client import ListPluginsResponse, Problem

__all__ = ["plugins"]


plugins = typer.Typer(
    help="List all that plugins bring, with the distributions that brought it, and plugins that were left out.",
    invoke_without_command=True,
)


@plugins.callback()
def list_plugins(
    context: typer.Context, server: Server = None, as_json: AsJson = False, timeout_s: TimeoutS = Wait
) -> None:
    """List them, unless something else is wanted of them."""
    if context.invoked_subcommand is not None:
        return
    with connected(server, timeout_s) as client:
        entries = _entries(client.list_plugins())
    if as_json:
        print_json({"plugins": entries})
        return
    columns = ["name", "version", "kind", "distribution", "mode", "status"]
    print_table(
        [*(words(name) for name in columns), words("")],
        [[*(entry[name] or "-" for name in columns), entry["description"]] for entry in entries],
    )


@plugins.command()
def new(
    name: Annotated[str, typer.Argument(help="What the plugin and its folder are called: my-estimator.")],
    kind: Annotated[str, typer.Option(metavar="|".join(KINDS), help="What it brings.")] = KINDS[0],
    inside: Annotated[Path, typer.Option("--in", metavar="FOLDER", help="Where its folder is made.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write the project of a new plugin, which passes the conformance suite as it is written."""
    written = [str(path) for path in scaffolded(name, kind, inside)]
    if as_json:
        print_json({"name": name, "kind": kind, "files": written})
        return
    for path in written:
        say(path)
    say(f"Install it with pip install -e {inside / name}, and check it there with pytest.")


def _entries(found: ListPluginsResponse) -> list[dict[str, Any]]:
    entries = [
        {
            "name": each.name,
            "version": each.version,
            "kind": each.kind,
            "distribution": each.distribution,
            "mode": each.mode,
            "status": "loaded",
            "description": each.description,
        }
        for each in found.plugins
    ]
    for each in found.problems:
        why = each.problem or Problem()
        entries.append(
            {
                "name": each.name,
                "version": None,
                "kind": each.kind,
                "distribution": each.distribution,
                "mode": None,
                "status": why.reason,
                "description": why.message,
            }
        )
    return entries
