"""An object that lives in another process, as the worker holds it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any

from nodewise.hosting.processes.faults import HostKilledError
from nodewise.hosting.processes.words import ATTRIBUTES, members_of

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
        What has it.
    target : str or int
        A record's object by kind and name, or the number of an answer.
    generation : int
        The process that has it; 0 = each has it.
    names : frozenset of str
        What it has of the protocols.
    renew : callable or None
        Makes the object anew once its process is gone.
    has_predicted : bool
        Whether it has answered a prediction.
    asks : bool
        Whether it may ask the worker while it is asked: its fit was given another's model.
    early : tuple or None
        Arguments of a prediction that was answered with the call before, and the response.
    """

    __slots__ = (
        *("__weakref__", "_released", "asks", "early", "generation", "has_predicted", "names", "peer", "renew"),
        "target",
    )

    def __init__(self, peer: Peer, target: str | int, generation: int, names: frozenset[str]) -> None:
        self.peer = peer
        self.renew: Callable[[], Any] | None = None
        self._released: weakref.finalize[Any, Any] | None = None
        self._stand_for(target, generation, names)

    def _stand_for(self, target: str | int, generation: int, names: frozenset[str]) -> None:
        self.target, self.generation, self.names = target, generation, names
        self.has_predicted = self.asks = False
        self.early: tuple[tuple[Any, ...], Any] | None = None
        if isinstance(target, int):
            self._released = weakref.finalize(self, self.peer.released, generation, target)
            self._released.atexit = False

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
        if isinstance(model, Remote) and model.peer is self.peer and model.has_predicted and method in model.names:
            with suppress(HostKilledError):
                return self.peer.asked(self, name, arguments, following)
        return self._called(name, *arguments)

    def predicted_early(self, arguments: tuple[Any, ...]) -> Any:
        """The response to a prediction that was answered with the call before; None = there is none."""
        early = self.early
        if early is None or not all(map(is_, early[0], arguments)):
            return None
        self.early = None
        return early[1]

    def _called(self, name: str, *arguments: Any) -> Any:
        found = self._asked(name, arguments)
        self.has_predicted |= name == "predict"
        return found

    def _asked(self, name: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return self.peer.asked(self, name, arguments)
        except GoneError:
            if self.renew is None:
                raise
        except HostKilledError:  # a call leaves nothing behind: another process is asked once more
            if self.generation == 0:
                return self.peer.asked(self, name, arguments)
            if self.renew is None:
                raise
        found = self.renew()
        if not isinstance(found, Remote):
            raise GoneError
        for each in (self, found):  # its object is ours from now on
            if each._released is not None:  # noqa: SLF001  # of its own class
                each._released.detach()  # noqa: SLF001
        self._stand_for(found.target, found.generation, found.names)
        self.asks = found.asks
        return self.peer.asked(self, name, arguments)


def has_all(remote: Remote, protocol: type) -> bool:
    """Whether a remote object has the members of a protocol."""
    return members_of(protocol).keys() <= remote.names


class _Foreign:
    """An answer that is no value of the plugin door's."""


def foreign(name: str) -> Any:
    """What stands for an answer that could not cross: nothing but the name of its type."""
    return type(name if name.isidentifier() else "value", (_Foreign,), {})()
