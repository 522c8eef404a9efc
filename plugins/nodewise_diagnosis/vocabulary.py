"""Names by which a diagnosis tells kinds of work apart. Everything that rests on names is here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALLOCATION",
    "COPY_CALL",
    "COUNTER",
    "ELEMENTWISE",
    "FULL_PRECISION",
    "GARBAGE",
    "HALF_PRECISION",
    "LAUNCH",
    "LOADING",
    "MATRIX",
    "OPTIMIZER",
    "SYNCHRONISATION",
    "families",
    "family",
]

LOADING: Final = re.compile(
    r"DataLoader.*(?:__next__|next)|wait_for_batch|(?:load|next|get|fetch|read)_?(?:next_?)?(?:mini_?)?batch|"
    r"data_?load(?:er|ing)|batch_?load(?:er|ing)?|IteratorGetNext|Iterator::.*GetNext|input_?pipeline",
    re.IGNORECASE,
)
"""Spans in which a training loop gets its next batch: of PyTorch, TorchRec, TensorFlow, and as people name them."""

OPTIMIZER: Final = re.compile(r"^Optimizer\.(?:step|zero_grad)|^## ?optimizer|ApplyGradient", re.IGNORECASE)
"""Spans that run once a step, whatever the number of micro-batches."""

MATRIX: Final = re.compile(
    r"gemm|conv|cutlass|wgrad|dgrad|fprop|winograd|implicit_|matmul|attention|fmha|xmma|cudnn(?!.*(?:bn_|pool))",
    re.IGNORECASE,
)
"""Kernels bound by arithmetic: matrix products, convolutions, attention."""

ELEMENTWISE: Final = re.compile(
    r"elementwise|vectorized|reduce_kernel|_foreach|multi_tensor|CatArray|dropout", re.IGNORECASE
)
"""Kernels bound by memory that a compiler fuses with their neighbours."""

FULL_PRECISION: Final = re.compile(r"sgemm|scudnn|_fp32|f32f32|<float|float>|, float|s161616|_s884(?!.*h)|float")
"""Kernels that work on 32-bit numbers."""

HALF_PRECISION: Final = re.compile(r"fp16|bf16|bfloat16|half|hgemm|_h884|h1688|h16816|bf16f32|s16816", re.IGNORECASE)
"""Kernels that work on 16-bit numbers."""

SYNCHRONISATION: Final = re.compile(r"synchronize|urQueueFinish|urEventWait", re.IGNORECASE)
"""Calls in which a host waits for its device."""

ALLOCATION: Final = re.compile(
    r"Malloc|Free(?!ze)|HostAlloc|HostRegister|HostUnregister|Mem(?:Create|Release|Map|Unmap|AddressReserve|Pool)"
)
"""Calls that get or give back memory of a device, or memory that it reaches."""

COPY_CALL: Final = re.compile("memcpy", re.IGNORECASE)
"""Calls that copy, also such as return at once where they can."""

LAUNCH: Final = re.compile(r"Launch|EnqueueKernel|runFunction")
"""Calls that start kernels or graphs of them."""

GARBAGE: Final = re.compile(r"\bgc\b|garbage|<built-in function collect>", re.IGNORECASE)
"""Python's collector of garbage."""

COUNTER: Final = re.compile(r"\d+")


def family(name: str) -> str:
    """A name without the numbers that count: ``bucket3`` and ``bucket12`` are of one family."""
    return COUNTER.sub("#", name)


def families(names: Sequence[str]) -> NDArray[np.int64]:
    """A number for each name: the same one for names of one family."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(family(name), len(numbers)) for name in names], dtype=np.int64)
