"""Traces of calls, as a collector of OpenTelemetry receives them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from patience import PATIENCE_S
from serving import ServerProcess, Stubs, inline, one_worker_phases, workers

from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2

collector = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
collector_grpc = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc")

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
STATUS = "rpc.grpc.status_code"


@contextmanager
def collected() -> Iterator[tuple[str, list[Any]]]:
    """The address of a collector, and the spans that it receives."""
    spans: list[Any] = []

    class Collector(collector_grpc.TraceServiceServicer):  # type: ignore[misc,name-defined]  # an extra
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # gRPC's
            for resource in request.resource_spans:
                assert "nodewise" in {each.value.string_value for each in resource.resource.attributes}
                spans.extend(span for scope in resource.scope_spans for span in scope.spans)
            return collector.ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    collector_grpc.add_TraceServiceServicer_to_server(Collector(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}", spans
    server.stop(None)


def test_a_call_is_a_trace_with_its_plugins_and_the_store(tmp_path: Path) -> None:
    metadata = (("traceparent", f"00-{TRACE}-{CALLER}-01"),)
    with collected() as (address, spans):
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        store = f"sqlite:{tmp_path}/store.db"
        with ServerProcess("--store", store, environment=environment) as server, Stubs(server.target) as stubs:
            question = pb.PredictRequest(profile=inline(), configurations=workers(1, 2))
            stubs.prediction.Predict(question, timeout=PATIENCE_S, metadata=metadata)
            content = one_worker_phases()
            append = profile_service_pb2.AppendProfileRequest(profile_id="job", request_id="1", content=content)
            stubs.profile.AppendProfile(append, timeout=PATIENCE_S, metadata=metadata)
            with pytest.raises(grpc.RpcError):
                stubs.prediction.Predict(pb.PredictRequest(), timeout=PATIENCE_S, metadata=metadata)
        # A server that has stopped has sent all its spans.
        ours = [span for span in spans if span.trace_id.hex() == TRACE]
        by_id = {span.span_id: span for span in ours}
        calls = [span for span in ours if span.parent_span_id.hex() == CALLER]
        assert sorted(span.name.rpartition("/")[2] for span in calls) == ["AppendProfile", "Predict", "Predict"]
        assert {span.kind for span in calls} == {2}  # of a server
        codes = {each.value.int_value for span in calls for each in span.attributes if each.key == STATUS}
        assert codes == {grpc.StatusCode.OK.value[0], grpc.StatusCode.INVALID_ARGUMENT.value[0]}
        others = [span for span in ours if span not in calls]
        within = {(span.name, by_id[span.parent_span_id].name.rpartition("/")[2]) for span in others}
        assert within >= {("store.write", "AppendProfile"), ("plugin.assess", "Predict"), ("plugin.predict", "Predict")}


def test_without_an_endpoint_nothing_is_exported() -> None:
    with collected() as (_, spans):
        with ServerProcess("--store", "memory:") as server, Stubs(server.target) as stubs:
            stubs.prediction.Predict(pb.PredictRequest(profile=inline()), timeout=PATIENCE_S)
        assert not spans
