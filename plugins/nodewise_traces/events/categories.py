"""What recorders call the kinds of events, now and in older releases."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind
from nodewise_traces.events.names import Names

__all__ = ["DROPPED", "FRAME", "SYNC", "Categories"]

DROPPED: Final = -1
"""Code of a category that is left out: see ``_DROPPED``."""
SYNC: Final = -2
"""Code of records of synchronisations: no work of their own."""
FRAME: Final = -3
"""Code of Python functions, of which long and outermost short calls are kept."""

_KINDS: Final = {
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
    "cuda_sync": SYNC,
    "python_function": FRAME,
}
"""Codes by category in lower case; what is not listed is OTHER."""

_DROPPED: Final = frozenset(
    {
        "gpu_user_annotation",
        "overhead",
        "trace",
        "ac2g",
        "async_cpu_to_gpu",
        "async",
        "async_gpu",
        "fwdbwd",
        "cpu_instant_event",
        "cuda_event",
        "cuda_profiler_range",
    }
)
"""Projections of annotations on streams, the profiler's own work and spans, and flows, which repeat
correlations and sequence numbers less reliably."""


class Categories(Names):
    """Dictionary of raw categories."""

    @property
    def codes(self) -> NDArray[np.int8]:
        """Codes by number: an EventKind, DROPPED, SYNC or FRAME."""
        return np.array([_code(label.lower()) for label in self.texts()], dtype=np.int8)


def _code(label: str) -> int:
    return DROPPED if label in _DROPPED else int(_KINDS.get(label, EventKind.OTHER))
