"""A plugin host, as the worker has it: a process that is started, asked, watched, ended and replaced."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.processes.codec import Opaque, UndecodableError
from nodewise.hosting.processes.decoder import Decoder
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.frames import LostError
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.lives import Life, started
from nodewise.hosting.processes.plans import Plans
from nodewise.hosting.processes.remote import Following, GoneError, Remote, foreign
from nodewise.hosting.processes.sending import Sending
from nodewise.hosting.processes.words import ANSWERS_WITH_OBJECTS, ATTRIBUTES, LONG, METHODS, Op

__all__ = ["Host", "Listing", "impatient"]

_log = structlog.get_logger(__name__)

WAIT_S: Final = 0.1
"""Seconds between looks at who holds the host."""
MOST_EARLY: Final = 8
"""Answers that wait for their questions, which come next if they come at all: one for each thread that asks at once."""
Listing = tuple[list[Any], list[Any]]
"""Records and problems of a host's plugins, as plain values."""

impatient: ContextVar[bool] = ContextVar("impatient", default=False)
"""Whether who asks can do without this plugin, and rather does than wait for one that is stuck."""


class _StaleError(Exception):
    """The host has answered the call before once more."""


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
    folder : str
        Where its modules lie, if not among those of this process: two versions live side by side in two folders.
    """

    def __init__(
        self,
        distribution: str,
        entry_points: tuple[tuple[str, str], ...],
        limits: HostLimits,
        known: Listing | None = None,
        folder: str = "",
    ) -> None:
        self._folder = folder
        self.distribution = distribution
        self._entry_points = entry_points
        self._limits = limits
        self._turn = threading.RLock()
        self._since_s = 0.0
        self._life: Life | None = None
        self._generation = 0
        self._known = known
        self._loading: Future[Listing] | None = None
        self._loaded = False
        self._released: deque[tuple[int, int]] = deque()
        self._sending = Sending(self)
        self._early: OrderedDict[tuple[Any, ...], tuple[Following, list[Any]]] = OrderedDict()
        self._plans = Plans()
        self._depth = 0
        self._closed = threading.Event()
        self._others: Mapping[str, Callable[[Decoder, list[Any]], Any]] = {
            "x": lambda _, entry: foreign(str(entry[1])),
            "p": lambda decoder, entry: Opaque(decoder.content(entry[1], entry[2])),
        }

    # --- life

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Of its entry points."""
        return tuple(name for name, _ in self._entry_points)

    @property
    def patience_s(self) -> float:
        """How long those wait who can do without."""
        return self._limits.auto_patience_s

    def begin(self) -> None:
        """Start the process, and load it, without waiting for either, so that several do so at the same time."""
        if self._loading is None and self._known is None and not self._closed.is_set():
            self._loading = Future()
            threading.Thread(
                target=self._load, args=(self._loading,), name="nodewise-host-loading", daemon=True
            ).start()

    def _load(self, loading: Future[Listing]) -> None:
        try:
            with self._taken():
                self._living()
            assert self._known is not None
            loading.set_result(self._known)
        except BaseException as error:  # noqa: BLE001  # it is told to whoever wants the listing
            loading.set_exception(error)

    def settled(self, wait_s: float) -> bool:
        """Whether it is known within so many seconds what it brings, or that it cannot be loaded."""
        return self._loading is None or not wait([self._loading], wait_s if wait_s < math.inf else None).not_done

    def listing(self) -> Listing:
        """Records and problems, as plain values; starts the host unless it runs, and waits for it.

        Raises
        ------
        HostFaultError, HostBusyError
            If it cannot be loaded; if it was closed meanwhile.
        """
        self.begin()
        if self._known is None and self._loading is not None:
            return self._loading.result()
        if self._known is None:
            raise HostBusyError("the server stops", 1.0)
        return self._known

    def close(self) -> None:
        """End the process; none is started any more."""
        self._closed.set()
        life = self._life
        if life is not None:
            life.kill()

    @property
    def generation(self) -> int:
        """Number of its process."""
        return self._generation

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
        if life is not None and self._loaded:
            # Within a call of the same host it may speak; between calls it has nothing to say.
            if life.at_rest or (self._depth > 1 and not life.ended):
                return life
            if not life.ended:
                _log.warning("host_spoke_unasked", distribution=self.distribution, pid=life.pid)
                life.kill()  # what it said would be taken for the answer to this call
        if self._closed.is_set():
            raise HostBusyError("the server stops", 1.0)
        if life is None or life.ended:
            if life is not None:
                life.kill()  # what it forked may live
            life = self._life = started(self.distribution, self._limits.call_budget_s, self._folder)
            if self._closed.is_set():  # meanwhile
                life.kill()
                raise HostBusyError("the server stops", 1.0)
        self._generation += 1
        self._loaded = False
        self._sending.begin()
        limits = self._limits
        points = [list(point) for point in self._entry_points]
        exchange = _new_number()
        message = self._sending.told(exchange, Op.LOAD, life.paths, points, self.distribution, limits.memory_bytes)
        try:
            records, problems = self._exchanged(life, exchange, message, limits.load_budget_s, "loading")
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

    def asked(
        self,
        remote: Remote,
        name: str,
        arguments: tuple[Any, ...],
        *,
        reading: bool = False,
        following: Following | None = None,
    ) -> Any:
        """What a method of an object answers, or the value of an attribute.

        ``following`` is asked with it, in one exchange; its answer is kept until it is asked for.

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
        if self._early:
            early = self._early.pop(_identity(remote, name, arguments), None)
            if early is not None:
                op, *rest = early[1]
                return _outcome(op, rest)[0]
        op = Op.READ if reading else Op.CALL
        try:
            return self._asked(op, remote, name, arguments, following)
        except _StaleError:
            if name in LONG:  # what it was given to read may be read already
                raise HostBusyError("its host was ended for what another call had left", WAIT_S) from None
        # Another process knows nothing of what was left: who asks now does not pay for who asked before.
        return self._asked(op, remote, name, arguments, following)

    def _asked(
        self, op: int, remote: Remote, name: str, arguments: tuple[Any, ...], following: Following | None
    ) -> Any:
        """As :meth:`asked`, in an exchange."""
        with self._taken():
            life = self._living()
            if remote.generation and remote.generation != self._generation:
                raise GoneError
            budget_s = self._limits.budget_s(name, arguments)
            generation = self._generation
            with self._sending.call():
                if following is not None and following[0].generation != generation:
                    following = None
                exchange = _new_number()
                message = self._sending.asking(
                    exchange, op, remote.target, name, arguments, self._forgotten(), following
                )
                try:
                    answer, *more = self._exchanged(life, exchange, message, budget_s, name)
                except HostFaultError as fault:
                    if following is not None and fault.what:
                        fault.method = following[1]  # both were on: the one that does the work is told of
                    raise
                if following is not None and more:
                    self._answered_early(following, more[0])
            if name in ANSWERS_WITH_OBJECTS:
                return self._object(life, answer, generation)
            return answer

    def _answered_early(self, following: Following, outcome: Any) -> None:
        """Keep what was answered before it is asked for, and what makes its question the same one."""
        if not isinstance(outcome, list) or not outcome:
            raise HostFaultError("its host answered with what is no answer")
        self._early[_identity(*following)] = following, outcome
        while len(self._early) > MOST_EARLY:
            self._early.popitem(last=False)

    def _forgotten(self) -> list[int]:
        """Numbers of objects of this process that nobody holds any more."""
        found = []
        while self._released:
            generation, number = self._released.popleft()
            if generation == self._generation:
                found.append(number)
        return found

    def _object(self, life: Life, answer: Any, generation: int) -> Any:
        """A handle of what was answered and stays there."""
        known = METHODS | ATTRIBUTES
        # Of its kind and length before it is unrolled: an array of one number is as long as it says.
        if type(answer) is list and 2 <= len(answer) <= 2 + len(known):
            number, *names = answer
            if type(number) is int and all(type(name) is str for name in names):
                kind, *has = names
                return Remote(self, number, generation, known.intersection(has)) if has else foreign(kind)
        life.kill()
        raise HostFaultError("its host answered with what is no object")

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """The host for oneself."""
        turn = self._turn
        if not turn.acquire(blocking=False):
            wanted_s = time.monotonic() + self._limits.call_budget_s
            # Those who can do without it go on where another call has held it for long.
            held_s = self._limits.auto_patience_s if impatient.get() else float("inf")
            while not turn.acquire(timeout=min(WAIT_S, held_s)):
                now_s = time.monotonic()
                if now_s > wanted_s or now_s - self._since_s > held_s:
                    raise HostBusyError("its host does something else", WAIT_S)
        if not self._depth:
            self._since_s = time.monotonic()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            turn.release()

    def _exchanged(self, life: Life, exchange: int, message: bytes, budget_s: float, name: str) -> list[Any]:
        """Send a call and do what it asks for until it is answered."""
        try:
            op, *rest = self._answered(life, exchange, message, budget_s)
        except HostBusyError:
            raise
        except _StaleError:
            _log.warning("host_spoke_unasked", distribution=self.distribution, pid=life.pid)
            life.kill()
            raise
        except TimeoutError:
            raise self._overrun(life, budget_s) from None
        except (LostError, OSError) as error:
            raise self._dead(life, name, error) from None
        except UndecodableError as error:
            life.kill()
            raise HostFaultError(f"its host sent {error}") from None
        except BaseException:
            life.kill()  # what it answers to the call that is left would be taken for another's
            raise
        try:
            return _outcome(op, rest)
        except UndecodableError as error:
            life.kill()
            raise HostFaultError(f"its host sent {error}") from None

    def _answered(self, life: Life, exchange: int, message: bytes, budget_s: float) -> list[Any]:
        """The reply to a call."""
        end_s = time.monotonic() + budget_s
        others_s = 0.0
        life.pipe.send(message)
        while True:
            if not life.wait(end_s):
                raise TimeoutError
            of, tree, arrays = life.pipe.receive(end_s)
            if of != exchange:
                if of == life.last_exchange:
                    raise _StaleError
                raise UndecodableError("an answer to another call")
            found = self._read(tree, arrays)
            if found[0] != Op.ASK:
                life.last_exchange = exchange
                return found
            if len(found) != 4:
                raise UndecodableError("a question that is none")
            asked_s = time.monotonic()
            reply = self._sending.answer(exchange, *found[1:])
            if life.ended:
                raise HostBusyError("its host was ended by another call", WAIT_S)
            if others_s < budget_s:  # the plugin does not pay for what others take, unless it asks without an end
                taken_s = time.monotonic() - asked_s
                others_s += taken_s
                end_s += taken_s
            life.pipe.send(reply)

    def _read(self, tree: memoryview, arrays: memoryview) -> list[Any]:
        """The values of a message; whatever reading it raises is the host's fault."""
        try:
            found = Decoder(tree, arrays, self._others, self._plans).values()
        except (NodewiseError, MemoryError) as error:
            raise UndecodableError(f"values that cannot be ({type(error).__name__})") from None
        if not found or type(found[0]) is not int:
            raise UndecodableError("a message that says not what it is")
        return found

    def _overrun(self, life: Life, budget_s: float) -> HostFaultError:
        life.kill()
        _log.warning("host_killed", distribution=self.distribution, pid=life.pid, budget_s=budget_s)
        return HostFaultError(f"it exceeded its budget of {budget_s:.3g} s and was ended")

    def _dead(self, life: Life, name: str, error: Exception) -> HostFaultError:
        how = life.how_it_ended()
        _log.warning("host_died", distribution=self.distribution, pid=life.pid, method=name, how=how, error=str(error))
        return HostFaultError(f"its process {how}")


def _new_number() -> int:
    """Of an exchange: one that no plugin can know before, so that nothing is answered before it is asked."""
    return secrets.randbits(64)


def _identity(remote: Remote, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is the same for the same question only, as long as its arguments live."""
    return remote.generation, remote.target, name, *map(id, arguments)


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
