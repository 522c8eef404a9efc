"""The one door to plugins: whatever is asked of one goes through here, and so does whatever comes of it.

A caller says which plugin, which object of it (the record's own, or one that it answered with), which method, with
what, and what a true answer is. It gets that answer, a refusal in words that can be told, or a :class:`PluginError`:
never anything else that the plugin raises, and nothing of its text. Objects, names of methods and values are all that
crosses: whether the object lives in this process is not the caller's to know.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.impatience import LateError
from nodewise.hosting.interrupts import is_interrupt
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.remote import Following, GoneError, Remote, has_all
from nodewise.hosting.processes.words import LONG
from nodewise.hosting.records import HOOKS
from nodewise.hosting.registry import Loaded
from nodewise.hosting.soundness import MOST_TEXT, as_text, is_sound_error

__all__ = [
    "ImpossibleAnswerError",
    "PluginError",
    "UnavailableError",
    "call",
    "has",
    "impossible",
    "kept_alive",
    "read",
    "soon",
    "unless_wrong",
]

_log = structlog.get_logger(__name__)

AnswerT = TypeVar("AnswerT")

_MISSING: Final = object()


class PluginError(NodewiseError):
    """A plugin failed, or answered with something that cannot be true. What it refuses is a plain NodewiseError."""


class UnavailableError(PluginError):
    """A plugin was not asked: its process does something else, is replaced, or failed too often just now."""


class ImpossibleAnswerError(Exception):
    """What is wrong with an answer, in words for callers; checks raise it."""


def call(
    loaded: Loaded[Any],
    target: Any,
    method: str,
    *arguments: Any,
    check: Callable[[Any], AnswerT],
    about: str = "",
    quiet: bool = False,
    following: Following | None = None,
) -> AnswerT:
    """Ask a plugin.

    Parameters
    ----------
    loaded : Loaded
        Whose code this is.
    target : object
        The record's object, or one that it answered with.
    check : callable
        From an answer to what is made of it; raises ImpossibleAnswerError for one that cannot be true. What else it
        raises is the answer's fault too: attributes of a plugin's values may do anything.
    about : str
        What the plugin is asked about, for the error; "" = the caller knows.
    quiet : bool
        Leave a failure out of the log: the same will be asked again by someone who tells of it.
    following : tuple or None
        What will be asked of the same plugin next, with the same arguments, unless this answer holds a refusal: a
        process of its own answers both at once.

    Raises
    ------
    PluginError
        *_FAILED when the plugin raises, *_INVALID_RESULT when its answer cannot be true.
    NodewiseError
        What the plugin refuses with, if that can be told; what our own objects raised that it was given.
    """
    door = _Door(loaded, method, about, quiet)
    if following is not None and isinstance(target, Remote):
        return door.passed(partial(target.followed, method, arguments, following), check, following)
    return door.passed(lambda: getattr(target, method)(*arguments), check)


def read(loaded: Loaded[Any], target: Any, name: str, *, check: Callable[[Any], AnswerT], method: str = "") -> AnswerT:
    """An attribute of a plugin's object, which may be computed; raises as :func:`call`, naming ``method`` or it."""

    def found(value: Any) -> AnswerT:
        if value is _MISSING:
            raise ImpossibleAnswerError(f"a {type(target).__name__} has no {name}")
        return check(value)

    return _Door(loaded, method or name).passed(lambda: getattr(target, name, _MISSING), found)


def has(loaded: Loaded[Any], target: Any, protocol: type, method: str) -> bool:
    """Whether a plugin's object has the methods of an optional protocol; raises as :func:`call`, naming ``method``."""
    if isinstance(target, Remote):
        return has_all(target, protocol)
    return _Door(loaded, method).passed(lambda: isinstance(target, protocol), bool)


def soon(loaded: Loaded[Any], methods: tuple[str, ...], key: Hashable, work: Callable[[], AnswerT]) -> AnswerT:
    """What work comes to that calls these methods of a plugin; who can do without waits only so long.

    Raises
    ------
    UnavailableError
        If it is not done yet: it goes on, and the next who asks for the same has what comes of it.
    """
    if loaded.background is None:
        return work()
    try:
        return loaded.background.soon(loaded.calls, methods, key, work)
    except LateError:
        raise _Door(loaded, methods[0]).unavailable("has not answered yet, and others go on without it", 1.0) from None


def kept_alive(make: Callable[[], AnswerT]) -> AnswerT:
    """What is made; where it lives in a process that may be replaced, it is made again then, and stands for the same.

    For what follows from arguments that do not change, such as a fitted model.
    """
    made = make()
    if isinstance(made, Remote):
        made.renew = make
    return made


def unless_wrong(wrong_with: Callable[[Any], str | None]) -> Callable[[Any], Any]:
    """A check from a function that says what is wrong with an answer (None = nothing)."""

    def check(answer: Any) -> Any:
        problem = wrong_with(answer)
        if problem is not None:
            raise ImpossibleAnswerError(problem)
        return answer

    return check


def _anything(answer: Any) -> Any:
    """The check of an answer that nobody waits for."""
    return answer


def impossible(loaded: Loaded[Any], method: str, problem: str) -> PluginError:
    """That an answer cannot be true, found out after the call; logged."""
    return _Door(loaded, method).impossible(problem)


@dataclass(frozen=True, slots=True)
class _Door:
    """One call, as errors and the log name it."""

    loaded: Loaded[Any]
    method: str
    about: str = ""
    quiet: bool = False

    def passed(
        self, work: Callable[[], Any], check: Callable[[Any], AnswerT], following: Following | None = None
    ) -> AnswerT:
        """What the work comes to, checked and counted; ``following`` as of :func:`call`."""
        count = self.loaded.calls.add
        self._admit()
        started = perf_counter()
        try:
            answer = work()
        except BaseException as raised:  # noqa: BLE001  # a plugin's SystemExit must not end the server
            door, again = self, partial(self.tried, work, check)
            if following is not None and isinstance(raised, HostFaultError) and raised.method:
                target, method, arguments = following
                door = replace(self, method=method)
                again = partial(door.tried, lambda: getattr(target, method)(*arguments), _anything)
            error = door.told(raised)
            failed = isinstance(error, PluginError)
            count(door.method, perf_counter() - started, failed=failed)
            if not isinstance(error, UnavailableError):
                door.note(again if failed else None)
            raise error from None
        seconds = perf_counter() - started
        try:
            found = check(answer)
        except BaseException as raised:  # noqa: BLE001  # attributes of a plugin's values may do anything
            count(self.method, seconds, failed=True)
            self.note(partial(self.tried, work, check))
            raise self._unsound(raised) from None
        count(self.method, seconds, failed=False)
        self.note(None)
        return found

    def tried(self, work: Callable[[], Any], check: Callable[[Any], Any]) -> None:
        """Ask again, for the breaker, which learns what comes of it."""
        with suppress(NodewiseError):
            self.passed(work, check)

    def _admit(self) -> None:
        """Refuse at once what would only fail again."""
        breaker = self.loaded.breaker
        wait_s = 0.0 if breaker is None else breaker.wait_s()
        if wait_s > 0.0:
            raise self.unavailable("failed too often just now, and is left alone for a while", wait_s)

    def note(self, again: Callable[[], None] | None) -> None:
        """Let the breaker know, and the operator if it changes; ``again`` asks what failed, None = nothing did."""
        breaker = self.loaded.breaker
        if breaker is None:
            return
        failed = again is not None
        # Of long work nobody knows how long it takes, and what it was given to read is read.
        replay = None if self.method in LONG else again
        if breaker.failed(self.method, replay) if failed else breaker.succeeded(self.method):
            event = f"{self._kind}_{'left_alone' if failed else 'back'}"
            (_log.error if failed else _log.info)(event, **self._fields)

    def unavailable(self, problem: str, retry_after_s: float) -> UnavailableError:
        named = self._named("cannot be asked for")
        fields = {**self._fields, "problem": problem}
        reason = Reason.ESTIMATOR_UNAVAILABLE if self._kind == "estimator" else Reason.COMPUTE_LOST
        return UnavailableError(reason, f"{named}: it {problem}", fields, (), retry_after_s)

    def impossible(self, problem: str, fault: BaseException | None = None) -> PluginError:
        """That the answer cannot be true."""
        text = as_text(problem, MOST_TEXT)
        fields = {**self._fields, "problem": text}
        if not self.quiet:
            _logged(f"{self._kind}_answer_impossible", fields, fault)
        message = f"{self._named('answered')} with something that cannot be true: {text}"
        return PluginError(self._reason("INVALID_RESULT"), message, fields)

    def _unsound(self, raised: BaseException) -> BaseException:
        """What the caller gets for what a check raised."""
        if isinstance(raised, ImpossibleAnswerError):
            return self.impossible(str(raised))
        return raised if is_interrupt(raised) else self.impossible("it cannot be read", raised)

    def told(self, raised: BaseException) -> BaseException:
        """What the caller gets for what the plugin raised."""
        if is_interrupt(raised):
            return raised
        if isinstance(raised, UnavailableError):
            return raised
        if isinstance(raised, HostBusyError):
            return self.unavailable(f"was not reached, {raised.what}", raised.retry_after_s)
        if isinstance(raised, GoneError):
            return self.unavailable("has lost what it answered with: its process was replaced", 0.1)
        if isinstance(raised, HostFaultError):
            return self._fault(raised)
        refusal = _tellable(raised) if isinstance(raised, NodewiseError) else None
        if refusal is not None and (self._kind != "policy" or refusal.reason is Reason.DEADLINE_EXCEEDED):
            return refusal  # a policy decides about what it is given, and may refuse nothing
        if not self.quiet:
            _logged(f"{self._kind}_failed", self._fields, raised)
        return PluginError(self._reason("FAILED"), self._named("failed in"), self._fields)

    def _fault(self, fault: HostFaultError) -> PluginError:
        """What the caller gets for what happened in a host; a traceback is the log's alone."""
        fields = {**self._fields, "problem": fault.what} if fault.what else self._fields
        if not self.quiet:
            _log.error(f"{self._kind}_failed", **fields, raised=fault.raised, exception=fault.detail)
        message = self._named("failed in") + (fault.what and f": {fault.what}")
        return PluginError(self._reason("FAILED"), message, fields)

    @property
    def _kind(self) -> str:
        """Its kind, as errors and the log name it."""
        kind = next(hook.kind for hook in HOOKS.values() if isinstance(self.loaded.record, hook.record))
        return kind.removeprefix("trace_")

    def _reason(self, of: str) -> Reason:
        return Reason[f"{self._kind.upper()}_{of}"]

    @property
    def _fields(self) -> dict[str, str]:
        """What identifies the call."""
        record = self.loaded.record
        named = {self._kind: record.name, "version": record.version}
        return {**named, "distribution": self.loaded.distribution, "method": self.method}

    def _named(self, did: str) -> str:
        record = self.loaded.record
        plugin = f"{self._kind.replace('_', ' ')} {record.name!r} {record.version} of {self.loaded.distribution}"
        return f"{plugin} {did} {self.method}{self.about and f' on {self.about}'}"


def _logged(event: str, fields: Mapping[str, str], raised: BaseException | None) -> None:
    """Tell the operator; a plugin's exception may raise another one when it is written down."""
    try:
        _log.error(event, **fields, exc_info=raised)
    except BaseException as fault:
        if is_interrupt(fault):
            raise
        _log.error(event, **fields, raised=type(raised).__name__)


def _tellable(error: NodewiseError) -> NodewiseError | None:
    """An error that can be told to a caller; None = it cannot. One of a plugin's own class is told as one of ours."""
    try:
        if not is_sound_error(error):
            return None
        if type(error) in {NodewiseError, PluginError, UnavailableError}:
            return error
        return NodewiseError(error.reason, error.message, dict(error.metadata), error.violations)
    except BaseException as fault:
        if is_interrupt(fault):
            raise
        return None
