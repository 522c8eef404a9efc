"""The command line: every command is a client of the service."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nodewise.cli.backtest import backtest
from nodewise.cli.console import complain
from nodewise.cli.diagnose import diagnose
from nodewise.cli.errors import explained, status_of
from nodewise.cli.estimators import estimators
from nodewise.cli.failures import CommandError
from nodewise.cli.health import health
from nodewise.cli.ingest import ingest
from nodewise.cli.plan import plan
from nodewise.cli.plugins import plugins
from nodewise.cli.predict import predict
from nodewise.cli.replay import replay
from nodewise.cli.schedule import schedule
from nodewise.cli.serve import serve
from nodewise.cli.simulate import simulate
from nodewise.cli.suggest import suggest
from nodewise.cli.sweep import sweep
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
