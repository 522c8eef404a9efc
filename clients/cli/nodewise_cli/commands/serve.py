"""`nodewise serve`: the service in the foreground."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from nodewise_cli.failures import ExitStatus
from nodewise_cli.service import starting

__all__ = ["serve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Settings by name; None = from the environment, a file or the default."""

    listen: Annotated[
        str | None,
        Option(metavar="HOST:PORT", help="Address for gRPC; port 0 picks a free port. Default: 127.0.0.1:50551."),
    ] = None
    http: Annotated[
        str | None,
        Option(
            metavar="HOST:PORT",
            help="Address for HTTP/JSON, or off. Default: 127.0.0.1:50552 if --listen is not given, else off.",
        ),
    ] = None
    workers: Annotated[int | None, Option(help="Worker processes, which share the port. Default: 1.")] = None
    store: Annotated[
        str | None,
        Option(metavar="URL", help="memory:, sqlite:PATH or postgresql://HOST/DATABASE. Default: sqlite:nodewise.db."),
    ] = None
    durability: Annotated[
        str | None,
        Option(help="What an acknowledged batch survives: process (its crash; the default) or power (a power loss)."),
    ] = None
    traces: Annotated[
        str | None,
        Option(
            metavar="PLACE",
            help="Where traces are stored: a directory or s3://BUCKET/PREFIX. Default: beside the store.",
        ),
    ] = None
    catalogue: Annotated[
        str | None,
        Option(metavar="FILE.toml", help="More devices and links than the shipped catalogue has. Default: none."),
    ] = None
    plugins: Annotated[
        list[str] | None,
        Option(
            "--plugin",
            metavar="NAME",
            help="Plugin to load besides the shipped ones; repeatable. Default: all that are installed.",
        ),
    ] = None
    safe_mode: Annotated[bool | None, Option("--safe-mode/--no-safe-mode", help="Load the shipped plugins only.")] = (
        None
    )
    reflection: Annotated[bool | None, Option("--reflection/--no-reflection", help="Offer gRPC server reflection.")] = (
        None
    )
    default_deadline_s: Annotated[
        float | None, Option(metavar="SECONDS", help="Deadline of calls that state none. Default: 60.")
    ] = None
    drain_delay_s: Annotated[
        float | None,
        Option(
            metavar="SECONDS", help="Time between reporting NOT_SERVING and the stop, for load balancers. Default: 0."
        ),
    ] = None
    grace_s: Annotated[
        float | None, Option(metavar="SECONDS", help="Time for calls in flight to end at a stop. Default: 10.")
    ] = None
    threads: Annotated[int | None, Option(help="Threads for blocking work. Default: 4.")] = None
    log_level: Annotated[str | None, Option(help="Log level: debug, info (default), warning or error.")] = None


def serve(
    options: _Options,
    config: Annotated[
        Path | None,
        Option(metavar="FILE.toml", help="File of settings. Environment variables and options override it."),
    ] = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain.

    Settings come from options, from the environment (NODEWISE_LISTEN, NODEWISE_STORE, ...) and from a file, in this
    order. Prints `listening on HOST:PORT` once the server is ready, then `answering HTTP on HOST:PORT` if it serves
    HTTP. Logs go to standard error, one JSON object in each line, or as text
    to a terminal.
    """
    # Only here: the other commands should not wait for the server's imports.
    from nodewise.runtime.serve import serve_configured

    with starting():
        status = serve_configured(config, _announce, **{**asdict(options), "plugins": options.plugins or None})
    if status:
        raise typer.Exit(ExitStatus.FAILURE)


def _announce(address: str, http: str) -> None:
    sys.stdout.write(f"listening on {address}\n")
    if http:
        sys.stdout.write(f"answering HTTP on {http}\n")
    sys.stdout.flush()
