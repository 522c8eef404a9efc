"""Names that recorders and frameworks give to what matters for the graph. Everything that rests on names is here."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "BACKWARD",
    "BLOCKING_COPY",
    "COMMUNICATION_RECORD",
    "DEVICE_SYNC",
    "EVENT_RECORD",
    "EVENT_SYNC",
    "GRADIENTS_READ_BACK",
    "LIBRARY_SPAN",
    "PAGEABLE_TO_HOST",
    "POLLING",
    "STREAM_SYNC",
    "STREAM_WAIT",
]

_PREFIX: Final = r"^(?:cuda|hip|cu)"

POLLING: Final = re.compile(_PREFIX + r"(?:Event|Stream)Query$")
"""Calls that look whether something is over and go on: noise of watchdogs."""
STREAM_WAIT: Final = re.compile(_PREFIX + r"StreamWaitEvent|^urEnqueueEventsWaitWithBarrier")
EVENT_RECORD: Final = re.compile(_PREFIX + r"EventRecord|^urEnqueueEventsWait$")
STREAM_SYNC: Final = re.compile(_PREFIX + r"StreamSynchronize")
EVENT_SYNC: Final = re.compile(_PREFIX + r"EventSynchronize")
DEVICE_SYNC: Final = re.compile(_PREFIX + r"(?:(?:Device|Ctx)Synchronize|Free(?:_v\d+)?)$|^urQueueFinish$")
"""Calls that return when all streams are idle; freeing memory of the device is one."""
BLOCKING_COPY: Final = re.compile(_PREFIX + r"(?:Memcpy(?!.*Async)|Memset(?!.*Async))")
PAGEABLE_TO_HOST: Final = re.compile(r"(?:DtoH|DeviceToHost).*Pageable", re.IGNORECASE)
"""Copies during which even an asynchronous call blocks."""
COMMUNICATION_RECORD: Final = re.compile(r"^record_param_comms$")
"""PyTorch's operator around everything that its process groups do."""
LIBRARY_SPAN: Final = re.compile(r"^(?:nccl|rccl|xccl|hccl|mccl|gloo|mpi|ucc):", re.IGNORECASE)
"""What the communication library itself does."""
BACKWARD: Final = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$")
"""Operators of PyTorch's autograd engine."""
GRADIENTS_READ_BACK: Final = re.compile(r"reducer::copy_bucket_to_grad$")
"""PyTorch DDP: a gradient of an exchanged bucket comes back; before it, DDP waits for the bucket."""
