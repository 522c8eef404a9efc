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
    """Settings by name; None = as the environment, a file or the default says."""

    listen: Annotated[
        str | None, Option(metavar="HOST:PORT", help="Where to serve; port 0 picks one. Default 127.0.0.1:50551.")
    ] = None
    http: Annotated[
        str | None,
        Option(
            metavar="HOST:PORT",
            help="Where to serve HTTP/JSON; off = nowhere. Default 127.0.0.1:50552 where --listen is not stated.",
        ),
    ] = None
    workers: Annotated[int | None, Option(help="Processes that share the port. Default 1.")] = None
    store: Annotated[
        str | None,
        Option(metavar="URL", help="memory:, sqlite:PATH or postgresql://HOST/DATABASE. Default sqlite:nodewise.db."),
    ] = None
    durability: Annotated[
        str | None,
        Option(help="What an acknowledged batch survives: process (death of the process, default) or power."),
    ] = None
    traces: Annotated[
        str | None,
        Option(metavar="PLACE", help="Traces: a directory or s3://BUCKET/PREFIX. Default: beside the store."),
    ] = None
    catalogue: Annotated[
        str | None,
        Option(metavar="FILE.toml", help="Facts of devices and links besides the shipped ones. Default: none."),
    ] = None
    plugins: Annotated[
        list[str] | None,
        Option("--plugin", metavar="NAME", help="Plugin allowed besides the shipped ones; repeatable. Default: all."),
    ] = None
    safe_mode: Annotated[bool | None, Option("--safe-mode/--no-safe-mode", help="Shipped plugins only.")] = None
    reflection: Annotated[bool | None, Option("--reflection/--no-reflection", help="Offer gRPC server reflection.")] = (
        None
    )
    default_deadline_s: Annotated[
        float | None, Option(metavar="SECONDS", help="For calls that state none. Default 60.")
    ] = None
    drain_delay_s: Annotated[
        float | None, Option(metavar="SECONDS", help="From not serving to the stop, for balancers. Default 0.")
    ] = None
    grace_s: Annotated[
        float | None, Option(metavar="SECONDS", help="For calls in flight when stopping. Default 10.")
    ] = None
    threads: Annotated[int | None, Option(help="Threads for what may block. Default 4.")] = None
    log_level: Annotated[str | None, Option(help="debug, info (default), warning or error.")] = None


def serve(
    options: _Options,
    config: Annotated[
        Path | None, Option(metavar="FILE.toml", help="Settings; environment and options stand above it.")
    ] = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain.

    Settings come from options, from the environment (NODEWISE_LISTEN, NODEWISE_STORE, ...) and from a file, in this
    order. Prints `listening on HOST:PORT` once calls are answered, then perhaps `answering HTTP on HOST:PORT`; logs
    go to standard error, one JSON object a line, or as text to a terminal.
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
