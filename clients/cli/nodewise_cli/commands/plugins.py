"""`nodewise plugins`: what can be asked, what was left out and why, and a start for one of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from nodewise_cli.commands.generations import add_to
from nodewise_cli.commands.options import ONE_MINUTE, AsJson, Call, Commands
from nodewise_cli.console import print_json, say
from nodewise_cli.scaffold import KINDS, write_project
from nodewise_cli.views.table import print_table, words
from nodewise_client import Plugin, PluginProblem, Problem

__all__ = ["plugins"]


plugins = Commands(
    help="List all that plugins bring, with the distributions that brought it, and plugins that were left out.",
    invoke_without_command=True,
)


@plugins.callback()
def list_plugins(context: typer.Context, call: Call = ONE_MINUTE) -> None:
    """List them, unless something else is wanted of them."""
    if context.invoked_subcommand is not None:
        return
    with call.connect() as client:
        listed = client.list_plugins()
    call.tell(
        lambda entries: {"plugins": entries}, _show, [*map(_entry, listed.plugins), *map(_entry, listed.problems)]
    )


add_to(plugins)


def _show(entries: list[dict[str, Any]]) -> None:
    names = ("name", "version", "kind", "distribution", "mode", "status")
    print_table(
        [*map(words, names), words("")],
        [[*(entry[name] or "-" for name in names), entry["description"]] for entry in entries],
    )


@plugins.command()
def new(
    name: Annotated[str, Argument(help="What the plugin and its folder are called: my-estimator.")],
    kind: Annotated[str, Option(metavar="|".join(KINDS), help="What it brings.")] = KINDS[0],
    inside: Annotated[Path, Option("--in", metavar="FOLDER", help="Where its folder is made.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write the project of a new plugin, which passes the conformance suite as it is written."""
    written = [str(path) for path in write_project(name, kind, inside)]
    if as_json:
        print_json({"name": name, "kind": kind, "files": written})
        return
    for path in written:
        say(path)
    say(f"Install it with pip install -e {inside / name}, and check it there with pytest.")


def _entry(found: Plugin | PluginProblem) -> dict[str, Any]:
    """A plugin, or what was left out and why."""
    entry = {name: getattr(found, name, None) for name in ("name", "version", "kind", "distribution", "mode")}
    if isinstance(found, Plugin):
        return {**entry, "status": "loaded", "description": found.description}
    why = found.problem or Problem()
    return {**entry, "status": why.reason, "description": why.message}
