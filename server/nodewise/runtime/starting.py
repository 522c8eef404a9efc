"""The error that prevents a start."""

from __future__ import annotations

__all__ = ["StartError"]


class StartError(Exception):
    """Why a server or a sweep cannot start, with a text for its operator.

    Attributes
    ----------
    of_input : bool
        Whether the input is at fault, rather than the environment.
    """

    def __init__(self, message: str, *, of_input: bool) -> None:
        super().__init__(message)
        self.of_input = of_input
