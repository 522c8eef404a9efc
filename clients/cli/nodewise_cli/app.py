"""The command line: every command is a client of the service."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nodewise_cli.commands.backtest import backtest
from nodewise_cli.commands.diagnose import diagnose
from nodewise_cli.commands.estimators import estimators
from nodewise_cli.commands.health import health
from nodewise_cli.commands.ingest import ingest
from nodewise_cli.commands.plan import plan
from nodewise_cli.commands.plugins import plugins
from nodewise_cli.commands.predict import predict
from nodewise_cli.commands.replay import replay
from nodewise_cli.commands.schedule import schedule
from nodewise_cli.commands.serve import serve
from nodewise_cli.commands.simulate import simulate
from nodewise_cli.commands.suggest import suggest
from nodewise_cli.commands.sweep import sweep
from nodewise_cli.console import complain
from nodewise_cli.errors import explained, status_of
from nodewise_cli.failures import CommandError
from nodewise_client import NodewiseError, version

__all__ = ["app"]


class Commands(TyperGroup):
    """Commands whose failures are one line on standard error and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except CommandError as error:
            complain(str(error))
            raise typer.Exit(error.status) from None
        except NodewiseError as error:
            complain(explained(error))
            raise typer.Exit(status_of(error)) from None


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nodewise {version()}")
        raise typer.Exit


@app.callback()
def nodewise(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """How many nodes is a training job worth? Serve, ingest profiles, predict, schedule, score."""


for _command in (
    serve,
    ingest,
    predict,
    suggest,
    plan,
    schedule,
    simulate,
    sweep,
    backtest,
    replay,
    diagnose,
    estimators,
    plugins,
    health,
):
    app.command()(_command)
