"""Limits of requests, checked before decoding: bytes by method, entries by list, bytes of all calls together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.facts import NUMBER_COLUMNS
from nodewise.mapper.scan import Plan, plan_of, scan
from nodewise.ports.limits import Limits
from nodewise.rpc.caps import above_cap

__all__ = ["RECEIVED_BYTES", "InFlight", "Intake", "Large", "caps_of"]

RECEIVED_BYTES: Final = 16 * 1024 * 1024
"""Largest message taken from a client: ten thousand observations of every column, or four trace chunks."""
LARGE_BYTES: Final = 64 * 1024
"""Messages of this size or more count among the bytes in flight; the number of calls bounds smaller ones."""
ASIDE_BYTES: Final = 256 * 1024
"""Messages above this size are checked and decoded in a thread, since that would delay other calls."""


def caps_of(limits: Limits) -> Callable[[FieldDescriptor], tuple[str, int] | None]:
    """A function from a field to the limit of its list: its own, else that of any list of messages or names."""
    rows = max(limits.rows_per_call, limits.rows_per_batch, limits.backtest_rows)
    own = {
        "nodewise.v1.BatchPredictRequest.jobs": "jobs_per_call",
        "nodewise.v1.ScheduleRequest.jobs": "jobs_per_call",
        "nodewise.v1beta1.SimulateRequest.curves": "simulated_jobs_per_call",
        "nodewise.v1beta1.SimulationJobs.job_ids": "simulated_jobs_per_call",
        "nodewise.v1beta1.PredictSharingRequest.jobs": "sharing_jobs_per_call",
        "nodewise.v1beta1.PredictSharingRequest.runs": "sharing_runs_per_call",
        "nodewise.v1beta1.PredictSharingRequest.sets": "sharing_sets_per_call",
    }
    columns = {f"nodewise.v1.Configurations.{fact.field}" for fact in NUMBER_COLUMNS} | {
        "nodewise.v1.Configurations.nodes",
        "nodewise.v1.Configurations.workers",
    }
    counted_types = (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)

    def cap_of(field: FieldDescriptor) -> tuple[str, int] | None:
        name = own.get(field.full_name)
        if name is not None:
            return name, int(getattr(limits, name))
        if field.full_name in columns:
            return "rows_per_call", rows
        return ("entries_per_list", limits.entries_per_list) if field.type in counted_types else None

    return cap_of


class InFlight:
    """Counts the bytes of the large messages of all current calls.

    Parameters
    ----------
    most : int
        Most bytes of all messages together.
    limit, messages : str
        Name of the limit and of the messages, for errors.
    """

    def __init__(self, most: int, limit: str = "bytes_in_flight", messages: str = "requests") -> None:
        self._most, self._limit, self._messages = most, limit, messages
        self.total_bytes = 0

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Count a message while the context is open. Raises NodewiseError as :meth:`hold`."""
        self.hold(size)
        try:
            yield
        finally:
            self.release(size)

    def hold(self, size: int) -> None:
        """Count a message until :meth:`release`.

        Raises
        ------
        NodewiseError
            OVERLOADED.
        """
        total = self.total_bytes + size
        # A single message is always accepted, whatever the setting.
        if total > self._most and self.total_bytes:
            metadata = {"limit": self._limit, "value": str(self._most), "found": str(total)}
            text = (
                f"{size} bytes of this call and {self.total_bytes} bytes of other {self._messages} exceed "
                f"{self._limit} = {self._most}; retry"
            )
            raise NodewiseError(Reason.OVERLOADED, text, metadata)
        self.total_bytes = total

    def release(self, size: int) -> None:
        """Stop counting a message."""
        self.total_bytes -= size


class Large:
    """A message that is not decoded yet."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Intake:
    """Checks and decodes the requests of one method.

    Parameters
    ----------
    message : type
        Class of the request.
    most_bytes : int
        Largest request; an attribute too.
    in_flight : InFlight
        Of all methods together.
    """

    def __init__(self, message: type[Message], most_bytes: int, limits: Limits, in_flight: InFlight) -> None:
        self._decode = message.FromString
        self.most_bytes = most_bytes
        self._parts_cap = limits.parts_per_call
        self._in_flight = in_flight
        self._plan: Plan = plan_of(cast("Descriptor", message.DESCRIPTOR), caps_of(limits))
        self.small_bytes = min(LARGE_BYTES, most_bytes, self._plan.quiet_bytes, 2 * limits.parts_per_call)
        """A message of at most so many bytes cannot exceed a limit, and is decoded without a check."""

    @contextmanager
    def holding(self, large: Large) -> Iterator[None]:
        """Check the size of a message, and count it while the context is open.

        Raises
        ------
        NodewiseError
            LIMIT_EXCEEDED, OVERLOADED.
        """
        size = len(large.data)
        if size > self.most_bytes:
            raise above_cap("bytes of request", "request_bytes", self.most_bytes, size)
        with self._in_flight.holding(size):
            yield

    async def read(self, large: Large) -> Any:
        """The message; None = the bytes are not a valid message.

        Raises
        ------
        NodewiseError
            LIMIT_EXCEEDED.
        """
        if len(large.data) <= ASIDE_BYTES:
            return self._read(large.data)
        return await asyncio.to_thread(self._read, large.data)

    def _read(self, data: bytes) -> Any:
        excess = scan(data, self._plan, self._parts_cap)
        if excess is not None:
            what = f"entries of {excess.field}" if excess.field else "parts of the request together"
            error = above_cap(what, excess.limit, excess.value, excess.count)
            if excess.field:
                error.violations = (Violation(excess.field, f"must hold at most {excess.value} entries"),)
            raise error
        try:
            return self._decode(data)
        except (DecodeError, UnicodeDecodeError):
            return None
