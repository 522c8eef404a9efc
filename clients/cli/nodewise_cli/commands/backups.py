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
    """Where the store is; no server is asked."""

    store: Annotated[
        str | None, Option(metavar="URL", help="sqlite:PATH or postgresql://HOST/DATABASE. Default: as settings say.")
    ] = None
    traces: Annotated[
        str | None,
        Option(metavar="PLACE", help="Its traces: a directory or s3://BUCKET/PREFIX. Default: as settings say."),
    ] = None
    config: Annotated[Path | None, Option(metavar="FILE.toml", help="The server's settings, which name both.")] = None
    as_json: AsJson = False

    def place(self) -> Place:
        """As the server's code takes it."""
        # Only here: the other commands should not wait for the server's imports.
        from nodewise.runtime.backups import Place

        return Place(self.config, self.store, self.traces)

    def tell(self, figures: Any, text: str) -> None:
        """Print what was done."""
        if self.as_json:
            print_json(asdict(figures))
        else:
            say(text)


_STORE: Final = _Store()


def backup(
    target: Annotated[Path, Argument(metavar="TARGET", help="Directory that does not exist yet.")],
    since: Annotated[
        Path | None, Option(metavar="BACKUP", help="An earlier backup, whose traces are linked and not copied.")
    ] = None,
    store: _Store = _STORE,
) -> None:
    """Copy a store as it is at one moment, while it serves.

    The directory appears when all of it is on the disk; what was interrupted goes on if the command is given again.
    """
    from nodewise.runtime.backups import backed_up

    with starting():
        made = backed_up(store.place(), target, since)
    copied_bytes = f"{made.copied_bytes:,} bytes of traces copied, {made.trace_bytes:,} held"
    text = f"{target}: {made.profiles} profiles, {made.traces} traces, {made.rows} rows; {copied_bytes}"
    store.tell(made, f"{text}\nDigest, for restore --digest: {made.digest}")


def restore(
    source: Annotated[Path, Argument(metavar="BACKUP", help="Directory that `nodewise backup` made.")],
    digest: Annotated[
        str, Option(metavar="SHA256", help="What `nodewise backup` printed: a backup that was changed is refused.")
    ] = "",
    store: _Store = _STORE,
) -> None:
    """Bring a backup into an empty store of any kind: all of it, or no row.

    Tokens that come back are named: whoever can write to a backup can add some, unless --digest is given.
    """
    from nodewise.runtime.backups import restore_backup

    with starting():
        done = restore_backup(store.place(), source, digest)
    tokens = "".join(f"\n- token {token}" for token in done.tokens)
    store.tell(done, f"{done.profiles} profiles, {done.traces} traces, {done.rows} rows are back{tokens}")


def copy(
    to: Annotated[str, Argument(metavar="URL", help="An empty store, of any kind.")],
    to_traces: Annotated[str | None, Option(metavar="PLACE", help="Its traces. Default: beside it.")] = None,
    store: _Store = _STORE,
) -> None:
    """Copy a store into an empty one, as it is at one moment: from SQLite to PostgreSQL, or back."""
    from nodewise.runtime.backups import Place, bring_over

    with starting():
        done = bring_over(store.place(), Place(store.config, to, to_traces or ""))
    store.tell(done, f"{done.profiles} profiles, {done.traces} traces, {done.rows} rows copied")


def verify(
    source: Annotated[Path | None, Argument(metavar="[BACKUP]", help="A backup. Default: the store itself.")] = None,
    quick: Annotated[bool, Option("--quick", help="Ask for the sizes of traces, and do not read them.")] = False,
    store: _Store = _STORE,
) -> None:
    """Say whether all of a store, or of a backup, is there and as it was written.

    Exit 0 if it is, 1 if something is damaged or missing, 3 if it does not answer.
    """
    from nodewise.runtime.backups import UncheckedError, verify_place

    if source is not None and (store.store, store.traces) != (None, None):
        raise InputError("a backup needs no --store and no --traces")
    try:
        with starting():
            found = verify_place(store.place(), source, content=not quick)
    except UncheckedError as error:
        raise RefusedAnswer(f"nothing can be said of it: {error}") from None
    wrong = "".join(f"\n- {problem}" for problem in found.problems)
    text = f"{found.profiles} profiles, {found.traces} traces: {'as they were written' if not wrong else 'DAMAGED'}"
    store.tell(found, text + wrong)
    if found.problems:
        raise typer.Exit(ExitStatus.FAILURE)
