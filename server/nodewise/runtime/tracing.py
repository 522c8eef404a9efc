"""OpenTelemetry traces, by the extra ``opentelemetry`` and the environment variables of its specification."""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from typing import Any, Final

import structlog

from nodewise.ports.spans import set_tracer

__all__ = ["Tracing", "start_tracing"]

_log = structlog.get_logger(__name__)

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

Tracing = tuple[list[Any], Callable[[], None]]
"""Interceptors of the gRPC server, and a function that sends the last spans and stops tracing."""


def start_tracing() -> Tracing:
    """Export spans by OTLP over gRPC, where the environment names an endpoint; else no interceptors.

    Each gRPC call is a span, with the trace context of its caller; calls of plugins and writes to the store are spans
    within. Log lines within a span have its ``trace_id``.
    """
    is_off = (
        os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    if is_off or not any(os.environ.get(name) for name in ENDPOINTS):
        return [], lambda: None
    try:
        from opentelemetry import trace  # noqa: PLC0415  # an extra
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.instrumentation.grpc import aio_server_interceptor  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        _log.warning(
            "tracing_unavailable", reason="OTEL_EXPORTER_OTLP_ENDPOINT is set: install nodewise[opentelemetry]"
        )
        return [], lambda: None

    def add_trace_id(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        context = trace.get_current_span().get_span_context()
        return {**event, "trace_id": trace.format_trace_id(context.trace_id)} if context.is_valid else event

    name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "nodewise"}
    provider = TracerProvider(resource=Resource.create(name))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer(provider.get_tracer("nodewise"))
    structlog.configure(processors=[add_trace_id, *structlog.get_config()["processors"]])

    def stop() -> None:
        set_tracer(None)
        processors = structlog.get_config()["processors"]
        structlog.configure(processors=[each for each in processors if each is not add_trace_id])
        provider.shutdown()

    return [aio_server_interceptor(tracer_provider=provider)], stop
