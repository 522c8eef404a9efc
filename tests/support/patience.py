"""How long tests wait for what must come: for an event, with a limit that no busy machine reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import grpc

from nodewise_client import DeadlineExceededError

Answer = TypeVar("Answer")

PATIENCE_S: Final = 300.0
"""Shorter than pytest's own time-out, so that a failure says what did not come."""


def wait_until(came: Callable[[], object]) -> None:
    """Wait until something holds; it is looked at often."""
    late_s = time.monotonic() + PATIENCE_S
    while not came():
        assert time.monotonic() < late_s, "what was waited for did not come"
        time.sleep(0.005)


def before_its_deadline(call: Callable[[float], Answer], shortest_s: float) -> Answer:
    """What a call answers that uses up its deadline: one that leaves a busy machine the time to send the answer."""
    deadline_s = shortest_s
    while True:
        try:
            return call(deadline_s)
        except (grpc.RpcError, DeadlineExceededError) as error:
            passed = not isinstance(error, grpc.Call) or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if not passed or deadline_s > PATIENCE_S:
                raise
        deadline_s *= 2.0
