"""`nodewise backup`, `restore`, `copy` and `verify`: whole stores, whose server may run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Argument, Option

from nodewise_cli.commands.options import AsJson
from nodewise_cli.console import print_json, say
from nodewise_cli.failures import ExitStatus, InputError, RefusedAnswer
from nodewise_cli.service import starting

if TYPE_CHECKING:
    from nodewise.runtime.backups import Place

__all__ = ["backup", "copy", "restore", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Store:
    """The store itself; no server is called."""

    store: Annotated[
        str | None,
        Option(metavar="URL", help="sqlite:PATH or postgresql://HOST/DATABASE. Default: as in the settings."),
    ] = None
    traces: Annotated[
        str | None,
        Option(
            metavar="PLACE", help="Traces of the store: a directory or s3://BUCKET/PREFIX. Default: as in the settings."
        ),
    ] = None
    config: Annotated[
        Path | None, Option(metavar="FILE.toml", help="The server's settings, which name the store and its traces.")
    ] = None
    as_json: AsJson = False

    def place(self) -> Place:
        """The store in the form that the server's code takes."""
        # Only here: the other commands should not wait for the server's imports.
        from nodewise.runtime.backups import Place

        return Place(self.config, self.store, self.traces)

    def tell(self, figures: Any, text: str) -> None:
        """Print the result."""
        if self.as_json:
            print_json(asdict(figures))
        else:
            say(text)


_STORE: Final = _Store()


def backup(
    target: Annotated[Path, Argument(metavar="TARGET", help="Directory that does not exist yet.")],
    since: Annotated[
        Path | None, Option(metavar="BACKUP", help="Earlier backup: its traces are linked, not copied again.")
    ] = None,
    store: _Store = _STORE,
) -> None:
    """Copy a store as it is at one moment; its server may run meanwhile.

    The directory appears once the whole backup is on the disk. If the command was interrupted, run it again to resume.
    """
    from nodewise.runtime.backups import backed_up

    with starting():
        figures = backed_up(store.place(), target, since)
    copied_bytes = f"{figures.copied_bytes:,} bytes of traces copied, {figures.trace_bytes:,} in total"
    text = f"{target}: {figures.profiles} profiles, {figures.traces} traces, {figures.rows} rows; {copied_bytes}"
    store.tell(figures, f"{text}\nDigest, for restore --digest: {figures.digest}")


def restore(
    source: Annotated[Path, Argument(metavar="BACKUP", help="Directory that `nodewise backup` made.")],
    digest: Annotated[
        str, Option(metavar="SHA256", help="Digest that `nodewise backup` printed: refuse a backup that differs.")
    ] = "",
    store: _Store = _STORE,
) -> None:
    """Restore a backup into an empty store of any kind, as a whole or not at all.

    The command lists restored tokens: without --digest, anyone with write access to a backup could have added tokens.
    """
    from nodewise.runtime.backups import restore_backup

    with starting():
        figures = restore_backup(store.place(), source, digest)
    tokens = "".join(f"\n- token {token}" for token in figures.tokens)
    store.tell(figures, f"{figures.profiles} profiles, {figures.traces} traces, {figures.rows} rows restored{tokens}")


def copy(
    to: Annotated[str, Argument(metavar="URL", help="An empty store, of any kind.")],
    to_traces: Annotated[
        str | None, Option(metavar="PLACE", help="Traces of the new store. Default: beside it.")
    ] = None,
    store: _Store = _STORE,
) -> None:
    """Copy a store into an empty one, as it is at one moment: from SQLite to PostgreSQL, or back."""
    from nodewise.runtime.backups import Place, bring_over

    with starting():
        figures = bring_over(store.place(), Place(store.config, to, to_traces or ""))
    store.tell(figures, f"{figures.profiles} profiles, {figures.traces} traces, {figures.rows} rows copied")


def verify(
    source: Annotated[Path | None, Argument(metavar="[BACKUP]", help="A backup. Default: the store itself.")] = None,
    quick: Annotated[bool, Option("--quick", help="Compare the sizes of traces only, without reading them.")] = False,
    store: _Store = _STORE,
) -> None:
    """Check that a store or a backup is complete and undamaged.

    Exit status: 0 = it is, 1 = something is damaged or missing, 3 = it could not be read.
    """
    from nodewise.runtime.backups import UncheckedError, verify_place

    if source is not None and (store.store, store.traces) != (None, None):
        raise InputError("--store, --traces: must be left out when a BACKUP is given")
    try:
        with starting():
            figures = verify_place(store.place(), source, content=not quick)
    except UncheckedError as error:
        raise RefusedAnswer(f"it could not be checked: {error}") from None
    wrong = "".join(f"\n- {problem}" for problem in figures.problems)
    text = f"{figures.profiles} profiles, {figures.traces} traces: {'undamaged' if not wrong else 'DAMAGED'}"
    store.tell(figures, text + wrong)
    if figures.problems:
        raise typer.Exit(ExitStatus.FAILURE)
