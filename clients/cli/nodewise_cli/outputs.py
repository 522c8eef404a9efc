"""Files that a command writes beside its answer: refused before the work where they could not be written after it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nodewise_cli.failures import CommandError, InputError

__all__ = ["checked_output", "needs_matplotlib", "policy_hash", "writing"]


def policy_hash(text: str) -> str:
    """The hash of a page's own style or script, in the form of its content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def checked_output(path: Path | None, option: str, suffixes: Sequence[str] = ()) -> None:
    """Refuse a name that no such file can have.

    Parameters
    ----------
    suffixes : sequence of str
        Endings that say what is written; none = any.

    Raises
    ------
    InputError
        Naming the option.
    """
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        *others, last = suffixes
        right = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{option}: must end in {right}, found {str(path)!r}")
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"{option}: must be a file in a directory that exists, found {str(path)!r}")


def needs_matplotlib(option: str, otherwise: str = "") -> None:
    """Refuse a picture that needs matplotlib where it is not installed.

    Raises
    ------
    CommandError
        Saying how to get it.
    """
    try:
        import matplotlib.figure  # noqa: F401  # an extra: whether it is there is the question
    except ImportError:
        raise CommandError(f"{option} needs matplotlib: pip install matplotlib{otherwise}") from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What goes wrong while a file is written, as an error of the command.

    Raises
    ------
    CommandError
    """
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
