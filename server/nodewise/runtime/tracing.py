"""OpenTelemetry traces, by the extra ``opentelemetry`` and the environment variables of its specification."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import Any, Final

import grpc
import structlog

from nodewise.ports.spans import NO_SPAN, set_span_starter

__all__ = ["Tracing", "start_tracing"]

_log = structlog.get_logger(__name__)

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_ROOTS: Final = 256
"""Decisions that are made at a time, for calls whose callers state no trace context."""

Tracing = tuple[Callable[[grpc.GenericRpcHandler], grpc.GenericRpcHandler], Callable[[], None]]
"""A function that adds spans to the handlers of gRPC, and one that sends the last spans and stops tracing."""

OFF: Final[Tracing] = (lambda handlers: handlers, lambda: None)


class _TracedHandlers(grpc.GenericRpcHandler):
    """Handlers with a span for each call that is sampled. An interceptor of gRPC would cost every call."""

    def __init__(self, handlers: grpc.GenericRpcHandler, is_sampled: Callable[[Any], bool], interceptor: Any) -> None:
        self._handlers, self._is_sampled, self._interceptor = handlers, is_sampled, interceptor

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = self._handlers.service(handler_call_details)
        if handler is None or not self._is_sampled(handler_call_details):
            return handler

        async def usual(_: Any) -> Any:
            return handler

        try:
            self._interceptor.intercept_service(usual, handler_call_details).send(None)
        except StopIteration as ended:
            traced: grpc.RpcMethodHandler[Any, Any] = ended.value
            return traced
        raise AssertionError("the interceptor waits for nothing but the usual handler")


def _call_sampler(sampler: Any, draw: Callable[[], int]) -> Callable[[grpc.HandlerCallDetails], bool]:
    """A function that decides for a call by its caller's trace context, else by a drawn trace id."""
    from opentelemetry import propagate, trace  # noqa: PLC0415  # an extra

    headers = {each.lower() for each in propagate.get_global_textmap().fields}

    def decide(context: Any, trace_id: int, name: str) -> bool:
        return bool(sampler.should_sample(context, trace_id, name).decision.is_sampled())

    def decide_roots() -> Iterator[bool]:
        # Many at a time: between two calls, the caches of the core fill with other code, and one costs four times this.
        while True:
            yield from [decide(None, draw(), "call") for _ in range(_ROOTS)]

    roots = decide_roots()

    def is_sampled(details: Any) -> bool:
        for header, _ in details.invocation_metadata:
            if header in headers:
                context = propagate.extract(dict(details.invocation_metadata))
                trace_id = trace.get_current_span(context).get_span_context().trace_id or draw()
                return decide(context, trace_id, details.method)
        return next(roots)

    return is_sampled


def start_tracing() -> Tracing:
    """Export spans by OTLP over gRPC, where the environment names an endpoint.

    Each gRPC call that the sampler of the environment takes is a span, with the trace context of its caller; its calls
    of plugins and writes to the store are spans within. Log lines within a span have its ``trace_id``.
    """
    is_off = (
        os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    if is_off or not any(os.environ.get(name) for name in ENDPOINTS):
        return OFF
    try:
        from opentelemetry import trace  # noqa: PLC0415  # an extra
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.instrumentation.grpc import aio_server_interceptor  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON  # noqa: PLC0415
    except ImportError:
        _log.warning(
            "tracing_unavailable", reason="OTEL_EXPORTER_OTLP_ENDPOINT is set: install nodewise[opentelemetry]"
        )
        return OFF

    def add_trace_id(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        context = trace.get_current_span().get_span_context()
        return {**event, "trace_id": trace.format_trace_id(context.trace_id)} if context.is_valid else event

    name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "nodewise"}
    provider = TracerProvider(resource=Resource.create(name))
    # Calls are sampled before anything is paid for a span, so the provider records all that it gets.
    sampler, provider.sampler = provider.sampler, ALWAYS_ON
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("nodewise")

    def start_span(name: str, attributes: Mapping[str, str | int]) -> AbstractContextManager[Any]:
        if not trace.get_current_span().is_recording():
            return NO_SPAN
        started: AbstractContextManager[Any] = tracer.start_as_current_span(name, attributes=attributes)
        return started

    set_span_starter(start_span)
    structlog.configure(processors=[add_trace_id, *structlog.get_config()["processors"]])

    def stop() -> None:
        set_span_starter(None)
        processors = structlog.get_config()["processors"]
        structlog.configure(processors=[each for each in processors if each is not add_trace_id])
        provider.shutdown()

    is_sampled = _call_sampler(sampler, provider.id_generator.generate_trace_id)
    interceptor = aio_server_interceptor(tracer_provider=provider)
    return lambda handlers: _TracedHandlers(handlers, is_sampled, interceptor), stop
