"""The command line: every command is a client of the service."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer import Option
from typer.core import TyperGroup

from nodewise_cli.commands.backtest import backtest
from nodewise_cli.commands.backups import backup, copy, restore, verify
from nodewise_cli.commands.devices import devices
from nodewise_cli.commands.diagnose import diagnose
from nodewise_cli.commands.estimators import estimators
from nodewise_cli.commands.health import health
from nodewise_cli.commands.ingest import ingest
from nodewise_cli.commands.options import Commands
from nodewise_cli.commands.plan import plan
from nodewise_cli.commands.plugins import plugins
from nodewise_cli.commands.predict import predict
from nodewise_cli.commands.priors import priors
from nodewise_cli.commands.profiles import profiles
from nodewise_cli.commands.rank import rank
from nodewise_cli.commands.reload import reload
from nodewise_cli.commands.replay import replay
from nodewise_cli.commands.running import record
from nodewise_cli.commands.schedule import schedule
from nodewise_cli.commands.serve import serve
from nodewise_cli.commands.share import share
from nodewise_cli.commands.simulate import simulate
from nodewise_cli.commands.spot import spot
from nodewise_cli.commands.suggest import suggest
from nodewise_cli.commands.sweep import sweep
from nodewise_cli.commands.tokens import tokens
from nodewise_cli.console import complain, print_error
from nodewise_cli.errors import error_document, explained, status_of
from nodewise_cli.failures import CommandError, ExitStatus, InputError
from nodewise_client import NodewiseError, version

__all__ = ["app"]


_UsageError: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""Of every wrong option or argument; typer's own parser has no other public name for it."""


class _Group(TyperGroup):
    """Commands whose failures are one line on standard error, with --json one object, and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        arguments = (*getattr(ctx, "_protected_args", ()), *ctx.args)
        as_json = "--json" in arguments
        try:
            return super().invoke(ctx)
        except (CommandError, NodewiseError) as error:
            if as_json:
                print_error(error_document(error))
            else:
                complain(explained(error, verbose="--verbose" in arguments))
            raise typer.Exit(status_of(error)) from None
        except _UsageError as error:
            if not as_json:
                raise
            print_error(error_document(InputError(str(error), reason="BAD_USAGE")))
            raise typer.Exit(ExitStatus.BAD_INPUT) from None


app = Commands(
    cls=_Group, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nodewise {version()}")
        raise typer.Exit


@app.callback()
def nodewise(
    _version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """How many nodes is a training job worth? Serve, ingest profiles, predict, schedule, score."""


for _command, _summary in (
    (serve, "Serve until SIGTERM or Ctrl-C, then drain."),
    (ingest, "Store measurements or traces as profiles of a server."),
    (predict, "Predict configurations that never ran, and recommend one."),
    (suggest, "Suggest which runs to measure next, best first."),
    (rank, "Rank models that never ran by predicted step time."),
    (plan, "Find the best partition of a model before it is built."),
    (spot, "Tell time, cost and risk on machines that may be taken away."),
    (schedule, "Share a cluster among jobs by predicted throughput."),
    (share, "Say what jobs keep that share a device."),
    (simulate, "Tell what policies would have done to jobs over time."),
    (sweep, "Compare policies over loads, seeds and prediction errors."),
    (backtest, "Score estimators on measurements they have not seen."),
    (replay, "Predict recorded steps from the other recorded steps."),
    (diagnose, "Find what bounds recorded steps, and what would help."),
    (record, "Ask ranks of a job that runs to record steps."),
    (devices, "List the devices that the catalogue knows."),
    (estimators, "Show how well each estimator has predicted so far."),
    (health, "Ask a server whether it serves."),
    (reload, "Let other plugins take over in a server, under load."),
    (backup, "Copy a store to a directory, while it serves."),
    (restore, "Bring a backup into an empty store."),
    (copy, "Copy a store into an empty one of any kind."),
    (verify, "Say whether a store or a backup is as it was written."),
):
    app.command(short_help=_summary)(_command)
app.add_typer(plugins, name="plugins", short_help="List what plugins bring, or begin one of your own.")
app.add_typer(profiles, name="profiles")
app.add_typer(tokens, name="tokens", short_help="Make, list and revoke tokens: who may ask a server for what.")
app.add_typer(priors, name="priors", short_help="List, pin and undo what a server learned from its jobs.")
