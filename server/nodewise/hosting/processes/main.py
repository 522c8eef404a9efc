"""A plugin host, as its process runs it: ``python -m ...hosting.processes.main FOLDER READY PARENT READS WRITES``.

Imports the distribution's entry points and does one call after the other, in its main thread. What goes wrong in this
process stays in it: who started it watches its end, its time and its memory.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import io
import os
import queue
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NoReturn

import grpc

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.processes.connection import OPTIONS
from nodewise.hosting.processes.given import GivenContext, GivenCorpus, GivenModel, GivenRun, GivenStream
from nodewise.hosting.processes.isolation import limit_processes, restrict_files
from nodewise.hosting.processes.models import SHARE, Models
from nodewise.hosting.processes.servicer import Estimators, abilities, written
from nodewise.hosting.processes.statuses import read_error
from nodewise.hosting.processes.values import read_value, write_value
from nodewise.hosting.processes.words import ANSWERS_WITH_OBJECTS
from nodewise.hosting.records import records_of
from nodewise.plugin import ENTRY_POINT_GROUP
from nodewise_protos.plugin.v1 import (
    estimator_service_pb2_grpc,
    plugin_service_pb2_grpc,
    value_pb2,
)
from nodewise_protos.plugin.v1 import plugin_service_pb2 as pb

PR_SET_PDEATHSIG: Final = 1
LOOK_S: Final = 0.1
"""Seconds between looks at whether a question of ours is answered."""


class MainThread(ThreadPoolExecutor):
    """Has work done by the main thread, one piece after the other; within a piece it may do others while it waits."""

    def __init__(self) -> None:
        super().__init__(1)
        self._pieces: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As the base says."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001  # it is gRPC's to judge
                future.set_exception(error)

        self._pieces.put(work)
        return future

    def until(self, future: Any | None) -> None:
        """Do what comes until a call of ours has ended; None = for ever."""
        if future is not None:
            future.add_done_callback(lambda _: self._pieces.put(None))
        while future is None or not future.done():
            with suppress(queue.Empty):  # a plugin's thread may have taken what was to wake this one
                work = self._pieces.get(timeout=None if future is None else LOOK_S)
                if work is not None:
                    work()


class Plugins(plugin_service_pb2_grpc.PluginServiceServicer):
    """The plugins of one distribution, and what they answered with."""

    def __init__(self, thread: MainThread) -> None:
        self._thread = thread
        self._roots: dict[str, Any] = {}
        self._models = Models()
        self._by_name: dict[str, Any] = {}
        self._ask: Any = None
        self.estimators = Estimators(self._by_name, self._models, context=self._given_context)

    def Load(self, request: pb.LoadRequest, context: grpc.ServicerContext) -> pb.LoadResponse:  # noqa: N802, ARG002  # gRPC's
        """Import everything; the listing."""
        sys.path[:] = request.paths
        channel = grpc.insecure_channel(request.context_target, OPTIONS)
        self._ask = plugin_service_pb2_grpc.ContextServiceStub(channel).Ask
        _limit(request.memory_bytes)
        self._models.most_bytes = request.memory_bytes // SHARE
        response = pb.LoadResponse()
        for each in request.entry_points:
            point = importlib.metadata.EntryPoint(each.name, each.value, ENTRY_POINT_GROUP)
            for hook, found, problem in records_of(each.name, each.value, point.load, request.distribution, _tell):
                if problem is not None:
                    words = (problem.name, problem.kind, problem.reason, problem.message)
                    name, kind, reason, message = (word.encode(errors="replace").decode() for word in words)
                    response.problems.add(name=name, kind=kind, reason=reason, message=message)
                for record in found:
                    root = f"{hook.kind}/{record.name}"
                    self._roots.setdefault(root, getattr(record, hook.attribute))
                    if hook.kind == "estimator":
                        self._by_name.setdefault(record.name, self._roots[root])
                    plain = {each.name: getattr(record, each.name) for each in fields(record)}
                    able = abilities(plain.pop(hook.attribute))
                    response.records.add(kind=hook.kind, fields=written(plain), abilities=able)
        gc.freeze()  # modules stay: no collection need look at them again
        return response

    def Call(self, request: pb.CallRequest, context: grpc.ServicerContext) -> pb.CallResponse:  # noqa: N802  # gRPC's
        """As the contract says."""
        if request.WhichOneof("object") == "record":
            target = self._roots[request.record]
        else:
            target = self.estimators.used(request.kept, context)
        name = request.method

        def work() -> pb.CallResponse:
            arguments = [read_value(each, self._others) for each in request.arguments]
            answer = getattr(target, name) if request.reads_attribute else getattr(target, name)(*arguments)
            if name in ANSWERS_WITH_OBJECTS:
                return pb.CallResponse(kept=self.estimators.kept(answer))
            return pb.CallResponse(answer=written(answer, name))

        return self.estimators.answered(request.call, work, context)

    # --- what a call is given

    @property
    def _others(self) -> dict[str, Callable[[Any], Any]]:
        return {"given": self._read_given, "kept": self._models.built_on}

    def _given_context(self, number: int, *known: Any) -> GivenContext:
        return GivenContext(self._asking(number), *known)

    def _read_given(self, message: value_pb2.Given) -> Any:
        ask = self._asking(message.number)
        facts = [read_value(each, self._others) for each in message.facts]
        if message.kind == "stream":
            return io.BufferedReader(GivenStream(ask), 1 << 20)
        made: Any = {"corpus": GivenCorpus, "run": GivenRun, "model": GivenModel}[message.kind]
        return made(ask, *facts)

    def _asking(self, number: int) -> Callable[..., Any]:
        def ask(method: str, *arguments: Any) -> Any:
            call = self.estimators.calls[-1]
            if not call:
                raise RuntimeError("the call that this belongs to has ended")
            values = [write_value(each, _unsendable) for each in arguments]
            asked = self._ask.future(pb.AskRequest(call=call, number=number, method=method, arguments=values))
            self._thread.until(asked)
            try:
                return read_value(asked.result().answer, self._others)
            except grpc.RpcError as error:
                told = read_error(error)
                raise (told if isinstance(told, NodewiseError) else RuntimeError("nobody answers")) from None

        return ask


def _unsendable(value: Any) -> NoReturn:
    raise TypeError(f"a {type(value).__name__} cannot be sent")


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


def main() -> None:
    """Serve the socket in a folder until the process is killed, and say when it is served."""
    place, ready, parent, readable, writable = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:6]
    sys.argv[1:] = []
    settle(parent)
    limit_processes()
    # Before there is a second thread: Landlock holds for the one that asks for it, and those that it starts.
    restrict_files([*readable.split(os.pathsep), sys.prefix, sys.base_prefix], [place, *writable.split(os.pathsep)])
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR"), place))
    thread = MainThread()
    plugins = Plugins(thread)
    server = grpc.server(thread, options=OPTIONS)
    plugin_service_pb2_grpc.add_PluginServiceServicer_to_server(plugins, server)
    estimator_service_pb2_grpc.add_EstimatorServiceServicer_to_server(plugins.estimators, server)
    server.add_insecure_port(f"unix:{place}/host")
    server.start()
    os.write(ready, b"x")
    os.close(ready)
    thread.until(None)


if __name__ == "__main__":
    main()
