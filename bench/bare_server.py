"""The baseline: grpc.aio and uvloop with the same messages and nothing of ours in between.

Predict parses the request, builds a reply of as many rows and columns from lists, and serialises it; so does
BatchPredict about architectures, and StreamPredict with the replies of Predict. Arguments: the reply of Predict in
hexadecimal, the file of that of BatchPredict ("" = none), and how many processes share the port (absent = one).
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from nodewise.runtime.event_loop import new_event_loop
from nodewise_protos.v1 import objective_pb2, prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

TEMPLATE = pb.PredictResponse.FromString(bytes.fromhex(sys.argv[1]))
ROWS = TEMPLATE.predictions
PLAIN = {
    field.name: list(value) if field.is_repeated else value
    for field, value in ROWS.ListFields()
    if field.message_type is None
}
NAMED = {
    name: [(column.name, list(column.values)) for column in getattr(ROWS, name)]
    for name in ("breakdown_seconds", "utilization")
}


def fresh() -> pb.PredictResponse:
    named: dict[str, Any] = {
        name: [prediction_pb2.NamedColumn(name=key, values=values) for key, values in columns]
        for name, columns in NAMED.items()
    }
    chosen = TEMPLATE.recommendation
    return pb.PredictResponse(
        predictions=prediction_pb2.Predictions(**PLAIN, **named),
        recommendation=objective_pb2.Recommendation(
            row=chosen.row,
            nodes=chosen.nodes,
            workers=chosen.workers,
            device_name=chosen.device_name,
            samples_per_second=chosen.samples_per_second,
            rule=chosen.rule,
            why=chosen.why,
            numbers=[objective_pb2.NamedNumber(name=one.name, value=one.value) for one in chosen.numbers],
        ),
        basis=TEMPLATE.basis,
    )


async def predict(request: pb.PredictRequest, context: Any) -> pb.PredictResponse:
    return fresh()


BATCH = pb.BatchPredictResponse.FromString(Path(sys.argv[2]).read_bytes() if sys.argv[2:3] > [""] else b"")
BATCH_PLAIN = {
    field.name: list(value) if field.is_repeated else value
    for field, value in BATCH.predictions.ListFields()
    if field.message_type is None
}
BATCH_ORDERS = [list(ranking.architecture_indexes) for ranking in BATCH.rankings]
BATCH_PARTS = [(column.name, list(column.values)) for column in BATCH.predictions.breakdown_seconds]


async def batch_predict(request: pb.BatchPredictRequest, context: Any) -> pb.BatchPredictResponse:
    parts = [prediction_pb2.NamedColumn(name=name, values=values) for name, values in BATCH_PARTS]
    return pb.BatchPredictResponse(
        predictions=prediction_pb2.Predictions(**BATCH_PLAIN, breakdown_seconds=parts),
        rankings=[pb.ArchitectureRanking(architecture_indexes=order) for order in BATCH_ORDERS],
    )


async def stream_predict(
    requests: AsyncIterator[pb.StreamPredictRequest], context: Any
) -> AsyncIterator[pb.StreamPredictResponse]:
    async for request in requests:
        yield pb.StreamPredictResponse(question_id=request.question_id, predict=fresh())


async def main(port: int, others: int, parent: tuple[int, int] | None, ready: tuple[int, int]) -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", int(others > 0 or parent is not None))])
    handler = grpc.unary_unary_rpc_method_handler(
        predict, pb.PredictRequest.FromString, pb.PredictResponse.SerializeToString
    )
    batch = grpc.unary_unary_rpc_method_handler(
        batch_predict, pb.BatchPredictRequest.FromString, pb.BatchPredictResponse.SerializeToString
    )
    stream = grpc.stream_stream_rpc_method_handler(
        stream_predict, pb.StreamPredictRequest.FromString, pb.StreamPredictResponse.SerializeToString
    )
    methods = {"Predict": handler, "BatchPredict": batch, "StreamPredict": stream}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("nodewise.v1.PredictionService", methods),))
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    if parent is not None:
        os.write(ready[1], b".")
        os.close(parent[1])
        await asyncio.to_thread(os.read, parent[0], 1)  # until the first process is no more
        return
    for _ in range(others):
        await asyncio.to_thread(os.read, ready[0], 1)
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


def run(processes: int) -> None:
    """Serve, where there are several from processes that share a port."""
    parent, ready, port = os.pipe(), os.pipe(), 0
    first = True
    if processes > 1:
        holding = socket.socket()
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holding.bind(("127.0.0.1", 0))
        port = holding.getsockname()[1]
        first = all(os.fork() for _ in range(processes - 1))
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main(port, processes - 1 if first else 0, None if first else parent, ready))


if __name__ == "__main__":
    run(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
