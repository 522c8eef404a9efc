"""Servers of Nodewise that fail: absent, silent, of another protocol, with wrong answers, or refusing every call."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import grpc
from fake_nodewise import status_of
from google.protobuf.message import DecodeError
from grpc_status import rpc_status

from nodewise_protos.v1 import prediction_pb2, prediction_service_pb2
from nodewise_protos.v1beta1 import completion_service_pb2

__all__ = ["FAILURES", "failing_targets", "wrong_offer_server"]


@contextmanager
def _absent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"127.0.0.1:{listener.getsockname()[1]}"
    yield target


@contextmanager
def _says(line: bytes) -> Iterator[str]:
    """Every connection gets a line of another protocol; empty = it waits for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                while True:
                    connection, _ = listener.accept()
                    connection.sendall(line)
                    connection.close()
            except OSError:
                return

        if line:
            threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


Answer = Callable[[bytes, Any], bytes]
"""Of the request's bytes and the call's context."""


@contextmanager
def _answers(answer: Answer, **of_methods: Answer) -> Iterator[str]:
    """Every call of every method is answered by one function, except for methods that have their own."""

    class EveryMethod(grpc.GenericRpcHandler):
        def service(self, details: Any) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(of_methods.get(details.method.rpartition("/")[2], answer))

    server = grpc.server(ThreadPoolExecutor(8), handlers=(EveryMethod(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)


@contextmanager
def _hanging() -> Iterator[str]:
    over = threading.Event()

    def wait(_request: bytes, _context: Any) -> bytes:
        over.wait()
        return b""

    with _answers(wait) as target:
        try:
            yield target
        finally:
            over.set()


def _refusal(code: grpc.StatusCode, reason: str, **details: Any) -> Answer:
    def refuse(_request: bytes, context: Any) -> bytes:
        context.abort_with_status(rpc_status.to_status(status_of(code, "refused", reason=reason, **details)))
        return b""

    return refuse


def _rows(changes: Mapping[str, Any]) -> Answer:
    """Rows as requested, of which the first is recommended, with some columns changed."""

    def answer(request: bytes, _context: Any) -> bytes:
        asked = prediction_service_pb2.PredictRequest()
        try:
            asked.ParseFromString(request)
        except DecodeError:  # of another method
            return b""
        nodes, workers = asked.configurations.nodes, asked.configurations.workers
        count = max(len(nodes), len(workers), 1)
        usual = {"steps_per_second": 2.0, "lower_steps_per_second": 1.0, "upper_steps_per_second": 4.0}
        columns = {name: [value] * count for name, value in (usual | changes).items()}
        for name, stated in (("nodes", nodes), ("workers", workers)):
            columns.setdefault(name, list(stated) if len(stated) == count else [*stated, 1][:1] * count)
        statuses = [prediction_pb2.ROW_STATUS_ANSWERED] * count
        rows = prediction_pb2.Predictions(rows_count=count, statuses=statuses)
        for name, column in columns.items():
            getattr(rows, name).extend(column)
        return prediction_service_pb2.PredictResponse(
            predictions=rows, recommendation={"row": 0, "nodes": columns["nodes"][0], "why": "because"}
        ).SerializeToString()

    return answer


def _recommends(row: int) -> Answer:
    reply = prediction_service_pb2.PredictResponse(recommendation={"row": row, "nodes": 1 << 30})
    return lambda _request, _context: reply.SerializeToString()


def _always(reply: bytes) -> Answer:
    return lambda _request, _context: reply


_CODES: Final = grpc.StatusCode
FAILURES: Final[Mapping[str, Callable[[], AbstractContextManager[str]]]] = {
    "absent": _absent,
    "silent": partial(_says, b""),
    "hanging": _hanging,
    "another protocol": partial(_says, b"220 mail is served here\r\n"),
    "undecodable answers": partial(_answers, _always(b"\xff\xff")),
    "empty answers": partial(_answers, _always(b"")),
    "a row that was not requested": partial(_answers, _recommends(1 << 30)),
    "counts that were not requested": partial(_answers, _rows({"nodes": 1 << 20, "workers": 1 << 20})),
    "no numbers": partial(_answers, _rows({"steps_per_second": float("nan"), "lower_steps_per_second": -1.0})),
    "no progress": partial(_answers, _rows({"steps_per_second": 1e-300, "lower_steps_per_second": 1e-300})),
    "unauthenticated": partial(_answers, _refusal(_CODES.UNAUTHENTICATED, "UNAUTHENTICATED")),
    "exhausted": partial(_answers, _refusal(_CODES.RESOURCE_EXHAUSTED, "OVERLOADED", retry_delay_s=1.0)),
    "invalid": partial(_answers, _refusal(_CODES.INVALID_ARGUMENT, "INVALID_FIELD", violations={"nodes": "wrong"})),
}
"""How a server fails, by name; each gives the address of a server that fails so, as long as the block lasts."""


@contextmanager
def failing_targets(*names: str) -> Iterator[list[str]]:
    """The addresses of servers that fail in each of these ways."""
    with ExitStack() as stack:
        yield [stack.enter_context(FAILURES[name]()) for name in names]


_OTHER_OFFER: Final = completion_service_pb2.EstimateCompletionResponse(choice={"row": 7}).SerializeToString()
wrong_offer_server: Final = partial(_answers, _rows({}), EstimateCompletion=_always(_OTHER_OFFER))
"""Right predictions, and an offer that was not requested."""
