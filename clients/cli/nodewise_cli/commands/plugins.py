"""`nodewise plugins`: which plugins a server has, which it left out and why, and a new project for a plugin."""

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
    help="List what plugins provide, the distribution of each, and plugins that were left out and why.",
    invoke_without_command=True,
)


@plugins.callback()
def list_plugins(context: typer.Context, call: Call = ONE_MINUTE) -> None:
    """List plugins, unless a subcommand is given."""
    if context.invoked_subcommand is not None:
        return
    with call.connect() as client:
        response = client.list_plugins()
    call.tell(
        lambda entries: {"plugins": entries}, _show, [*map(_entry, response.plugins), *map(_entry, response.problems)]
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
    name: Annotated[str, Argument(metavar="NAME", help="Name of the plugin and of its folder, such as my-estimator.")],
    kind: Annotated[str, Option(metavar="|".join(KINDS), help="What the plugin provides.")] = KINDS[0],
    inside: Annotated[Path, Option("--in", metavar="FOLDER", help="Folder in which to create the project.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Create the project of a new plugin. It passes the conformance suite as it is."""
    files = [str(path) for path in write_project(name, kind, inside)]
    if as_json:
        print_json({"name": name, "kind": kind, "files": files})
        return
    for path in files:
        say(path)
    say(f"Install it with pip install -e {inside / name}, and run pytest in that folder to check it.")


def _entry(plugin: Plugin | PluginProblem) -> dict[str, Any]:
    """A plugin, or what was left out and why."""
    entry = {name: getattr(plugin, name, None) for name in ("name", "version", "kind", "distribution", "mode")}
    if isinstance(plugin, Plugin):
        return {**entry, "status": "loaded", "description": plugin.description}
    why = plugin.problem or Problem()
    return {**entry, "status": why.reason, "description": why.message}
