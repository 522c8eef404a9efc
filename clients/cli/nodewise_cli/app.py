"""The command line: every command is a client of the service."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Final, cast

import typer
from typer import Option
from typer.core import TyperGroup
from typer.main import get_group

from nodewise_cli.commands.options import Commands
from nodewise_cli.console import complain, print_error
from nodewise_cli.failures import ExitStatus, InputError

__all__ = ["app"]


_UsageError: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""The class of errors in options and arguments; typer's own parser has no other public name for it."""


_COMMANDS: Final = {
    "serve": ("serve", "Serve until SIGTERM or Ctrl-C, then drain."),
    "ingest": ("ingest", "Store measurements or traces as profiles on a server."),
    "predict": ("predict", "Predict configurations that never ran, and recommend one."),
    "suggest": ("suggest", "Suggest which runs to measure next, best first."),
    "rank": ("rank", "Rank models that never ran by predicted step time."),
    "plan": ("plan", "Find the best partition of a model before it is built."),
    "card": ("card", "Estimate a run before its start: time, cost, risk and energy."),
    "spot": ("spot", "Estimate time, cost and risk on preemptible machines."),
    "schedule": ("schedule", "Share a cluster among jobs by predicted throughput."),
    "share": ("share", "Predict the speed of jobs that share a device."),
    "simulate": ("simulate", "Simulate how policies schedule jobs over time."),
    "sweep": ("sweep", "Compare policies over loads, seeds and prediction errors."),
    "backtest": ("backtest", "Score estimators on held-out measurements."),
    "replay": ("replay", "Predict recorded steps from the other recorded steps."),
    "diagnose": ("diagnose", "Find what bounds recorded steps, and what would help."),
    "record": ("running", "Ask the ranks of a running job to record steps."),
    "devices": ("devices", "List the devices in the catalogue."),
    "estimators": ("estimators", "Show the accuracy of each estimator so far."),
    "health": ("health", "Check whether a server serves."),
    "status": ("status", "Show whether a server is ready, and its state."),
    "top": ("status", "Watch calls, queues, plugins and workers of a server."),
    "reload": ("reload", "Replace the plugins of a server while it serves."),
    "backup": ("backups", "Copy a store to a directory while it is in use."),
    "restore": ("backups", "Restore a backup into an empty store."),
    "copy": ("backups", "Copy a store into an empty one of any kind."),
    "verify": ("backups", "Check a store or a backup for damage."),
    "plugins": ("plugins", "List, create, install and remove plugins."),
    "profiles": ("profiles", "List, show, correct, delete and export stored profiles."),
    "tokens": ("tokens", "Create, list and revoke access tokens."),
    "priors": ("priors", "List, pin and undo what a server learned from its jobs."),
}
"""By name, as help lists them: the module of a command, or of a group of them, and its summary."""


class _Group(TyperGroup):
    """Commands whose failures are one line on standard error, with --json one object, and an exit status."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("Any", dict.fromkeys(_COMMANDS))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name. Its module is imported now: those of all take longer than most answers."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _import_command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        arguments = (*getattr(ctx, "_protected_args", ()), *ctx.args)
        as_json = "--json" in arguments
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            if not as_json:
                raise
            from nodewise_cli.errors import error_document

            print_error(error_document(InputError(str(error), reason="BAD_USAGE")))
            raise typer.Exit(ExitStatus.BAD_INPUT) from None
        except Exception as error:
            # Only here: `serve` needs no client, and importing it takes a tenth of the server's start.
            from nodewise_cli.errors import error_document, explain_error, is_explained, status_of

            if not is_explained(error):
                raise
            if as_json:
                print_error(error_document(error))
            else:
                complain(explain_error(error, verbose="--verbose" in arguments))
            raise typer.Exit(status_of(error)) from None


def _import_command(name: str) -> Any:
    """The typer object of a command, or of a group of commands."""
    module, summary = _COMMANDS[name]
    command = getattr(import_module(f"nodewise_cli.commands.{module}"), name)
    group = Commands(add_completion=False, rich_markup_mode=None)
    if isinstance(command, Commands):
        group.add_typer(command, name=name, short_help=summary)
    else:
        group.command(short_help=summary)(command)
    return get_group(group).commands[name]


app = Commands(
    cls=_Group, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from nodewise_client import version

        typer.echo(f"nodewise {version()}")
        raise typer.Exit


@app.callback()
def nodewise(
    _version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """How many nodes is a training job worth? Serve, ingest profiles, predict, schedule, score."""
