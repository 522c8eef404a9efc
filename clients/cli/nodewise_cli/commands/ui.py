"""`nodewise ui`: the console over files, with a server of its own that ends with the command."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Argument, Option

from nodewise_cli.console import say
from nodewise_cli.failures import CommandError

__all__ = ["ui"]

_STOP_S: Final = 15.0
"""Seconds for the server to stop; then it is killed."""


def ui(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        Argument(metavar="[TABLE.csv|TRACE...]", help="Measurements tables and traces to show. Default: none."),
    ] = None,
    port: Annotated[
        int, Option(metavar="PORT", min=0, max=65535, help="Port of the console on 127.0.0.1; 0 picks a free one.")
    ] = 0,
    store: Annotated[
        Path | None,
        Option(metavar="FILE.db", help="Store to show and change. Default: an empty one that ends with the command."),
    ] = None,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the console in the default browser.")] = True,
) -> None:
    """Open the console over files, until Ctrl-C.

    Starts a server on loopback, stores the files in it, and opens a browser. A server that runs already shows the
    console at its address for HTTP.
    """
    command: Any = context.find_root().command
    with tempfile.TemporaryDirectory(prefix="nodewise-ui-") as folder:
        place = (Path(folder) / "ui.db") if store is None else store.resolve()
        with _serve(place, port) as (process, address, http):
            for group in _groups(files or []):
                words = ["ingest", *map(str, group), "--server", address]
                command.main(words, prog_name="nodewise", standalone_mode=False)
            url = f"http://{http}/"
            say(f"The console is at {url} until Ctrl-C.", bold=True)
            if browser:
                webbrowser.open(url)
            try:
                process.wait()
            except KeyboardInterrupt:
                return
    raise CommandError("ui: the server ended; its log is above")


def _groups(files: list[Path]) -> list[list[Path]]:
    """Tables, and traces of one job: each is stored by an ingest of its own."""
    tables = [file for file in files if file.suffix.lower() == ".csv"]
    traces = [file for file in files if file not in tables]
    return [group for group in (tables, traces) if group]


@contextmanager
def _serve(store: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server in a process of its own, with its addresses for gRPC and HTTP.

    Raises
    ------
    CommandError
        If it does not start.
    """
    arguments = ["--listen", "127.0.0.1:0", "--http", f"127.0.0.1:{port}", "--store", f"sqlite:{store}"]
    process = subprocess.Popen(  # noqa: S603  # a fixed command
        [sys.executable, "-m", "nodewise", "serve", *arguments, "--log-level", "warning"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        addresses = [process.stdout.readline().rpartition(" ")[2].strip() for _ in range(2)]
        if not all(addresses):
            raise CommandError("ui: the server did not start; its log is above")
        yield process, addresses[0], addresses[1]
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
