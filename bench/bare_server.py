"""The baseline: grpc.aio and uvloop with the same messages and nothing of ours in between.

Predict parses the request, builds a reply of as many rows and columns from lists, and serialises it; so does
BatchPredict about architectures. Arguments: the reply of Predict in hexadecimal, and the file of that of BatchPredict.
"""

from __future__ import annotations

import asyncio
import sys
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


BATCH = pb.BatchPredictResponse.FromString(Path(sys.argv[2]).read_bytes() if len(sys.argv) > 2 else b"")
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


async def main() -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    handler = grpc.unary_unary_rpc_method_handler(
        predict, pb.PredictRequest.FromString, pb.PredictResponse.SerializeToString
    )
    batch = grpc.unary_unary_rpc_method_handler(
        batch_predict, pb.BatchPredictRequest.FromString, pb.BatchPredictResponse.SerializeToString
    )
    methods = {"Predict": handler, "BatchPredict": batch}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("nodewise.v1.PredictionService", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())
