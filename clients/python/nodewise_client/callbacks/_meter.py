"""Measures the steady rate of a training loop, and writes it beside the training."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable, MutableSequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from nodewise_client._delivery import LOG
from nodewise_client._job_place import computes_ahead, current_place, device_name, synchronise
from nodewise_client._requests import new_id
from nodewise_client._step_times import LEAST_STEPS
from nodewise_client._sync.client import Client
from nodewise_client.callbacks._measured_run import SETTINGS, SUFFIXES, Row, append_row, observation_of
from nodewise_client.callbacks._windows import Windows
from nodewise_values import AppendProfileRequest, ProfileContent

WARM_UP_STEPS: Final = 10
"""The first steps allocate, compile, choose kernels, and arrange the gradients' buckets anew."""
WINDOW_STEPS: Final = 10
LEAST_WINDOW_S: Final = 1.0
"""Shorter steps come in longer windows: a window may wait for the device at its end, which costs some 0.1 ms."""
MOST_WINDOW_STEPS: Final = 100_000
_NEVER: Final = 2
"""A border that a list of at most one entry does not reach."""


class StepMeter:
    """Measures steps per second, on one line of the loop.

        with StepMeter("team/job", file="runs.csv", batch_per_worker=32) as meter:
            for batch in loader:
                ...
                meter.step()

    All ranks may do so; rank 0 writes. The first steps are left out, and with `pause()` evaluations and checkpoints.
    The rate is the median of windows of at least ten steps and a second. A row is written, in a thread of its own, when
    the block or the process ends and every `every_minutes`. Nothing that goes wrong ends or delays the training: it
    becomes a warning in the log.

    Args:
        job: the job's name, in tables and as a profile.
        file: table (`.csv`) or JSON lines (`.jsonl`) that rows are appended to; None = no file.
        server: client or address of a server that gets each row as an observation; None = none.
        warm_up_steps: first steps that are left out.
        every_minutes: time between two rows; None = one row at the end.
        timeout_s: how long the end waits for a file or a server that does not answer.
        clock: monotonic clock, in seconds.
        settings: how the job runs, by columns of a measurements table: `batch_per_worker`, `accumulation`, `precision`,
            `sequence_length`, `tensor_parallel`, `nodes`, `workers`, `device` and others. Workers, nodes and device
            are found out where they are not stated.

    Raises
    ------
    ValueError
        Arguments that cannot work: no file and no server, a file of another kind, or a setting that there is not.
    """

    def __init__(
        self,
        job: str,
        *,
        file: Path | str | None = None,
        server: Client | str | None = None,
        warm_up_steps: int = WARM_UP_STEPS,
        every_minutes: float | None = 30.0,
        timeout_s: float = 10.0,
        clock: Callable[[], float] = time.perf_counter,
        **settings: Any,
    ) -> None:
        self._file: Final = None if file is None else Path(file)
        if self._file is None and server is None:
            raise ValueError("file and server are both None, so the measurement would be lost; give one of them")
        if self._file is not None and self._file.suffix not in SUFFIXES:
            raise ValueError(f"file must end in {' or '.join(SUFFIXES)}, found {self._file.name!r}")
        if unknown := settings.keys() - SETTINGS:
            raise ValueError(f"settings has no {', '.join(sorted(unknown))}; they are: {', '.join(sorted(SETTINGS))}")
        if warm_up_steps < 1:
            raise ValueError(f"warm_up_steps must be at least 1, found {warm_up_steps}")
        self._job: Final = job
        self._server: Final = server
        self._every_s: Final = None if every_minutes is None else 60.0 * every_minutes
        self._timeout_s: Final = timeout_s
        self._clock: Final = clock
        self._settings = {name: value for name, value in settings.items() if value is not None}
        self._windows = Windows()
        self._window_steps = WINDOW_STEPS
        # Ends of steps, behind the moment that the first of them began at.
        self._ends: MutableSequence[float] = []
        self._warm_up_steps: Final = warm_up_steps
        self._border = warm_up_steps
        self._is_counting = False
        self._row_at_s = self._clock()
        self._thread: threading.Thread | None = None
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def step(self) -> None:
        """End a training step: an optimizer's step, not a micro-batch that is accumulated."""
        ends = self._ends
        ends.append(self._clock())
        if len(ends) >= self._border:
            self._guard(self._end_window)

    def pause(self, *, late: bool = False) -> None:
        """Leave out what happens until the end of the next step, such as an evaluation or a checkpoint.

        Args:
            late: whether it has happened since the last step, so that the window that is open holds it.
        """
        if self._is_counting:
            self._guard(lambda: self._interrupt(late=late))

    def describe(self, **settings: Any) -> None:
        """State what was found out of the job; what the user stated holds."""
        self._settings = {name: value for name, value in settings.items() if value is not None} | self._settings

    def close(self) -> None:
        """Write what was measured, and wait for it at most `timeout_s`. Further steps begin with a warm-up again."""
        has_steps = bool(self._ends) and self._border != _NEVER
        self.pause()
        self._guard(lambda: self._write_last(has_steps=has_steps))
        self._leave_out(self._warm_up_steps)

    # --- windows ---------------------------------------------------------------------------------------------------

    def _end_window(self) -> None:
        if not self._is_counting:
            if current_place().rank:
                self._stop()
                return
        else:
            now = self._add_window()
            if self._every_s is not None and now - self._row_at_s >= self._every_s:
                self._write_row()
        synchronise()
        self._is_counting = True
        self._ends = [self._clock()]
        self._border = self._window_steps + 1

    def _add_window(self) -> float:
        synchronise()
        now = self._clock()
        seconds = now - self._ends[0]
        self._windows.add(seconds, self._ends)
        if seconds < LEAST_WINDOW_S:
            self._window_steps = min(2 * self._window_steps, MOST_WINDOW_STEPS)
        return now

    def _interrupt(self, *, late: bool) -> None:
        """Leave out the next step; the window that is open counts if it has enough steps and nothing else is in it."""
        if not late and len(self._ends) > (WINDOW_STEPS if self._windows.steps else LEAST_STEPS):
            self._add_window()
        self._leave_out(1)

    def _leave_out(self, steps: int) -> None:
        self._is_counting = False
        self._ends, self._border = [], steps

    def _stop(self) -> None:
        """Count no further: steps then cost their clock, and a list that does not grow."""
        self._is_counting = False
        self._ends, self._border = deque(maxlen=1), _NEVER

    # --- rows ------------------------------------------------------------------------------------------------------

    def _write_last(self, *, has_steps: bool) -> None:
        if self._windows.steps:
            self._write_row()
        elif has_steps and not self._thread:
            self._complain(f"no throughput is written, because fewer than {LEAST_STEPS} steps ran after the warm-up")
        if self._thread is not None:
            self._thread.join(self._timeout_s)
            if self._thread.is_alive():
                self._complain(f"the throughput is not written within {self._timeout_s:g} s")

    def _write_row(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return  # the windows stay for the next row
        row = self._row()
        self._windows, self._row_at_s = Windows(), self._clock()
        # A daemon: a file system that hangs must not keep the process; `close` waits for it, but not for ever.
        self._thread = threading.Thread(target=self._deliver, args=(row,), name="nodewise-meter", daemon=True)
        self._thread.start()

    def _row(self) -> Row:
        place = current_place()
        workers = self._settings.get("workers", place.world_size)
        nodes = self._settings.get("nodes", place.nodes)
        if nodes is None:
            raise ValueError("the number of machines is not known; state nodes")
        windows = self._windows
        return {
            "job": self._job,
            **self._settings,
            "device": self._settings.get("device") or device_name(),
            "nodes": nodes,
            "workers": workers,
            "steps_per_s": 1.0 / windows.step_seconds,
            "steps": windows.steps,
            # What a process sees of single steps is not what its device does.
            "step_cv": None if computes_ahead() else windows.variation,
            "measured_at": time.time(),
        }

    def _deliver(self, row: Row) -> None:
        for deliver in (self._append, self._send):
            try:
                deliver(row)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not worth a training run
                self._complain("the throughput is not written", error)

    def _append(self, row: Row) -> None:
        if self._file is not None:
            append_row(self._file, row)

    def _send(self, row: Row) -> None:
        if self._server is None:
            return
        request = AppendProfileRequest(
            profile_id=self._job, request_id=new_id(), content=ProfileContent(observations=observation_of(row))
        )
        # A connection as short as the sending: data loaders fork, and a process that talks is better not forked.
        client = Client(self._server) if isinstance(self._server, str) else self._server
        try:
            client.append_profile(request, timeout_s=self._timeout_s)
        finally:
            if client is not self._server:
                client.close()

    # --- what goes wrong -------------------------------------------------------------------------------------------

    def _guard(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not worth a training run
            self._complain("the throughput is not measured", error)
            self._stop()

    def _complain(self, what: str, error: Exception | None = None) -> None:
        LOG.warning("%s%s; training goes on", what, "" if error is None else f": {error}")
