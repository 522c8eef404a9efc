"""An object that lives in another process, as the worker holds it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any

from nodewise.hosting.processes.faults import HostKilledError
from nodewise.hosting.processes.members import ATTRIBUTES, members_of

if TYPE_CHECKING:
    from nodewise.hosting.processes.peer import Peer

__all__ = ["Following", "GoneError", "Remote", "foreign", "has_all"]

Following = tuple[Any, str, tuple[Any, ...]]
"""The next call: an object, its method and the arguments."""


class GoneError(Exception):
    """The process was replaced, or has dropped the object."""


class Remote:
    """An object of a plugin: its methods are called, and its attributes read, where it lives.

    Attributes
    ----------
    peer : Peer
        What has it.
    target : str or int
        A record's object by kind and name, or the number of an answer.
    generation : int
        The process that holds it; 0 = every process does.
    names : frozenset of str
        Its methods and attributes.
    renew : callable or None
        Makes the object anew once its process is gone.
    has_predicted : bool
        Whether it has answered a prediction.
    asks : bool
        Whether it may call the worker during a call: its fit got another estimator's model.
    early : tuple or None
        Arguments of a prediction that was answered with the call before, and the response.
    """

    __slots__ = (
        *("__weakref__", "_finalizer", "asks", "early", "generation", "has_predicted", "names", "peer", "renew"),
        "target",
    )

    def __init__(self, peer: Peer, target: str | int, generation: int, names: frozenset[str]) -> None:
        self.peer = peer
        self.renew: Callable[[], Any] | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._stand_for(target, generation, names)

    def _stand_for(self, target: str | int, generation: int, names: frozenset[str]) -> None:
        self.target, self.generation, self.names = target, generation, names
        self.has_predicted = self.asks = False
        self.early: tuple[tuple[Any, ...], Any] | None = None
        if isinstance(target, int):
            self._finalizer = weakref.finalize(self, self.peer.release_later, generation, target)
            self._finalizer.atexit = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.names:
            raise AttributeError(name)
        return self._ask(name, ()) if name in ATTRIBUTES else partial(self._call_method, name)

    def call_with_next(self, name: str, arguments: tuple[Any, ...], following: Following) -> Any:
        """The answer of a method, called together with the next one, whose answer is kept until that call comes.

        They are called together only where the next one has succeeded before; a failure is then probably its fault.
        """
        model, method, _ = following
        if isinstance(model, Remote) and model.peer is self.peer and model.has_predicted and method in model.names:
            with suppress(HostKilledError):
                return self.peer.ask(self, name, arguments, following)
        return self._call_method(name, *arguments)

    def early_prediction(self, arguments: tuple[Any, ...]) -> Any:
        """The response to a prediction that was answered with the call before; None = there is none."""
        early = self.early
        if early is None or not all(map(is_, early[0], arguments)):
            return None
        self.early = None
        return early[1]

    def _call_method(self, name: str, *arguments: Any) -> Any:
        answer = self._ask(name, arguments)
        self.has_predicted |= name == "predict"
        return answer

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return self.peer.ask(self, name, arguments)
        except GoneError:
            if self.renew is None:
                raise
        except HostKilledError:  # a call has no side effects: it is repeated once in another process
            if self.generation == 0:
                return self.peer.ask(self, name, arguments)
            if self.renew is None:
                raise
        replacement = self.renew()
        if not isinstance(replacement, Remote):
            raise GoneError
        for each in (self, replacement):  # its object is ours from now on
            if each._finalizer is not None:  # noqa: SLF001  # of its own class
                each._finalizer.detach()  # noqa: SLF001
        self._stand_for(replacement.target, replacement.generation, replacement.names)
        self.asks = replacement.asks
        return self.peer.ask(self, name, arguments)


def has_all(remote: Remote, protocol: type) -> bool:
    """Whether a remote object has the members of a protocol."""
    return members_of(protocol).keys() <= remote.names


class _Foreign:
    """An answer that is not a value of ``nodewise.plugin``."""


def foreign(name: str) -> Any:
    """A stand-in for an answer that could not be sent; it has only the name of its type."""
    return type(name if name.isidentifier() else "value", (_Foreign,), {})()
