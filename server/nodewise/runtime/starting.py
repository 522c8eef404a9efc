"""What keeps a server from starting, in words for its operator."""

from __future__ import annotations

__all__ = ["StartError"]


class StartError(Exception):
    """What keeps a server or a sweep from starting, in words for its operator.

    Attributes
    ----------
    of_input : bool
        Whether what was given is at fault, rather than the place it runs in.
    """

    def __init__(self, message: str, *, of_input: bool) -> None:
        super().__init__(message)
        self.of_input = of_input
