"""The one guarded call into plugins: every request to a plugin goes through here, and so does every answer.

A caller states the plugin, an object of it (the record's own, or an earlier answer), the method, the arguments
and a check of the answer. It gets a valid answer, a refusal that is fit for callers, or a :class:`PluginError`:
never another exception of the plugin, and nothing of its text. Only objects, names of methods and values are
exchanged, so that the object may live in another process.
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
from nodewise.hosting.background import LateError
from nodewise.hosting.interrupts import is_interrupt
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.members import LONG
from nodewise.hosting.processes.remote import Following, GoneError, Remote, has_all
from nodewise.hosting.records import HOOKS
from nodewise.hosting.registry import LoadedPlugin
from nodewise.hosting.soundness import MOST_TEXT, as_text, is_sound_error
from nodewise.ports.spans import span

__all__ = [
    "ImpossibleAnswerError",
    "PluginError",
    "UnavailableError",
    "call",
    "has",
    "impossible",
    "make_renewable",
    "read",
    "soon",
    "unless_wrong",
]

_log = structlog.get_logger(__name__)

AnswerT = TypeVar("AnswerT")

_MISSING: Final = object()


class PluginError(NodewiseError):
    """A plugin failed, or returned an invalid answer. A plugin's refusal is a plain NodewiseError."""


class UnavailableError(PluginError):
    """A plugin was not called: its process is busy, is being replaced, or failed repeatedly."""


class ImpossibleAnswerError(Exception):
    """An answer is invalid: the text, for callers, says why. Checks raise it."""


def call(
    plugin: LoadedPlugin[Any],
    target: Any,
    method: str,
    *arguments: Any,
    check: Callable[[Any], AnswerT],
    about: str = "",
    quiet: bool = False,
    following: Following | None = None,
) -> AnswerT:
    """Call a method of a plugin's object.

    Parameters
    ----------
    plugin : LoadedPlugin
        The plugin that the object belongs to.
    target : object
        The record's object, or an object that it returned.
    check : callable
        Converts the answer to the result; raises ImpossibleAnswerError for an invalid one. Any other exception of it
        counts as an invalid answer too: attributes of a plugin's values may do anything.
    about : str
        Subject of the call, for the error; "" = the caller knows it.
    quiet : bool
        Whether a failure is not logged, because the caller will repeat the call, and log it then.
    following : tuple or None
        The next call to the same plugin, with the same arguments, which follows unless this answer is a refusal: a
        host answers both at once.

    Raises
    ------
    PluginError
        *_FAILED when the plugin raises an exception, *_INVALID_RESULT when its answer is invalid.
    NodewiseError
        The plugin's refusal, if it is fit for callers; or an error of a server's object that the plugin called.
    """
    this = _PluginCall(plugin, method, about, quiet)
    if following is not None and isinstance(target, Remote):
        return this.run(partial(target.call_with_next, method, arguments, following), check, following)
    return this.run(lambda: getattr(target, method)(*arguments), check)


def read(
    plugin: LoadedPlugin[Any], target: Any, name: str, *, check: Callable[[Any], AnswerT], method: str = ""
) -> AnswerT:
    """An attribute of a plugin's object, which may be computed; raises as :func:`call`, naming ``method`` or it."""

    def check_present(value: Any) -> AnswerT:
        if value is _MISSING:
            raise ImpossibleAnswerError(f"a {type(target).__name__} has no {name}")
        return check(value)

    return _PluginCall(plugin, method or name).run(lambda: getattr(target, name, _MISSING), check_present)


def has(plugin: LoadedPlugin[Any], target: Any, protocol: type, method: str) -> bool:
    """Whether a plugin's object has the methods of an optional protocol; raises as :func:`call`, naming ``method``."""
    if isinstance(target, Remote):
        return has_all(target, protocol)
    return _PluginCall(plugin, method).run(lambda: isinstance(target, protocol), bool)


def soon(plugin: LoadedPlugin[Any], methods: tuple[str, ...], key: Hashable, work: Callable[[], AnswerT]) -> AnswerT:
    """The result of work that calls these methods of a plugin, for a caller that can do without a late result.

    Raises
    ------
    UnavailableError
        If the result is late: the work goes on, and the next caller with the same key gets its result.
    """
    if plugin.background is None:
        return work()
    try:
        return plugin.background.soon(plugin.calls, methods, key, work)
    except LateError:
        raise _PluginCall(plugin, methods[0]).unavailable("has not answered within the time allowed", 1.0) from None


def make_renewable(make: Callable[[], AnswerT]) -> AnswerT:
    """The result of ``make``, which is called again if the result was in a process that was replaced.

    For results of arguments that do not change, such as a fitted model.
    """
    result = make()
    if isinstance(result, Remote):
        result.renew = make
    return result


def unless_wrong(wrong_with: Callable[[Any], str | None]) -> Callable[[Any], Any]:
    """A check from a function that says what is wrong with an answer (None = nothing)."""

    def check(answer: Any) -> Any:
        problem = wrong_with(answer)
        if problem is not None:
            raise ImpossibleAnswerError(problem)
        return answer

    return check


def _accept_any(answer: Any) -> Any:
    """The check of an answer that no caller waits for."""
    return answer


def impossible(plugin: LoadedPlugin[Any], method: str, problem: str) -> PluginError:
    """The error for an answer that is found invalid after the call; logged."""
    return _PluginCall(plugin, method).impossible(problem)


@dataclass(frozen=True, slots=True)
class _PluginCall:
    """One call, as errors and the log describe it."""

    plugin: LoadedPlugin[Any]
    method: str
    about: str = ""
    quiet: bool = False

    def run(
        self, work: Callable[[], Any], check: Callable[[Any], AnswerT], following: Following | None = None
    ) -> AnswerT:
        """The checked result of the work; the call is counted. ``following`` as in :func:`call`."""
        count = self.plugin.calls.add
        self._admit()
        count, breaker = self.plugin.calls.add, self.plugin.breaker
        if breaker is not None:
            self._admit()
        start_s = perf_counter()
        try:
            with span(f"plugin.{self.method}", plugin=self.plugin.record.name, distribution=self.plugin.distribution):
                answer = work()
        except BaseException as exception:  # noqa: BLE001  # a plugin's SystemExit must not end the server
            this, retry = self, partial(self.retry, work, check)
            if following is not None and isinstance(exception, HostFaultError) and exception.method:
                target, method, arguments = following
                this = replace(self, method=method)
                retry = partial(this.retry, lambda: getattr(target, method)(*arguments), _accept_any)
            error = this.error_of(exception)
            is_failure = isinstance(error, PluginError)
            count(this.method, perf_counter() - start_s, failed=is_failure)
            if not isinstance(error, UnavailableError):
                this.note(retry if is_failure else None)
            raise error from None
        seconds = perf_counter() - start_s
        try:
            result = check(answer)
        except BaseException as exception:  # noqa: BLE001  # attributes of a plugin's values may do anything
            count(self.method, seconds, failed=True)
            self.note(partial(self.retry, work, check))
            raise self._unsound(exception) from None
        count(self.method, seconds, failed=False)
        if breaker is not None:
            self.note(None)
        return result

    def retry(self, work: Callable[[], Any], check: Callable[[Any], Any]) -> None:
        """Repeat the call for the breaker, which records the outcome."""
        with suppress(NodewiseError):
            self.run(work, check)

    def _admit(self) -> None:
        """Refuse a call at once while the breaker is open."""
        breaker = self.plugin.breaker
        wait_s = 0.0 if breaker is None else breaker.wait_s()
        if wait_s > 0.0:
            raise self.unavailable("failed repeatedly, and the server pauses calls to it", wait_s)

    def note(self, retry: Callable[[], None] | None) -> None:
        """Record the outcome in the breaker, and log its changes; ``retry`` repeats a failed call, None = success."""
        breaker = self.plugin.breaker
        if breaker is None:
            return
        is_failure = retry is not None
        # Long work is not repeated: its duration is unknown, and its stream has been read.
        trial = None if self.method in LONG else retry
        if breaker.record_failure(self.method, trial) if is_failure else breaker.record_success(self.method):
            event = f"{self._kind}_{'left_alone' if is_failure else 'back'}"
            (_log.error if is_failure else _log.info)(event, **self._fields)

    def unavailable(self, problem: str, retry_after_s: float) -> UnavailableError:
        subject = self._describe("cannot run")
        fields = {**self._fields, "problem": problem}
        reason = Reason.ESTIMATOR_UNAVAILABLE if self._kind == "estimator" else Reason.COMPUTE_LOST
        return UnavailableError(reason, f"{subject}: it {problem}", fields, (), retry_after_s)

    def impossible(self, problem: str, fault: BaseException | None = None) -> PluginError:
        """The error for an invalid answer."""
        text = as_text(problem, MOST_TEXT)
        fields = {**self._fields, "problem": text}
        if not self.quiet:
            _log_failure(f"{self._kind}_answer_impossible", fields, fault)
        message = f"{self._describe('returned an invalid answer from')}: {text}"
        return PluginError(self._reason("INVALID_RESULT"), message, fields)

    def _unsound(self, exception: BaseException) -> BaseException:
        """The caller's error for an exception of a check."""
        if isinstance(exception, ImpossibleAnswerError):
            return self.impossible(str(exception))
        return exception if is_interrupt(exception) else self.impossible("it cannot be read", exception)

    def error_of(self, exception: BaseException) -> BaseException:
        """The caller's error for an exception of the plugin."""
        if is_interrupt(exception):
            return exception
        if isinstance(exception, UnavailableError):
            return exception
        if isinstance(exception, HostBusyError):
            return self.unavailable(f"was not reached: {exception.what}", exception.retry_after_s)
        if isinstance(exception, GoneError):
            return self.unavailable("has lost an object of an earlier answer: its process was replaced", 0.1)
        if isinstance(exception, HostFaultError):
            return self._fault(exception)
        refusal = _tellable(exception) if isinstance(exception, NodewiseError) else None
        if refusal is not None and (self._kind != "policy" or refusal.reason is Reason.DEADLINE_EXCEEDED):
            return refusal  # a policy must decide, and may refuse nothing else
        if not self.quiet:
            _log_failure(f"{self._kind}_failed", self._fields, exception)
        return PluginError(self._reason("FAILED"), self._describe("failed in"), self._fields)

    def _fault(self, fault: HostFaultError) -> PluginError:
        """The caller's error for a fault of a host; only the log gets a traceback."""
        fields = {**self._fields, "problem": fault.what} if fault.what else self._fields
        if not self.quiet:
            _log.error(f"{self._kind}_failed", **fields, raised=fault.exception_name, exception=fault.detail)
        message = self._describe("failed in") + (fault.what and f": {fault.what}")
        return PluginError(self._reason("FAILED"), message, fields)

    @property
    def _kind(self) -> str:
        """The plugin's kind, as in errors and the log."""
        kind = next(hook.kind for hook in HOOKS.values() if isinstance(self.plugin.record, hook.record))
        return kind.removeprefix("trace_")

    def _reason(self, of: str) -> Reason:
        return Reason[f"{self._kind.upper()}_{of}"]

    @property
    def _fields(self) -> dict[str, str]:
        """Fields that identify the call."""
        record = self.plugin.record
        identity = {self._kind: record.name, "version": record.version}
        return {**identity, "distribution": self.plugin.distribution, "method": self.method}

    def _describe(self, did: str) -> str:
        record = self.plugin.record
        text = f"{self._kind.replace('_', ' ')} {record.name!r} {record.version} of {self.plugin.distribution}"
        return f"{text} {did} {self.method}{self.about and f' on {self.about}'}"


def _log_failure(event: str, fields: Mapping[str, str], exception: BaseException | None) -> None:
    """Log a failure; a plugin's exception may raise another one when it is formatted."""
    try:
        _log.error(event, **fields, exc_info=exception)
    except BaseException as fault:
        if is_interrupt(fault):
            raise
        _log.error(event, **fields, raised=type(exception).__name__)


def _tellable(error: NodewiseError) -> NodewiseError | None:
    """An error that is fit for callers, as one of our classes; None = it is not fit."""
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
