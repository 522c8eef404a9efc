"""Calls that are larger than their caps, and what to do instead."""

from __future__ import annotations

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Options
from nodewise.ports.limits import Limits

__all__ = ["too_large", "too_long", "too_many"]


def too_large(found_bytes: int, limit_bytes: int) -> NodewiseError:
    """A reply that no client with gRPC's default settings could receive."""
    return NodewiseError(
        Reason.LIMIT_EXCEEDED,
        f"the reply would have {found_bytes} bytes, a call takes reply_bytes = {limit_bytes}; ask for fewer rows or "
        "columns, or send the parts over StreamPredict",
        {
            "limit": "reply_bytes",
            "value": str(limit_bytes),
            "found": str(found_bytes),
            "alternative": "StreamPredict",
        },
    )


def too_long(rows: int, options: Options, limits: Limits) -> NodewiseError | None:
    """What stands against a simulation of more steps than a call takes; None = nothing."""
    found, most = rows * options.simulated_steps, limits.simulated_steps_per_call
    if found <= most:
        return None
    return NodewiseError(
        Reason.LIMIT_EXCEEDED,
        f"options.simulated_steps_count: {rows} rows of {options.simulated_steps} simulated steps are {found}, a call "
        f"takes simulated_steps_per_call = {most}; ask for fewer steps or rows, or send the parts over StreamPredict",
        {
            "limit": "simulated_steps_per_call",
            "value": str(most),
            "found": str(found),
            "alternative": "StreamPredict",
        },
    )


def too_many(what: str, limit: str, value: int, found: int) -> NodewiseError:
    """A call that holds more than its cap."""
    return NodewiseError(
        Reason.LIMIT_EXCEEDED,
        f"{found} {what}, a call takes {limit} = {value}; send the parts over StreamPredict",
        {"limit": limit, "value": str(value), "found": str(found), "alternative": "StreamPredict"},
    )
