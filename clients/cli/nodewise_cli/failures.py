"""What a command may end with: exit statuses, and errors that are one line for people and never a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Final

__all__ = ["CommandError", "ExitStatus", "InputError", "RefusedAnswer", "decode_utf8", "text_of", "unreadable"]


class ExitStatus(IntEnum):
    """Exit statuses of every command."""

    ANSWERED = 0
    FAILURE = 1
    BAD_INPUT = 2
    REFUSED = 3


class CommandError(Exception):
    """A failure whose text is written for the user.

    Parameters
    ----------
    message : str
        What is wrong and what would be right.
    code, reason : str
        As in errors of the service; empty = those of the class.
    violations : sequence of (str, str)
        Fields that hold what they must not, each with what would be right.
    """

    status: ExitStatus = ExitStatus.FAILURE
    usual_code = "FAILED_PRECONDITION"
    usual_reason = "COMMAND_FAILED"

    def __init__(
        self, message: str, *, code: str = "", reason: str = "", violations: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.code: Final = code or self.usual_code
        self.reason: Final = reason or self.usual_reason
        self.violations: Final = tuple(violations)


class InputError(CommandError):
    """What the user gave cannot be used; the text names the place and what would be right."""

    status = ExitStatus.BAD_INPUT
    usual_code = "INVALID_ARGUMENT"
    usual_reason = "BAD_INPUT"


class RefusedAnswer(CommandError):  # noqa: N818  # a refusal is no fault
    """The service answered, and the answer is that it cannot tell."""

    status = ExitStatus.REFUSED
    usual_reason = "REFUSED"


def unreadable(path: Path, error: OSError) -> InputError:
    """A file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{path}: is a directory, not a file")
    return InputError(f"{path}: cannot be read: {error.strerror or type(error).__name__}")


def text_of(path: Path, what: str) -> str:
    """What a file of UTF-8 holds; ``what`` it should be, for messages.

    Raises
    ------
    InputError
        Naming the file.
    """
    try:
        return decode_utf8(path, path.read_bytes(), what)
    except OSError as error:
        raise unreadable(path, error) from None


def decode_utf8(path: Path, data: bytes, what: str) -> str:
    """A file's bytes as UTF-8.

    Raises
    ------
    InputError
        Naming the file.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not {what}: byte {error.start} is not UTF-8") from None
