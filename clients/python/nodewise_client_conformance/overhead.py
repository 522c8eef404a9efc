"""The overhead of the client: repeats one action, while the benchmark measures the processor time.

``python -m nodewise_client_conformance.overhead KIND COUNT``. KIND: ``unary_stub`` and ``unary_client`` ask
``$NODEWISE_SERVER`` one Predict, by the generated stub alone and by the client, whose rows are read; ``rows_decode``
and ``rows_read`` decode the BatchPredict reply in the file ``$NODEWISE_REPLY``, and read its rows as well;
``columns_decode`` and ``columns_read`` do the same with columns instead of rows. ``unary_loop`` and ``rows_loop`` read
the same of the stub's message in the quickest loop that Python has: a row view cannot be below that. ``unary_thin`` is
a client written by hand for this one call, with nothing but a request, a deadline, errors of classes and row objects.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import grpc

from nodewise_client import Client, PredictRequest, ProfileSource, node_range
from nodewise_client._answers import batch_result
from nodewise_client._errors import from_call
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import prediction_service_pb2_grpc as stubs
from nodewise_values import BatchPredictResponse
from nodewise_values.wire import from_own_message, to_message

REQUEST: Final = PredictRequest(profile=ProfileSource(profile_id="a/b"), ranges=(node_range(1, 16),))
COLUMNS: Final = ("step_seconds", "samples_per_second", "memory_bytes", "nodes", "workers")
LOOPED: Final = (
    "step_seconds", "steps_per_second", "samples_per_second", "lower_steps_per_second", "upper_steps_per_second",
    "memory_bytes", "nodes", "workers", "bottleneck_indexes",
)  # fmt: skip


def total(rows: Iterable[Any]) -> float:
    """What a scheduler reads of rows, through the row view."""
    total_s = 0.0
    for row in rows:
        if row.answered:
            total_s += row.step_seconds + row.samples_per_second + row.lower_samples_per_second
            total_s += row.upper_samples_per_second + row.memory_bytes + row.nodes + row.workers + len(row.bottleneck)
    return total_s


def loop_rows(predictions: Any) -> float:
    """The same of a message whose rows are all answered, without a row view."""
    total_s, names = 0.0, predictions.bottleneck_names[:]
    for step, steps, samples, lower, upper, memory, nodes, workers, bottleneck in zip(
        *(getattr(predictions, name)[:] for name in LOOPED), strict=True
    ):
        total_s += step + samples + lower * (samples / steps)
        total_s += upper * (samples / steps) + memory + nodes + workers + len(names[bottleneck])
    return total_s


def by_stub(
    count: int, read: Callable[[Any], float] = lambda predictions: float(sum(predictions.step_seconds))
) -> float:
    """Call by the generated stub, and read its message: by default one column."""
    request = to_message(REQUEST)
    with grpc.insecure_channel(os.environ["NODEWISE_SERVER"]) as channel:
        predict = stubs.PredictionServiceStub(channel).Predict
        return sum(read(predict(request).predictions) for _ in range(count))


class ThinRow:
    """A row of a client that knows no other columns."""

    __slots__ = ("answered", "bottleneck", "lower_samples_per_second", "memory_bytes", "nodes", "samples_per_second",
                 "step_seconds", "upper_samples_per_second", "workers")  # fmt: skip

    def __init__(
        self,
        step: float,
        steps: float,
        samples: float,
        lower: float,
        upper: float,
        memory: float,
        nodes: int,
        workers: int,
        bottleneck: str,
    ) -> None:
        ratio = samples / steps
        self.answered = True
        self.step_seconds, self.samples_per_second, self.memory_bytes = step, samples, memory
        self.lower_samples_per_second, self.upper_samples_per_second = lower * ratio, upper * ratio
        self.nodes, self.workers, self.bottleneck = nodes, workers, bottleneck


def by_thin_client(count: int) -> float:
    """Ask by a client that is written for this one call."""
    with grpc.insecure_channel(os.environ["NODEWISE_SERVER"]) as channel:
        predict = stubs.PredictionServiceStub(channel).Predict
        return sum(total(thin_rows(predict)) for _ in range(count))


def thin_rows(predict: Any) -> list[ThinRow]:
    """What it does for a call."""
    request = pb.PredictRequest()
    request.profile.profile_id = "a/b"
    nodes = request.ranges.add().nodes
    nodes.first, nodes.last = 1, 16
    try:
        predictions = predict(request, timeout=10.0).predictions
    except grpc.RpcError as failure:
        raise from_call(failure, target="", method="Predict") from failure  # type: ignore[arg-type]  # it is a call
    columns = [getattr(predictions, name)[:] for name in LOOPED]
    columns[-1] = [predictions.bottleneck_names[index] for index in columns[-1]]
    return list(map(ThinRow, *columns))


def by_client(count: int) -> float:
    """Ask by the client, and read the rows."""
    with Client(os.environ["NODEWISE_SERVER"]) as client:
        return sum(total(client.predict(REQUEST)) for _ in range(count))


def decode_replies(count: int, read: Callable[[pb.BatchPredictResponse], float]) -> float:
    """Decode a reply, and read it."""
    data = Path(os.environ["NODEWISE_REPLY"]).read_bytes()
    return sum(read(pb.BatchPredictResponse.FromString(data)) for _ in range(count))


def rows_of(message: pb.BatchPredictResponse) -> float:
    """Read all rows of all jobs."""
    return sum(total(job.rows) for job in batch_result(from_own_message(message, BatchPredictResponse)))


def lists_of(message: pb.BatchPredictResponse) -> float:
    """Read columns of the message."""
    return float(sum(sum(list(getattr(message.predictions, name))) for name in COLUMNS))


def columns_of(message: pb.BatchPredictResponse) -> float:
    """Read the same columns of the value."""
    predictions = batch_result(from_own_message(message, BatchPredictResponse)).response.predictions
    return 0.0 if predictions is None else float(sum(sum(getattr(predictions, name)) for name in COLUMNS))


KINDS: Final[Mapping[str, Callable[[int], float]]] = MappingProxyType(
    {
        "unary_stub": by_stub,
        "unary_loop": lambda count: by_stub(count, loop_rows),
        "unary_thin": by_thin_client,
        "unary_client": by_client,
        "rows_decode": lambda count: decode_replies(count, lambda message: float(len(message.outcomes))),
        "rows_loop": lambda count: decode_replies(count, lambda message: loop_rows(message.predictions)),
        "rows_read": lambda count: decode_replies(count, rows_of),
        "columns_decode": lambda count: decode_replies(count, lists_of),
        "columns_read": lambda count: decode_replies(count, columns_of),
    }
)

if __name__ == "__main__":
    sys.stdout.write(f"{KINDS[sys.argv[1]](int(sys.argv[2]))}\n")
