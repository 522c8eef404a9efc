"""Times of steps, sent while training runs: windows in a thread of their own, never more of them than a bound."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from nodewise_client._delivery import LOG, Place
from nodewise_client._errors import NodewiseError
from nodewise_client._requests import new_id
from nodewise_client._sync.client import Client
from nodewise_values import AppendProfileRequest, RecordingRequest, ReportStepsRequest, StepWindows

PARTS: Final = ("loading", "forward", "backward", "exchange", "update")
WINDOW_STEPS: Final = 10
# Shorter steps come in longer windows, so that what is stored of an hour is bounded.
LEAST_WINDOW_S: Final = 1.0
REPORT_EVERY_S: Final = 10.0
# What a server that is away for long misses: the oldest windows.
MOST_WINDOWS: Final = 1000
# A profile that was never heard of is made by its name and this label.
MARK: Final = {"nodewise.steps": "reported"}

Window: TypeAlias = tuple[int, int, float, float, tuple[float, ...] | None]
"""First step, steps, when it began, median step, medians of the parts; None = not known."""


class StepStream:
    """Gathers the steps of one rank into windows and reports them.

    A step costs the training thread a few numbers appended to a list. Windows begin at multiples of their length, so
    that all ranks have the same; the length doubles until a window lasts a second. A server that is away costs windows,
    the oldest first, and nothing else.

    Args:
        server: a client, or an address.
        profile: the profile that the job has.
        place: where the process stands.
        node: number of its machine; None = not known.
        on_request: called with requests to record, in the sending thread.
        every_s: time between two reports.
    """

    def __init__(
        self,
        server: Client | str,
        profile: str,
        place: Place,
        node: int | None,
        on_request: Callable[[RecordingRequest], None],
        every_s: float = REPORT_EVERY_S,
    ) -> None:
        self._server: Final = server
        self._profile: Final = profile
        self._place: Final = place
        self._node: Final = node
        self._on_request: Final = on_request
        self._every_s: Final = every_s
        self._length = WINDOW_STEPS
        self._first = -1
        self._begin_s = 0.0
        self._steps: list[float] = []
        self._parts: list[tuple[float, ...]] = []
        self._windows: Final[deque[Window]] = deque(maxlen=MOST_WINDOWS)
        self._ending: Final = threading.Event()
        self._has_warned = False
        self._thread: Final = threading.Thread(target=self._report_all, name="nodewise-steps", daemon=True)

    def start(self) -> None:
        """Begin to report."""
        self._thread.start()

    def add(self, step: int, seconds: float, parts: tuple[float, ...] | None) -> None:
        """A step that has ended; a step that is left out, as one under the profiler is, ends the window."""
        if step != self._first + len(self._steps):
            self._steps, self._parts, self._first = [], [], -1
            if step % self._length:
                return
            self._first, self._begin_s = step, time.time() - seconds
        self._steps.append(seconds)
        if parts is not None:
            self._parts.append(parts)
        if len(self._steps) == self._length:
            self._end_window()

    def _end_window(self) -> None:
        count, whole = self._length, statistics.median(self._steps)
        has_parts = len(self._parts) == count
        parts = tuple(map(statistics.median, zip(*self._parts, strict=True))) if has_parts else None
        self._windows.append((self._first, count, self._begin_s, whole, parts))
        if count * whole < LEAST_WINDOW_S:
            self._length *= 2
        self._steps, self._parts, self._first = [], [], -1
        following = self._windows[-1][0] + count
        if following % self._length == 0:
            self._first, self._begin_s = following, time.time()

    def close(self, timeout_s: float) -> None:
        """Report what is left, for so long at most."""
        self._ending.set()
        self._thread.join(timeout_s)

    # --- the thread ------------------------------------------------------------------------------------------------

    def _report_all(self) -> None:
        while True:
            ending = self._ending.wait(self._every_s)
            try:
                self._report()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not worth a training run
                if not self._has_warned:
                    LOG.warning("step times are not sent: %s; training goes on", error)
                self._has_warned = True
            if ending:
                return

    def _report(self) -> None:
        windows = [self._windows.popleft() for _ in range(len(self._windows))]
        if not windows:
            return
        # A connection as short as the sending: data loaders fork, and a process that talks is better not forked.
        client = Client(self._server) if isinstance(self._server, str) else self._server
        request = report_request(self._profile, self._place, self._node, windows)
        try:
            try:
                reply = client.report_steps(request, timeout_s=self._every_s)
            except NodewiseError as error:
                if error.reason != "PROFILE_NOT_FOUND":
                    raise
                client.append_profile(
                    AppendProfileRequest(profile_id=self._profile, request_id=new_id(), labels=dict(MARK))
                )
                reply = client.report_steps(request, timeout_s=self._every_s)
        except BaseException:
            free_windows = MOST_WINDOWS - len(self._windows)
            self._windows.extendleft(reversed(windows[-free_windows:] if free_windows else []))
            raise
        finally:
            if client is not self._server:
                client.close()
        if reply.recording is not None:
            self._on_request(reply.recording)


def report_request(profile: str, place: Place, node: int | None, windows: list[Window]) -> ReportStepsRequest:
    """Windows as a request. Parts that one of them does not know are left out."""
    columns: dict[str, tuple[float, ...]] = {}
    if all(parts is not None for *_, parts in windows):
        rows = zip(*(parts for *_, parts in windows if parts is not None), strict=True)
        columns = {f"{name}_seconds": row for name, row in zip(PARTS, rows, strict=True) if min(row) >= 0.0}
    first, counts, begin_s, step_s, _ = zip(*windows, strict=True)
    return ReportStepsRequest(
        profile_id=profile,
        rank=place.rank,
        world_size=place.world_size,
        node=node,
        windows=StepWindows(
            first_steps=first, steps_counts=counts, begin_unix_seconds=begin_s, step_seconds=step_s, **columns
        ),
    )
