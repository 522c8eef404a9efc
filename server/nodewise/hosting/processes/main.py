"""A plugin host, as its process runs it: ``python -m nodewise.hosting.processes.main FD PARENT``.

Imports the distribution's entry points and does one call after the other, in its main thread. What goes wrong in this
process stays in it: who started it watches its end, its time and its memory. It runs as the same user, so that it is a
bound against faults, and none against malice.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import io
import itertools
import os
import pickle
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.processes.codec import Encoder, Opaque, UndecodableError
from nodewise.hosting.processes.decoder import Decoder
from nodewise.hosting.processes.frames import LostError, Pipe
from nodewise.hosting.processes.given import GivenContext, GivenCorpus, GivenModel, GivenRun, GivenStream
from nodewise.hosting.processes.models import SHARE, Models
from nodewise.hosting.processes.plans import Plans
from nodewise.hosting.processes.words import ANSWERS_WITH_OBJECTS, ATTRIBUTES, METHODS, Op
from nodewise.hosting.records import records_of
from nodewise.plugin import ENTRY_POINT_GROUP, Prior

PR_SET_PDEATHSIG: Final = 1
MOST_TRACEBACK: Final = 4_000
"""Characters of a traceback that are sent for the log: its end."""
_SEQUENCES: Final = frozenset({"final", "exclusions", "memory_terms", "predict_shares", "read"})
"""What answers with any sequence."""


class _Unsendable:
    """In place of an answer that cannot be read or sent."""


class Hosted:
    """The plugins of one distribution and what they answered with."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._roots: dict[str, Any] = {}
        self._models = Models()
        self._numbers = itertools.count(1)
        self._interned: dict[int, Any] = {}
        self._plans = Plans()
        self._asking = threading.RLock()
        self._depth = 0
        self._exchange = 0
        self._others: dict[str, Callable[[Decoder, list[Any]], Any]] = {
            "p": lambda decoder, entry: pickle.loads(decoder.content(entry[1], entry[2])),  # noqa: S301  # our own
            "n": self._read_new,
            "N": lambda decoder, entry: self._interned[decoder.number(entry[1])],
            "r": lambda _, entry: self._models.built_on(entry[1]),
            "g": self._read_given,
        }

    def serve(self) -> None:
        """Do what comes, until nothing comes any more."""
        while True:
            self._handle(*self._received())

    def _received(self) -> tuple[int, list[Any]]:
        exchange, tree, arrays = self._pipe.receive()
        return exchange, Decoder(tree, arrays, self._others, self._plans).values()

    def _handle(self, exchange: int, message: list[Any]) -> None:
        op, *rest = message
        around, self._exchange = self._exchange, exchange
        self._depth += 1
        try:
            reply = self._load(*rest) if op == Op.LOAD else self._done(op, *rest)
        finally:
            self._depth -= 1
            self._exchange = around
        self._pipe.send(reply)

    def _done(
        self,
        op: int,
        target: str | int,
        name: str,
        arguments: list[Any],
        released: list[int],
        following: list[Any] | None = None,
    ) -> bytes:
        """Do a call, and the one that follows where the first is no refusal; the reply to both."""
        for number in released:
            self._models.drop(number)
            self._interned.pop(number, None)
        outcome = self._outcome(op, target, name, arguments)
        if following is not None and outcome[0] == Op.ANSWER:
            try:
                if outcome[1].refusal is None:
                    return self._message([*outcome, self._outcome(Op.CALL, *following)])
            except BaseException:  # noqa: BLE001  # what follows is asked again, alone
                return self._reply(outcome)
        return self._reply(outcome)

    def _outcome(self, op: int, target: str | int, name: str, arguments: list[Any]) -> list[Any]:
        """Do a call; its reply as values."""
        try:
            found = self._roots[target] if isinstance(target, str) else self._models.used(target)
        except KeyError:
            return [Op.GONE]
        try:
            answer = getattr(found, name) if op == Op.READ else getattr(found, name)(*arguments)
        except NodewiseError as error:
            return [Op.REFUSED, error]
        except BaseException as error:  # noqa: BLE001  # the process belongs to the plugin, its loop does not
            return _failed(error)
        try:
            return [Op.ANSWER, self._kept(answer) if name in ANSWERS_WITH_OBJECTS else _portable(answer, name)]
        except BaseException:  # noqa: BLE001  # an answer may do anything where it is touched
            return [Op.ANSWER, _Unsendable()]

    def _reply(self, outcome: list[Any]) -> bytes:
        """An outcome as a message; what cannot be sent is replaced."""
        try:
            return self._message(outcome)
        except BaseException:  # noqa: BLE001  # answers and errors of a class of their own may do anything
            refused = outcome[0] == Op.REFUSED
            return self._message(_failed(outcome[1]) if refused else [Op.ANSWER, _Unsendable()])

    def _message(self, values: list[Any]) -> bytes:
        return Encoder(_foreign).message(self._exchange, *values)

    def _kept(self, answer: Any) -> list[Any]:
        """An answer that stays here; marked for the worker."""
        number = next(self._numbers)
        self._models.keep(number, answer, (*self._roots.values(), *self._interned.values()))
        return [number, type(answer).__name__[:100], *_names(answer)]

    def _load(self, paths: list[str], entry_points: list[Any], distribution: str, memory_bytes: int) -> bytes:
        """Import everything; the listing."""
        sys.path[:] = paths
        _limit(memory_bytes)
        self._models.most_bytes = memory_bytes // SHARE
        records: list[Any] = []
        problems: list[Any] = []
        for name, value in entry_points:
            point = importlib.metadata.EntryPoint(name, value, ENTRY_POINT_GROUP)
            for hook, found, problem in records_of(name, value, point.load, distribution, _tell):
                if problem is not None:
                    problems.append([problem.name, problem.kind, problem.reason, problem.message])
                for record in found:
                    root = f"{hook.kind}/{record.name}"
                    self._roots.setdefault(root, getattr(record, hook.attribute))
                    plain = {each.name: getattr(record, each.name) for each in fields(record)}
                    answering = plain.pop(hook.attribute)
                    records.append([hook.kind, plain, list(_names(answering))])
        gc.freeze()  # modules stay: no collection need look at them again
        return self._message([Op.ANSWER, records, problems])

    # --- what a call is given

    def _read_new(self, decoder: Decoder, entry: list[Any]) -> Any:
        _, number, value = entry
        self._interned[decoder.number(number)] = found = decoder.one(value)
        return found

    def _read_given(self, decoder: Decoder, entry: list[Any]) -> Any:
        _, number, kind, *more = entry

        def ask(method: str, *arguments: Any) -> Any:
            return self._ask(number, method, arguments)

        values = [decoder.one(each) for each in more]
        if kind == "stream":
            return io.BufferedReader(GivenStream(ask), 1 << 20)
        made: Any = {"context": GivenContext, "corpus": GivenCorpus, "run": GivenRun, "model": GivenModel}[kind]
        return made(ask, *values)

    def _ask(self, number: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Ask the worker in the midst of a call; calls that it makes meanwhile are done first."""
        with self._asking:
            if not self._depth:
                raise RuntimeError("the call that this belongs to has ended")
            self._pipe.send(self._message([Op.ASK, number, method, list(arguments)]))
            while True:
                exchange, message = self._received()
                op, *rest = message
                if op == Op.RESULT:
                    return rest[0]
                if op == Op.RAISED:
                    raise rest[0]
                self._handle(exchange, message)


def _failed(error: BaseException) -> list[Any]:
    """That a plugin raised something, and its traceback for the log."""
    try:
        text = "".join(traceback.format_exception(error))[-MOST_TRACEBACK:].encode(errors="replace").decode()
    except BaseException:  # noqa: BLE001  # an exception that cannot be written down
        text = ""
    return [Op.FAILED, type(error).__name__[:100], text]


def _names(answer: Any) -> tuple[str, ...]:
    """What of the protocols an object has."""
    found = []
    for name in (*METHODS, *ATTRIBUTES):
        try:
            has = hasattr(type(answer), name) or hasattr(answer, name)
        except BaseException:  # noqa: BLE001  # it has it; who uses it learns what it raises
            has = True
        if has:
            found.append(name)
    return tuple(found)


def _portable(answer: Any, name: str) -> Any:
    """An answer as values: sequences as such, and of a prior a content that outlives this process."""
    if isinstance(answer, Prior):
        content = Opaque(pickle.dumps(answer.content))
        return Prior(prior_id=answer.prior_id, estimator=answer.estimator, sources=answer.sources, content=content)
    if name in _SEQUENCES and not isinstance(answer, str | frozenset | Mapping):
        return tuple(answer)
    return answer


def _foreign(_: Encoder, value: Any) -> Any:
    """What cannot cross, by the name of its type."""
    return ["x", type(value).__name__[:100]]


def _tell(error: BaseException) -> None:
    """Write what a plugin raised at its import where the worker's log gets it."""
    try:
        traceback.print_exception(error)
    except BaseException:  # noqa: BLE001  # an exception that cannot be written down
        sys.stderr.write(f"{type(error).__name__}\n")


def _limit(memory_bytes: int) -> None:
    """Let the process take so much memory more than it has: what it allocates, not what it maps of libraries."""
    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
    most = now + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def settle(parent: int) -> None:
    """End with the process that started this one, and leave nothing behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # What a plugin forks ends with this process, as this process ends with the worker.
    os.register_at_fork(after_in_child=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def serve(fd: int, parent: int) -> None:
    """Serve the socket until it ends, which ends the process.

    Parameters
    ----------
    parent : int
        The process that started this one.
    """
    settle(parent)
    np.random.seed()  # noqa: NPY002  # of plugins that use it; else all that are forked would draw the same
    pipe = Pipe(socket.socket(fileno=fd))
    pipe.socket.settimeout(None)
    try:
        Hosted(pipe).serve()
    except (LostError, OSError, UndecodableError):
        os._exit(0)  # threads that a plugin left would keep the process


def main() -> None:
    """Serve as the command line says."""
    fd, parent = int(sys.argv[1]), int(sys.argv[2])
    sys.argv[1:] = []
    serve(fd, parent)


if __name__ == "__main__":
    main()
