"""What a command may end with: exit statuses, and errors that are one line for people and never a traceback."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

__all__ = ["CommandError", "ExitStatus", "InputError", "unreadable"]


class ExitStatus(IntEnum):
    """Exit statuses of every command."""

    ANSWERED = 0
    FAILURE = 1
    BAD_INPUT = 2
    REFUSED = 3


class CommandError(Exception):
    """A failure whose text is written for the user."""

    status = ExitStatus.FAILURE


class InputError(CommandError):
    """What the user gave cannot be used; the text names the place and what would be right."""

    status = ExitStatus.BAD_INPUT


def unreadable(path: Path, error: OSError) -> InputError:
    """A file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{path}: is a directory, not a file")
    return InputError(f"{path}: cannot be read: {error.strerror or type(error).__name__}")
