"""What recorders call the kinds of events, now and in older releases."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import EventKind

__all__ = ["CATEGORY_KINDS", "CUDA_SYNC", "DEVICE_KINDS", "DROPPED_CATEGORIES", "HOST_KINDS"]

CATEGORY_KINDS: Final = {
    "cpu_op": EventKind.OPERATOR,
    "operator": EventKind.OPERATOR,
    "user_annotation": EventKind.ANNOTATION,
    "cuda_runtime": EventKind.CALL,
    "cuda_driver": EventKind.CALL,
    "runtime": EventKind.CALL,
    "hip_runtime": EventKind.CALL,
    "xpu_runtime": EventKind.CALL,
    "mtia_runtime": EventKind.CALL,
    "privateuse1_runtime": EventKind.CALL,
    "privateuse1_driver": EventKind.CALL,
    "kernel": EventKind.KERNEL,
    "gpu_memcpy": EventKind.COPY,
    "memcpy": EventKind.COPY,
    "gpu_memset": EventKind.FILL,
    "memset": EventKind.FILL,
}
"""Kinds by category in lower case. What is not listed is OTHER."""

HOST_KINDS: Final = frozenset({EventKind.OPERATOR, EventKind.ANNOTATION, EventKind.CALL})
DEVICE_KINDS: Final = frozenset({EventKind.KERNEL, EventKind.COPY, EventKind.FILL})

CUDA_SYNC: Final = "cuda_sync"
"""Records of synchronisations: not work of their own."""

DROPPED_CATEGORIES: Final = (
    "python_function",
    "gpu_user_annotation",
    "overhead",
    "Trace",
    "ac2g",
    "async_cpu_to_gpu",
    "async",
    "fwdbwd",
    "cpu_instant_event",
)
"""Left out unparsed: frames of Python, projections of annotations on streams, the profiler's own work and spans, and
flows, which repeat correlations and sequence numbers less reliably."""
