"""An object that lives in another process, as the worker holds it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nodewise.hosting.processes.words import ATTRIBUTES

if TYPE_CHECKING:
    from nodewise.hosting.processes.peer import Peer

__all__ = ["Following", "GoneError", "Remote", "foreign", "has_all"]

Following = tuple[Any, str, tuple[Any, ...]]
"""What is asked next: an object, its method and the arguments."""


class GoneError(Exception):
    """The process was replaced, or has dropped the object."""


class Remote:
    """An object of a plugin: its methods are called, and its attributes read, where it lives.

    Attributes
    ----------
    peer : Peer
        Who has it.
    target : str or int
        A record's object by kind and name, or the number of an answer.
    generation : int
        The process that has it; 0 = each has it.
    names : frozenset of str
        What it has of the protocols.
    renew : callable or None
        Makes the object anew once its process is gone.
    released : finalize or None
        Tells the process that nobody holds the object any more.
    proven : bool
        Whether it has answered a prediction.
    asks : bool
        Whether it may ask the worker while it is asked: its fit was given another's model.
    """

    __slots__ = ("__weakref__", "asks", "generation", "names", "peer", "proven", "released", "renew", "target")

    def __init__(self, peer: Peer, target: str | int, generation: int, names: frozenset[str]) -> None:
        self.peer = peer
        self.target = target
        self.generation = generation
        self.names = names
        self.renew: Callable[[], Any] | None = None
        self.released: weakref.finalize[Any, Any] | None = None
        self.proven = False
        self.asks = False
        self._release_at_end()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.names:
            raise AttributeError(name)
        return self._asked(name, ()) if name in ATTRIBUTES else partial(self._called, name)

    def followed(self, name: str, arguments: tuple[Any, ...], following: Following) -> Any:
        """What a method answers, asked together with what is asked next: that one's answer waits for its question.

        Together only where the next one has answered before: what then goes wrong is that one's fault, as far as can
        be told.
        """
        model, method, _ = following
        if isinstance(model, Remote) and model.peer is self.peer and model.proven and method in model.names:
            return self.peer.asked(self, name, arguments, following)
        return self._called(name, *arguments)

    def _called(self, name: str, *arguments: Any) -> Any:
        found = self._asked(name, arguments)
        if name == "predict":
            self.proven = True
        return found

    def _asked(self, name: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return self.peer.asked(self, name, arguments)
        except GoneError:
            if self.renew is None:
                raise
        found = self.renew()
        if not isinstance(found, Remote):
            raise GoneError
        self._become(found)
        return self.peer.asked(self, name, arguments)

    def _become(self, found: Remote) -> None:
        """Stand for the other one's object from now on, which that one does not release."""
        for each in (self.released, found.released):
            if each is not None:
                each.detach()
        self.target, self.generation, self.names = found.target, found.generation, found.names
        self.proven, self.asks = False, found.asks
        self._release_at_end()

    def _release_at_end(self) -> None:
        if isinstance(self.target, int):
            self.released = weakref.finalize(self, self.peer.released, self.generation, self.target)
            self.released.atexit = False


def has_all(remote: Remote, protocol: type) -> bool:
    """Whether a remote object has the members of a protocol."""
    members = {
        name
        for base in protocol.__mro__
        if getattr(base, "_is_protocol", False)
        for name in vars(base)
        if not name.startswith("_")
    }
    return members <= remote.names


class _Foreign:
    """An answer that is no value of the plugin door's."""


def foreign(name: str) -> Any:
    """What stands for an answer that could not cross: nothing but the name of its type."""
    return type(name if name.isidentifier() else "value", (_Foreign,), {})()
