"""What a worker sends to a host: calls with their arguments, and answers about what a call was given."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import structlog

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.processes.codec import Encoder, UndecodableError
from nodewise.hosting.processes.given import PROFILES_AT_ONCE
from nodewise.hosting.processes.remote import Following, Remote
from nodewise.hosting.processes.words import ATTRIBUTES, GIVEN, GIVEN_METHODS, METHODS, Op

if TYPE_CHECKING:
    from nodewise.hosting.processes.host import Host

__all__ = ["MOST_READ_BYTES", "MOST_ROWS", "Sending", "asked_of_given"]

_log = structlog.get_logger(__name__)

MOST_INTERNED: Final = 64
"""Large values that a host keeps between calls: profiles, catalogues, configurations of the call before."""
MOST_ROWS: Final = 65_536
"""Of a question to another's model, or as many as the host itself is asked about, where that is more: as many as a
caller's question has unless it is set otherwise."""
MOST_READ_BYTES: Final = 1 << 20
"""Of a file at a time, as much as a host's buffer has: who asks for more is given less, and asks again."""
PLACES: Final = 8
"""Rows that a host keeps: one question is asked of all estimators that it brings."""
_NOTHING: Final = (None, 0)
MOST_GIVEN: Final = 1_024
"""Models of others that a host may ask, those it was given first dropped first."""


class Sending:
    """Writes messages to one host, and knows what it has been sent.

    Large values are numbered and sent once. What a call is given to ask (a context, a stream, another's model) stays
    here under a number, and the host asks by that number.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._interned: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._given: OrderedDict[int, tuple[str, Any]] = OrderedDict()
        self._numbers = itertools.count(PLACES + 1)
        self._turns = itertools.count()
        self._places: dict[int, int] = {}
        self._most_rows = MOST_ROWS

    def begin(self) -> None:
        """The host is a new process, which knows nothing."""
        self._interned.clear()
        self._given.clear()

    @contextmanager
    def call(self) -> Iterator[None]:
        """What is given within ends with it, but for models: another model may be built on them."""
        before, most_rows = next(self._numbers), self._most_rows
        try:
            yield
        finally:
            self._most_rows = most_rows
            ended = [number for number, (kind, _) in self._given.items() if number > before and kind != "model"]
            for number in ended:
                del self._given[number]
            while len(self._given) > MOST_GIVEN:
                self._given.popitem(last=False)

    def asking(
        self,
        exchange: int,
        op: int,
        target: str | int,
        name: str,
        arguments: tuple[Any, ...],
        forgotten: list[int],
        following: Following | None = None,
    ) -> bytes:
        """A call, with the numbers of objects that nobody holds any more, and the call that follows."""
        given = GIVEN.get(name, {})
        self._most_rows = max(self._most_rows, rows_of(arguments))
        encoder = Encoder(self._other, self._intern)
        try:
            sent = [
                self._gave(encoder, given[place], argument) if place in given else encoder.one(argument)
                for place, argument in enumerate(arguments)
            ]
            more: list[Any] = []
            if following is not None:
                model, method, asked = following
                follows = _target(encoder, model.target)
                more = [_Written(["l", follows, method, ["l", *map(encoder.one, asked)]])]
            while len(self._interned) > MOST_INTERNED:
                forgotten.append(self._interned.popitem(last=False)[1][1])
            where = _Written(_target(encoder, target))
            return encoder.message(exchange, op, where, name, _Written(["l", *sent]), forgotten, *more)
        except BaseException:
            self._interned.clear()  # some of it may never have been sent
            raise

    def told(self, exchange: int, *values: Any) -> bytes:
        """Any values."""
        return Encoder(self._other, self._intern).message(exchange, *values)

    def answer(self, exchange: int, number: Any, method: Any, arguments: Any) -> bytes:
        """What something that a call was given answers; only what it is given for can be asked of it."""
        try:
            kind, value = self._given[number]
            found = asked_of_given(kind, value, method, arguments, self._most_rows)
            if kind == "context" and method == "model":
                found = _Model(found)
            return self._told_anew(exchange, found)
        except NodewiseError as error:
            return self.told(exchange, Op.RAISED, error)
        except Exception as error:  # noqa: BLE001  # whatever it is, the plugin is told that it has no answer
            about = {"distribution": self._host.distribution, "method": str(method)[:100]}
            _log.warning("given_failed", **about, exc_info=error)
            failed = NodewiseError(Reason.ESTIMATOR_FAILED, "what was asked for failed")
            return self.told(exchange, Op.RAISED, failed)

    def _told_anew(self, exchange: int, found: Any) -> bytes:
        try:
            return self.told(exchange, Op.RESULT, found)
        except BaseException:
            self._interned.clear()  # some of it may never have been sent
            raise

    def _intern(self, encoder: Encoder, value: Any, write: Callable[[Encoder, Any], Any]) -> Any:
        """A large value; only its number where it was sent before."""
        known = self._interned.get(id(value))
        if known is not None:
            self._interned.move_to_end(id(value))
            return ["N", encoder.number(known[1])]
        # Below 0: the host counts its objects above.
        number = self._place_of_rows(value) if type(value) is Configurations else -next(self._numbers)
        self._interned[id(value)] = value, number
        return ["n", encoder.number(number), write(encoder, value)]

    def _place_of_rows(self, value: Configurations) -> int:
        """Rows take the places of earlier ones in turn."""
        number = -(1 + next(self._turns) % PLACES)
        before = self._places.get(number)
        if before is not None and self._interned.get(before, _NOTHING)[1] == number:
            del self._interned[before]
        self._places[number] = id(value)
        return number

    def _other(self, encoder: Encoder, value: Any) -> Any:
        """What is no plain value."""
        if isinstance(value, _Written):
            return value.entry
        model = value.model if isinstance(value, _Model) else value
        if isinstance(model, Remote) and model.host is self._host and model.generation == self._host.generation:
            return ["r", model.target]
        if isinstance(value, _Model | Remote):
            return self._gave(encoder, "model", model)
        raise UndecodableError(f"a {type(value).__name__}, which cannot be sent to a host")

    def _gave(self, encoder: Encoder, kind: str, value: Any) -> Any:
        """Something that the host may ask."""
        number = next(self._numbers)
        more: list[Any] = []
        if kind == "context":
            more = [encoder.one(value.prior), encoder.one(value.catalogue), value.seed]
        elif kind == "run":
            left_s = value.remaining_s()
            more = [encoder.one(value.catalogue), left_s if left_s < float("inf") else None]
        elif kind == "corpus":
            value = tuple(value)
            more = [len(value)]
        elif kind == "model":
            has = value.names.__contains__ if isinstance(value, Remote) else lambda name: hasattr(value, name)
            more = [["l", *sorted(filter(has, METHODS | ATTRIBUTES))]]
        self._given[number] = kind, value
        return ["g", number, kind, *more]


def _target(encoder: Encoder, target: str | int) -> Any:
    """A record's object by its name; one of many by its number, behind the tree."""
    return target if isinstance(target, str) else ["#", encoder.number(target)]


class _Written:
    """A part of a message that is written already."""

    __slots__ = ("entry",)

    def __init__(self, entry: Any) -> None:
        self.entry = entry


class _Model:
    """A model, to be asked by the host wherever it lives."""

    __slots__ = ("model",)

    def __init__(self, model: Any) -> None:
        self.model = model


def _too_much(what: str, found: int, most: int) -> NodewiseError:
    """Why a host is not given what it asks for; the plugin may tell its caller so."""
    return NodewiseError(Reason.LIMIT_EXCEEDED, f"a plugin asked for {found} {what}, where 0 to {most} can be")


def rows_of(arguments: Iterable[Any]) -> int:
    """Of all configurations among the arguments of a call."""
    return sum(len(each) for each in arguments if isinstance(each, Configurations))


def asked_of_given(kind: str, value: Any, method: str, arguments: list[Any], most_rows: int) -> Any:
    """Ask what a call was given; of a model, about so many rows at most."""
    if method not in GIVEN_METHODS[kind]:
        raise NodewiseError(Reason.NOT_IMPLEMENTED, f"a {kind} has no such method")
    if kind == "corpus":
        begin, end = map(int, arguments)
        if not 0 <= end - begin <= PROFILES_AT_ONCE:
            raise _too_much("profiles", end - begin, PROFILES_AT_ONCE)
        return value[begin:end]
    if kind == "stream":
        (size,) = map(int, arguments)
        if size < 0:
            raise _too_much("bytes", size, MOST_READ_BYTES)
        return value.read(min(size, MOST_READ_BYTES))
    rows = rows_of(arguments)
    if rows > most_rows:
        raise _too_much("rows", rows, most_rows)
    if method in ATTRIBUTES:
        return getattr(value, method)
    return getattr(value, method)(*arguments)
