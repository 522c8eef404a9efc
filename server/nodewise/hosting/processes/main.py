"""The main program of a plugin host's process.

It imports the distribution's entry points in its main thread, and runs one call after another in threads of a pool:
a call within a call takes one more. Faults of this process stay in it: the worker that started
it watches its end, its time and its memory.
"""

from __future__ import annotations

import gc
import importlib.metadata
import io
import os
import resource
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from typing import Any, Final

import grpc

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.processes.connection import OPTIONS
from nodewise.hosting.processes.isolation import limit_processes, restrict_files
from nodewise.hosting.processes.members import ANSWERS_WITH_OBJECTS
from nodewise.hosting.processes.models import SHARE, Models
from nodewise.hosting.processes.proxies import GivenContext, GivenCorpus, GivenModel, GivenRun, GivenStream
from nodewise.hosting.processes.servicer import Estimators, abilities, write_answer
from nodewise.hosting.processes.statuses import read_error
from nodewise.hosting.processes.values import read_value, write_value
from nodewise.hosting.records import PluginProblem, records_of
from nodewise.plugin import ENTRY_POINT_GROUP
from nodewise.processes.child import limit_memory
from nodewise_protos.plugin.v1 import (
    estimator_service_pb2_grpc,
    plugin_service_pb2_grpc,
    value_pb2,
)
from nodewise_protos.plugin.v1 import plugin_service_pb2 as pb

THREADS: Final = 64


class Plugins(plugin_service_pb2_grpc.PluginServiceServicer):
    """The plugins of one distribution, and the objects that they returned.

    Parameters
    ----------
    ask : callable
        Calls an object of the worker.
    """

    def __init__(self, ask: Any, most_bytes: int) -> None:
        self._ask = ask
        self._roots: dict[str, Any] = {}
        self._models = Models()
        self._models.most_bytes = most_bytes
        self._by_name: dict[str, Any] = {}
        self._listing = pb.ListPluginsResponse()
        self.estimators = Estimators(self._by_name, self._models, context=self._given_context)

    def load(self, name: str, value: str, distribution: str) -> None:
        """Import the object that an entry point names."""
        point = importlib.metadata.EntryPoint(name, value, ENTRY_POINT_GROUP)
        for outcome in records_of(name, value, point.load, distribution, _tell):
            if isinstance(outcome, PluginProblem):
                texts = {each: text.encode(errors="replace").decode() for each, text in asdict(outcome).items()}
                del texts["distribution"]  # the worker knows it
                self._listing.problems.append(pb.PluginProblem(**texts))
                continue
            hook, record = outcome
            root = f"{hook.kind}/{record.name}"
            self._roots.setdefault(root, getattr(record, hook.attribute))
            if hook.kind == "estimator":
                self._by_name.setdefault(record.name, self._roots[root])
            plain = {each.name: getattr(record, each.name) for each in fields(record)}
            able = abilities(plain.pop(hook.attribute))
            self._listing.records.add(kind=hook.kind, fields=write_answer(plain), abilities=able)

    def ListPlugins(self, request: Any, context: grpc.ServicerContext) -> pb.ListPluginsResponse:  # noqa: N802, ARG002  # gRPC's
        """As the contract says."""
        return self._listing

    def Call(self, request: pb.CallRequest, context: grpc.ServicerContext) -> pb.CallResponse:  # noqa: N802  # gRPC's
        """As the contract says."""
        if request.WhichOneof("object") == "record":
            target = self._roots[request.record]
        else:
            target = self.estimators.use(request.kept, context)
        name = request.method

        def work() -> pb.CallResponse:
            arguments = [read_value(each, self._others) for each in request.arguments]
            answer = getattr(target, name) if request.reads_attribute else getattr(target, name)(*arguments)
            if name in ANSWERS_WITH_OBJECTS:
                return pb.CallResponse(kept=self.estimators.keep_answer(answer))
            return pb.CallResponse(answer=write_answer(answer, name))

        return self.estimators.answer(request.call, work, context)

    # --- what a call is given

    @property
    def _others(self) -> dict[str, Callable[[Any], Any]]:
        return {"given": self._read_given, "kept": self._models.built_on}

    def _given_context(self, number: int, *facts: Any) -> GivenContext:
        return GivenContext(self._asking(number), *facts)

    def _read_given(self, message: value_pb2.Given) -> Any:
        ask = self._asking(message.number)
        facts = [read_value(each, self._others) for each in message.facts]
        if message.kind == "stream":
            return io.BufferedReader(GivenStream(ask), 1 << 20)
        kind: Any = {"corpus": GivenCorpus, "run": GivenRun, "model": GivenModel}[message.kind]
        return kind(ask, *facts)

    def _asking(self, number: int) -> Callable[..., Any]:
        def ask(method: str, *arguments: Any) -> Any:
            call = self.estimators.calls[-1]
            if not call:
                raise RuntimeError("the call that this belongs to has ended")
            values = [write_value(each) for each in arguments]
            try:
                response = self._ask(pb.AskRequest(call=call, number=number, method=method, arguments=values))
            except grpc.RpcError as error:
                reply = read_error(error)
                raise (reply if isinstance(reply, NodewiseError) else RuntimeError("the connection ended")) from None
            return read_value(response.answer, self._others)

        return ask


def _tell(error: BaseException) -> None:
    """Write the exception of a plugin's import to the stream that the worker logs."""
    try:
        traceback.print_exception(error)
    except BaseException:  # noqa: BLE001  # an exception that cannot be written down
        sys.stderr.write(f"{type(error).__name__}\n")


def main(folder: str, ready: int, order: dict[str, Any]) -> None:
    """Load the plugins that ``host_process.start`` orders, serve them on a socket, and report that they are served."""
    sys.argv[1:] = []
    sys.path[:] = order["paths"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_processes()
    # Before there is a second thread: Landlock holds for the one that asks for it, and those that it starts.
    restrict_files([*order["paths"], sys.prefix, sys.base_prefix], [folder, *order["writable"]])
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR"), folder))
    limit_memory(order["memory_bytes"])
    channel = grpc.insecure_channel(f"unix:{folder}/context", OPTIONS)
    plugins = Plugins(plugin_service_pb2_grpc.ContextServiceStub(channel).Ask, order["memory_bytes"] // SHARE)
    for name, value in order["points"]:
        plugins.load(name, value, order["distribution"])
    gc.freeze()  # modules stay: no collection need look at them again
    server = grpc.server(ThreadPoolExecutor(THREADS), options=OPTIONS)
    plugin_service_pb2_grpc.add_PluginServiceServicer_to_server(plugins, server)
    estimator_service_pb2_grpc.add_EstimatorServiceServicer_to_server(plugins.estimators, server)
    server.add_insecure_port(f"unix:{folder}/host")
    server.start()
    os.write(ready, b"x")
    os.close(ready)
    server.wait_for_termination()
