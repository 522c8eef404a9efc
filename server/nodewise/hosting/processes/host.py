"""A plugin host, as the worker has it: a process that is started, asked, watched, ended and replaced."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import structlog

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Fidelity, Options
from nodewise.domain.profile import Profile
from nodewise.hosting.processes.codec import Decoder, Encoder, Opaque, UndecodableError
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.frames import LostError
from nodewise.hosting.processes.lives import Life, started
from nodewise.hosting.processes.remote import GoneError, Remote, foreign
from nodewise.hosting.processes.words import ANSWERS_WITH_OBJECTS, ATTRIBUTES, GIVEN, GIVEN_METHODS, LONG, METHODS, Op
from nodewise.plugin import Catalogue, Prior

__all__ = ["Host", "HostLimits", "Listing", "impatient"]

_log = structlog.get_logger(__name__)

MOST_INTERNED: Final = 64
"""Large values that a host keeps between calls: profiles, catalogues, configurations of the call before."""
MOST_GIVEN: Final = 1_024
"""Models of others that a host may ask, those it was given first dropped first."""
STUCK_S: Final = 0.5
"""How long another call may hold a host before those who can do without it go on: most calls take milliseconds."""
WAIT_S: Final = 0.1
"""Seconds between looks at who holds the host."""
GRACE_S: Final = 1.0
"""Seconds beyond the time that a call was told it has: it ends itself if it looks."""
_INTERNED: Final = (Profile, Catalogue, Configurations, Prior)

Listing = tuple[list[Any], list[Any]]
"""Records and problems of a host's plugins, as plain values."""

impatient: ContextVar[bool] = ContextVar("impatient", default=False)
"""Whether who asks can do without this plugin, and rather does than wait for one that is stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """What a host may take.

    Attributes
    ----------
    call_budget_s : float
        Seconds of a call.
    long_call_budget_s : float
        Seconds of long work, if it was not told that it has less: learning, replays, diagnoses, searches, simulations.
    load_budget_s : float
        Seconds to import the plugins.
    memory_bytes : int
        What a host's process may allocate beyond what it has as it starts.
    """

    call_budget_s: float = 10.0
    long_call_budget_s: float = 120.0
    load_budget_s: float = 30.0
    memory_bytes: int = 4 << 30


class Host:
    """Implements what handles need. One call at a time: what kills a host is then the call that was on.

    Parameters
    ----------
    distribution : str
        Name and version.
    entry_points : tuple of pairs
        Name and value of each.
    limits : HostLimits
    known : pair of lists or None
        The listing, where another process has it already: this host starts when it is first asked something.
    """

    def __init__(
        self,
        distribution: str,
        entry_points: tuple[tuple[str, str], ...],
        limits: HostLimits,
        known: Listing | None = None,
    ) -> None:
        self.distribution = distribution
        self._entry_points = entry_points
        self._limits = limits
        self._turn = threading.RLock()
        self._since_s = 0.0
        self._life: Life | None = None
        self._generation = 0
        self._known = known
        self._loaded = False
        self._released: deque[tuple[int, int]] = deque()
        self._interned: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._given: OrderedDict[int, tuple[str, Any]] = OrderedDict()
        self._numbers = itertools.count(1)
        self._depth = 0
        self._closed = False
        self._others: Mapping[str, Callable[[Decoder, list[Any]], Any]] = {
            "x": lambda _, entry: foreign(str(entry[1])),
            "p": lambda decoder, entry: Opaque(decoder.content(entry[1], entry[2])),
        }

    # --- life

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Of its entry points."""
        return tuple(name for name, _ in self._entry_points)

    def begin(self) -> None:
        """Start the process without waiting for it, so that several start at the same time."""
        with self._turn:
            if self._life is None and self._known is None and not self._closed:
                self._life = started(self.distribution, self._limits.call_budget_s)

    def listing(self) -> Listing:
        """Records and problems, as plain values; starts the host unless it runs.

        Raises
        ------
        HostFaultError
            If it cannot be loaded.
        """
        if self._known is None:
            with self._taken():
                self._living()
        assert self._known is not None
        return self._known

    def close(self) -> None:
        """End the process; none is started any more."""
        self._closed = True
        life = self._life
        if life is not None:
            life.kill()

    @property
    def known(self) -> Listing | None:
        """The listing; None = it was never loaded."""
        return self._known

    @property
    def pid(self) -> int | None:
        """Of its process; None = there is none now."""
        life = self._life
        return None if life is None else life.pid

    def _living(self) -> Life:
        """The process, started and loaded anew where there is none."""
        life = self._life
        if life is not None and self._loaded and not life.ended:
            return life
        if self._closed:
            raise HostBusyError("the server stops", 1.0)
        if life is None or life.ended:
            life = self._life = started(self.distribution, self._limits.call_budget_s)
        self._generation += 1
        self._loaded = False
        self._interned.clear()
        self._given.clear()
        limits = self._limits
        points = [list(point) for point in self._entry_points]
        message = Encoder(_unsendable).message(Op.LOAD, life.paths, points, self.distribution, limits.memory_bytes)
        try:
            records, problems = self._exchanged(life, message, limits.load_budget_s, "loading")
        except (HostFaultError, ValueError):
            life.kill()
            raise
        if self._known is None:
            self._known = records, problems
        self._loaded = True
        _log.info("host_started", distribution=self.distribution, pid=life.pid, generation=self._generation)
        return life

    # --- calls

    def released(self, generation: int, number: int) -> None:
        """Nobody holds that object any more; told to the host with the next call."""
        self._released.append((generation, number))

    def asked(self, remote: Remote, name: str, arguments: tuple[Any, ...], *, reading: bool = False) -> Any:
        """What a method of an object answers, or the value of an attribute.

        Raises
        ------
        NodewiseError
            What the plugin refuses with.
        HostFaultError
            If it fails.
        HostBusyError
            If it could not be asked now.
        GoneError
            If the object is not there any more.
        """
        with self._taken():
            life = self._living()
            if remote.generation and remote.generation != self._generation:
                raise GoneError
            budget_s = self._budget_s(name, arguments)
            generation = self._generation
            before = next(self._numbers)
            op = Op.READ if reading else Op.CALL
            message = self._message(op, remote.target, name, arguments)
            try:
                answer = self._exchanged(life, message, budget_s, name)[0]
            finally:
                self._take_back(before)
            if name in ANSWERS_WITH_OBJECTS:
                return self._object(answer, generation)
            return answer

    def _take_back(self, before: int) -> None:
        """What a call was given ends with it, but for models: another model may be built on them."""
        for number in [number for number, (kind, _) in self._given.items() if number > before and kind != "model"]:
            del self._given[number]
        while len(self._given) > MOST_GIVEN:
            self._given.popitem(last=False)

    def _object(self, answer: Any, generation: int) -> Any:
        """A handle of what was answered and stays there."""
        try:
            number, kind, *names = answer
            if not names:
                return foreign(str(kind))
            return Remote(self, int(number), generation, frozenset(names) & (METHODS | ATTRIBUTES))
        except (TypeError, ValueError):
            raise HostFaultError("its host answered with what is no object") from None

    def _budget_s(self, name: str, arguments: tuple[Any, ...]) -> float:
        """Seconds that a call may take: as set, and of long work what it was told that it has."""
        limits = self._limits
        options = [each for each in arguments if isinstance(each, Options)]
        if name not in LONG and all(each.fidelity != Fidelity.SIMULATE for each in options):
            return limits.call_budget_s
        told_s = [left_s for each in arguments if (left_s := _left_s(each)) is not None]
        return max(limits.call_budget_s, min([limits.long_call_budget_s, *(each + GRACE_S for each in told_s)]))

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """The host for oneself."""
        turn = self._turn
        if not turn.acquire(blocking=False):
            wanted_s = time.monotonic() + self._limits.call_budget_s
            hasty = impatient.get()
            while not turn.acquire(timeout=WAIT_S):
                now_s = time.monotonic()
                if now_s > wanted_s or (hasty and now_s - self._since_s > STUCK_S):
                    raise HostBusyError("its host does something else", WAIT_S)
        if not self._depth:
            self._since_s = time.monotonic()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            turn.release()

    def _exchanged(self, life: Life, message: bytes, budget_s: float, name: str) -> list[Any]:
        """Send a call and do what it asks for until it is answered."""
        end_s = time.monotonic() + budget_s
        try:
            life.pipe.send(message)
            while True:
                if not life.wait(end_s):
                    raise self._overrun(life, budget_s)
                tree, arrays = life.pipe.receive()
                op, *rest = Decoder(tree, arrays, self._others).values()
                if op == Op.ASK:
                    asked_s = time.monotonic()
                    reply = self._given_answer(*rest)
                    if life.ended:
                        raise HostBusyError("its host was ended by another call", WAIT_S)
                    life.pipe.send(reply)
                    end_s += time.monotonic() - asked_s  # the plugin does not pay for what others take
                    continue
                return _outcome(op, rest)
        except TimeoutError:
            raise self._overrun(life, budget_s) from None
        except (LostError, OSError) as error:
            raise self._dead(life, name, error) from None
        except UndecodableError as error:
            life.kill()
            raise HostFaultError(f"its host sent {error}") from None

    def _overrun(self, life: Life, budget_s: float) -> HostFaultError:
        life.kill()
        _log.warning("host_killed", distribution=self.distribution, pid=life.pid, budget_s=budget_s)
        return HostFaultError(f"it exceeded its budget of {budget_s:.3g} s and was ended")

    def _dead(self, life: Life, name: str, error: Exception) -> HostFaultError:
        how = life.how_it_ended()
        _log.warning("host_died", distribution=self.distribution, pid=life.pid, method=name, how=how, error=str(error))
        return HostFaultError(f"its process {how}")

    # --- what is sent

    def _message(self, op: int, target: str | int, name: str, arguments: tuple[Any, ...]) -> bytes:
        given = GIVEN.get(name, {})
        encoder = Encoder(self._other)
        sent: list[Any] = ["l"]
        for place, argument in enumerate(arguments):
            kind = given.get(place)
            sent.append(self._gave(encoder, kind, argument) if kind else self._interning(encoder, argument))
        released = []
        while self._released:
            generation, number = self._released.popleft()
            if generation == self._generation:
                released.append(number)
        while len(self._interned) > MOST_INTERNED:
            released.append(self._interned.popitem(last=False)[1][1])
        return encoder.message(op, target, name, _Tree(sent), released)

    def _interning(self, encoder: Encoder, value: Any) -> Any:
        """A value; of the large ones only the number where it was sent before."""
        if not isinstance(value, _INTERNED):
            return encoder.one(value)
        known = self._interned.get(id(value))
        if known is not None:
            self._interned.move_to_end(id(value))
            return ["N", known[1]]
        number = -next(self._numbers)  # below 0: the host counts its objects above
        self._interned[id(value)] = value, number
        return ["n", number, encoder.one(value)]

    def _other(self, encoder: Encoder, value: Any) -> Any:
        """What is no plain value, in a message to the host."""
        if isinstance(value, _Tree):
            return value.entry
        if isinstance(value, Remote):
            if value.host is self and value.generation == self._generation:
                return ["r", value.target]
            return self._gave(encoder, "model", value)
        return _unsendable(encoder, value)

    def _gave(self, encoder: Encoder, kind: str, value: Any) -> Any:
        """Something that the host may ask while the call is on; a model, as long as the host is."""
        number = next(self._numbers)
        self._given[number] = kind, value
        more: list[Any] = []
        if kind == "context":
            more = [self._interning(encoder, value.prior), self._interning(encoder, value.catalogue), value.seed]
        elif kind == "run":
            left_s = value.remaining_s()
            more = [self._interning(encoder, value.catalogue), encoder.one(left_s) if left_s < float("inf") else None]
        elif kind == "corpus":
            self._given[number] = kind, tuple(value)
            more = [len(self._given[number][1])]
        elif kind == "model":
            names = value.names if isinstance(value, Remote) else (METHODS | ATTRIBUTES)
            more = [["l", *sorted(name for name in names if isinstance(value, Remote) or hasattr(value, name))]]
        return ["g", number, kind, *more]

    def _given_answer(self, number: Any, method: Any, arguments: Any) -> bytes:
        """What something that a call was given answers; only what it is given for can be asked of it."""
        try:
            kind, value = self._given[number]
            found = _asked(kind, value, method, arguments)
            if kind == "context" and method == "model" and not isinstance(found, Remote):
                return self._told(Op.RESULT, found, as_model=True)
            return self._told(Op.RESULT, found)
        except NodewiseError as error:
            return self._told(Op.RAISED, error)
        except Exception as error:  # noqa: BLE001  # whatever it is, the plugin is told that it has no answer
            _log.warning("given_failed", distribution=self.distribution, method=str(method)[:100], exc_info=error)
            return self._told(Op.RAISED, NodewiseError(Reason.ESTIMATOR_FAILED, "what was asked for failed"))

    def _told(self, op: int, value: Any, *, as_model: bool = False) -> bytes:
        encoder = Encoder(self._other)
        return encoder.message(op, _Tree(self._gave(encoder, "model", value)) if as_model else value)


class _Tree:
    """A part of a message that is written already."""

    __slots__ = ("entry",)

    def __init__(self, entry: Any) -> None:
        self.entry = entry


def _outcome(op: Any, rest: list[Any]) -> list[Any]:
    """What a reply says."""
    if op == Op.ANSWER and rest:
        return rest
    if op == Op.REFUSED and rest and isinstance(rest[0], NodewiseError):
        raise rest[0]
    if op == Op.FAILED and len(rest) == 2:
        raised, detail = rest
        raise HostFaultError("", str(raised), str(detail))
    if op == Op.GONE:
        raise GoneError
    raise UndecodableError("a reply that is none")


def _left_s(argument: Any) -> float | None:
    """What an argument says of the time that is left; None = nothing."""
    if isinstance(argument, Remote):
        return None
    budget = getattr(argument, "budget", argument)
    remaining_s = getattr(budget, "remaining_s", None)
    return None if remaining_s is None else float(remaining_s())


def _asked(kind: str, value: Any, method: str, arguments: list[Any]) -> Any:
    """Ask what a call was given."""
    if method not in GIVEN_METHODS[kind]:
        raise NodewiseError(Reason.NOT_IMPLEMENTED, f"a {kind} has no such method")
    if kind == "corpus":
        begin, end = arguments
        return tuple(value[int(begin) : int(end)])
    if method in ATTRIBUTES:
        return getattr(value, method)
    return getattr(value, method)(*arguments)


def _unsendable(_: Encoder, value: Any) -> Any:
    raise UndecodableError(f"a {type(value).__name__}, which cannot be sent to a host")
