"""The command line: every command is a client of the service."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer import Option
from typer.core import TyperCommand
from typer.main import get_group

from nodewise_cli.commands.options import Commands
from nodewise_cli.console import complain, print_error
from nodewise_cli.failures import ExitStatus, InputError
from nodewise_cli.help_texts import HelpfulGroup

__all__ = ["app"]


_UsageError: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""The class of errors in options and arguments; typer's own parser has no other public name for it."""


_COMMANDS: Final = {
    "Predict and plan": {
        "predict": ("predict", "Predict configurations that never ran, and recommend one."),
        "suggest": ("suggest", "Suggest which runs to measure next, best first."),
        "rank": ("rank", "Rank models that never ran by predicted step time."),
        "plan": ("plan", "Find the best partition of a model before it is built."),
        "card": ("card", "Estimate a run before its start: time, cost, risk and energy."),
        "spot": ("spot", "Estimate time, cost and risk on preemptible machines."),
        "share": ("share", "Predict the speed of jobs that share a device."),
    },
    "Schedule": {
        "schedule": ("schedule", "Share a cluster among jobs by predicted throughput."),
        "simulate": ("simulate", "Simulate how policies schedule jobs over time."),
        "sweep": ("sweep", "Compare policies over loads, seeds and prediction errors."),
        "failures": ("failures", "Estimate how often devices of a cluster fail."),
    },
    "Traces": {
        "diagnose": ("diagnose", "Find what bounds recorded steps, and what would help."),
        "replay": ("replay", "Predict recorded steps from the other recorded steps."),
        "record": ("running", "Ask the ranks of a running job to record steps."),
    },
    "Measurements and accuracy": {
        "ingest": ("ingest", "Store measurements or traces as profiles on a server."),
        "profiles": ("profiles", "List, show, correct, delete and export stored profiles."),
        "backtest": ("backtest", "Score estimators on held-out measurements."),
        "estimators": ("estimators", "Show the accuracy of each estimator so far."),
    },
    "Servers": {
        "serve": ("serve", "Serve until SIGTERM or Ctrl-C, then drain."),
        "health": ("health", "Check whether a server serves."),
        "status": ("status", "Show whether a server is ready, and its state."),
        "top": ("status", "Watch calls, queues, plugins and workers of a server."),
        "mcp": ("mcp", "Serve agents by the Model Context Protocol."),
        "reload": ("reload", "Replace the plugins of a server while it serves."),
        "plugins": ("plugins", "List, create, install and remove plugins."),
        "priors": ("priors", "List, pin and undo what a server learned from its jobs."),
        "tokens": ("tokens", "Create, list and revoke access tokens."),
    },
    "Stores": {
        "backup": ("backups", "Copy a store to a directory while it is in use."),
        "restore": ("backups", "Restore a backup into an empty store."),
        "copy": ("backups", "Copy a store into an empty one of any kind."),
        "verify": ("backups", "Check a store or a backup for damage."),
    },
    "Reference": {
        "ui": ("ui", "Open the console over files in a browser."),
        "demo": ("demo", "Answer five questions about shipped examples on one page."),
        "schema": ("schema", "Print the JSON Schema of a specification."),
        "devices": ("devices", "List the devices in the catalogue."),
        "completion": ("completion", "Print the script that completes commands in a shell."),
    },
}
"""By section and name, as help lists them: the module of a command, or of a group of them, and its summary."""


class _Group(HelpfulGroup):
    """Commands whose failures are one line on standard error, with --json one object, and an exit status."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for section, commands in _COMMANDS.items():
            for name, (_, summary) in commands.items():
                # Stands for the command in help and completion: importing all takes longer than most answers.
                self.add_command(TyperCommand(name, short_help=summary, rich_help_panel=section))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a name, which is imported now."""
        for section, commands in _COMMANDS.items():
            if args[0] in commands:
                self.add_command(_import_command(args[0], section))
        return super().resolve_command(ctx, args)

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
        except Exception as raised:
            # Only here: `serve` needs no client, and importing it takes a tenth of the server's start.
            from nodewise_cli.errors import convert_error, error_document, explain_error, status_of

            shown = convert_error(raised)
            if shown is None:
                raise
            if as_json:
                print_error(error_document(shown))
            else:
                complain(explain_error(shown, verbose="--verbose" in arguments))
            raise typer.Exit(status_of(shown)) from None


def _import_command(name: str, section: str) -> Any:
    """The typer object of a command, or of a group of commands."""
    module, summary = _COMMANDS[section][name]
    command = getattr(import_module(f"nodewise_cli.commands.{module}"), name)
    group = Commands(add_completion=False, rich_markup_mode=None)
    if isinstance(command, Commands):
        group.add_typer(command, name=name, short_help=summary, rich_help_panel=section)
    else:
        group.command(short_help=summary, rich_help_panel=section)(command)
    return get_group(group).commands[name]


app = Commands(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
