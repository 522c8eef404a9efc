"""Records training steps of PyTorch and sends them: `pip install nodewise-client[torch]`.

    with nodewise_client.torch.Recorder("127.0.0.1:50551", "team/job", steps=range(10, 16)) as recorder:
        for batch in loader:
            ...
            recorder.step()

With `live=True` the times of all steps are sent while training runs (docs/guides/running_jobs.md), and recorders follow
requests to record. Every rank records and sends for itself. Nothing that goes wrong on the way ends the training.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import torch

from nodewise_client._configurations import configurations
from nodewise_client._delivery import KEEP_BYTES, Delivery, Place
from nodewise_client._job_place import current_place, device_name, synchronise
from nodewise_client._step_parts import StepParts
from nodewise_client._step_stream import REPORT_EVERY_S, StepStream
from nodewise_client._step_times import UNTIMED_STEPS, Phase, StepTimes
from nodewise_client._sync.client import Client
from nodewise_values import Configurations, RecordingRequest

__all__ = ["Recorder", "trace_handler"]

# Steps before the recorded ones that run under the profiler and are thrown away: starting it costs time.
WARM_UP_STEPS: Final = 2


class Recorder:
    """Records the chosen steps of a training loop on every rank, and times others without the profiler.

    Use it in a `with` block on every rank, and call `step()` at the end of each training step. A trace is sent when the
    last of its steps has ended, in a thread. Rank 0 also sends the throughput of steps that ran without the profiler as
    an observation, once it has timed enough of them or when the block ends.

    Args:
        server: a client, an address, or None = only files (`keep`).
        profile: name of the profile that is added to.
        steps: training steps to record, counted from 0; None = no trace, times only.
        batch_per_worker: samples per worker and step, for samples per second.
        nodes: machines of the job; None = as the launcher says (torchrun, Slurm, Open MPI).
        device: accelerator; None = as PyTorch names it.
        configuration: what ran, in the place of what is found out.
        observe: whether this rank sends observation and phases; None = rank 0 does.
        timed_steps: steps without the profiler to take the mean of.
        redact: take paths, host and user names out of traces.
        keep: folder that gets a copy of each trace; None = none.
        profile_memory: record allocations as well.
        timeout_s: how long a server that is away is waited for.
        live: whether the times of all steps are reported while training runs; needs a server.
        model: the module that a step calls, so that the parts of a step can be measured (`live`).
        keep_bytes: most that copies of this rank in `keep` take; the oldest go first.
    """

    def __init__(
        self,
        server: Client | str | None,
        profile: str,
        *,
        steps: range | None = range(10, 16),
        batch_per_worker: int | None = None,
        nodes: int | None = None,
        device: str | None = None,
        configuration: Configurations | None = None,
        observe: bool | None = None,
        timed_steps: int = 50,
        redact: bool = True,
        keep: Path | str | None = None,
        profile_memory: bool = False,
        timeout_s: float = 30.0,
        live: bool = False,
        model: torch.nn.Module | None = None,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        if live and server is None:
            raise ValueError("live is True but server is None, so step times cannot be sent; give a server")
        if steps is not None and (not steps or steps.step != 1 or steps.start < 0):
            raise ValueError(
                f"steps must be a range of consecutive steps from 0 on, such as range(10, 16), found {steps}"
            )
        self._delivery: Final = Delivery(
            server, profile, redact=redact, keep=keep, timeout_s=timeout_s, keep_bytes=keep_bytes
        )
        self._server: Final = server if live else None
        self._profile: Final = profile
        self._timeout_s: Final = timeout_s
        self._model: Final = model
        self._steps = steps
        self._stream: StepStream | None = None
        self._parts: StepParts | None = None
        self._ended_at = 0.0
        self._request: RecordingRequest | None = None
        self._last_request_id = ""
        self._batch_per_worker: Final = batch_per_worker
        self._nodes: Final = nodes
        self._device: Final = device
        self._configuration: Final = configuration
        self._observe: Final = observe
        self._timed_steps: Final = timed_steps
        self._profile_memory: Final = profile_memory
        self._times: Final = StepTimes(timed_steps, synchronise)
        self._place = Place()
        self._profiler: Any = None
        self._step = 0
        self._counts = False
        self._counted_after = 0
        self._has_reported = False
        self._is_abandoned = False

    def __enter__(self) -> Self:
        self._place = current_place()
        if self._steps is not None:
            self._guard("the profiler does not start", self._start)
        self._counts = self._next_counts()
        self._times.end_step(next_counts=self._counts)
        if self._server is not None:
            self._guard("step times are not sent", self._start_stream)
        self._times.begin_step()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What a failing script leaves behind is no step that ran to its end.
        self._is_abandoned = kind is not None
        if self._parts is not None:
            self._parts.close()
        if self._stream is not None:
            self._stream.close(self._timeout_s)
        if self._profiler is not None:
            self._guard("the profiler does not stop", self._profiler.stop)
        if not self._is_abandoned:
            self._guard("measurements are not sent", self._tell)
            self._delivery.wait()

    def step(self) -> None:
        """End a training step."""
        if self._stream is not None:
            self._add_step(self._stream)
        if self._counts and self._step >= self._recorded_up_to:
            self._counted_after += 1
        self._step += 1
        if self._request is not None:
            self._guard("a request to record is ignored", self._follow)
        self._counts = self._next_counts()
        self._times.end_step(next_counts=self._counts)
        if self._profiler is not None:
            self._guard("a step is not recorded", self._go_on)
        if self._counted_after >= self._timed_steps:
            self._guard("measurements are not sent", self._tell)
        self._times.begin_step()

    def phase(self, name: Phase) -> AbstractContextManager[None]:
        """Time a part of the step: "download", "compute", "upload" or "update"; docs/reference/profiles.md has them."""
        return self._times.phase(name)

    # --- recording -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        assert self._steps is not None
        ahead = self._steps.start - self._step
        warm_up = min(WARM_UP_STEPS, ahead)
        profiler = torch.profiler.profile(
            activities=torch.profiler.supported_activities(),
            schedule=torch.profiler.schedule(wait=ahead - warm_up, warmup=warm_up, active=len(self._steps), repeat=1),
            on_trace_ready=self._ready,
            record_shapes=True,
            profile_memory=self._profile_memory,
            experimental_config=_experimental_config(),
        )
        profiler.start()
        self._profiler = profiler

    def _go_on(self) -> None:
        self._profiler.step()
        if self._step == self._recorded_up_to:
            profiler, self._profiler = self._profiler, None
            profiler.stop()

    def _ready(self, profiler: Any) -> None:
        if not self._is_abandoned:
            self._delivery.trace(lambda path: profiler.export_chrome_trace(str(path)), self._current_place())

    def _current_place(self) -> Place:
        # A script may leave its process group before it leaves the block.
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self._place = current_place()
        return self._place

    def _guard(self, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not worth a training run
            self._delivery.complain(what, error)
            profiler, self._profiler, self._is_abandoned = self._profiler, None, True
            if profiler is not None:
                with suppress(Exception):
                    profiler.stop()

    # --- times of all steps ---------------------------------------------------------------------------------------

    def _start_stream(self) -> None:
        assert self._server is not None
        stream = StepStream(self._server, self._profile, self._place, _node(), self._receive_request, REPORT_EVERY_S)
        if self._model is not None:
            self._parts = StepParts(self._model, exchanges=self._place.world_size > 1)
            self._parts.begin_step()
        self._ended_at = time.perf_counter()
        stream.start()
        self._stream = stream

    def _add_step(self, stream: StepStream) -> None:
        """Count the step that ends; a step under the profiler takes longer and does not count."""
        now = time.perf_counter()
        seconds, self._ended_at = now - self._ended_at, now
        parts = None if self._parts is None else self._parts.end_step()
        if not self._is_profiled(self._step) and self._step >= UNTIMED_STEPS:
            stream.add(self._step, seconds, parts)
        if self._parts is not None:
            self._parts.begin_step()

    def _receive_request(self, request: RecordingRequest) -> None:
        """Store a request, in the reporting thread; the next step acts on it."""
        if request.request_id != self._last_request_id and (not request.ranks or self._place.rank in request.ranks):
            self._request = request

    def _follow(self) -> None:
        """Record the next steps, once no others are being recorded or sent: one trace at a time is on the disk."""
        request = self._request
        if request is None or self._profiler is not None or self._delivery.busy or self._is_abandoned:
            return
        self._request, self._last_request_id = None, request.request_id
        first = self._step + WARM_UP_STEPS
        self._steps = range(first, first + max(1, request.steps_count))
        self._start()

    def _is_profiled(self, step: int) -> bool:
        return self._steps is not None and self._steps.start - WARM_UP_STEPS <= step < self._steps.stop

    # --- measuring -------------------------------------------------------------------------------------------------

    @property
    def _recorded_up_to(self) -> int:
        return 0 if self._steps is None else self._steps.stop

    def _next_counts(self) -> bool:
        """Whether the step that begins is one whose time tells something: no profiler, nothing being sent beside it."""
        return not (
            self._has_reported or self._is_profiled(self._step) or self._step < UNTIMED_STEPS or self._delivery.busy
        )

    def _tell(self) -> None:
        if self._has_reported:
            return
        self._has_reported = True
        place = self._current_place()
        if not (place.rank == 0 if self._observe is None else self._observe):
            return
        if self._configuration is None and self._nodes is None and place.nodes is None:
            self._delivery.complain(
                "the throughput is not sent, because the number of machines is not known; state nodes"
            )
            return
        ran = self._configuration or configurations(
            nodes=self._nodes or place.nodes or 1,
            workers=place.world_size,
            devices=self._device or device_name(),
            sync_modes="allreduce",
            batch_per_worker_samples=self._batch_per_worker or (),
        )
        self._delivery.rows(self._times.observation(ran), self._times.timings(ran))


def trace_handler(
    server: Client | str | None,
    profile: str,
    *,
    redact: bool = True,
    keep: Path | str | None = None,
    timeout_s: float = 30.0,
) -> Callable[[Any], None]:
    """What `torch.profiler.profile(on_trace_ready=...)` may be given: sends each trace of this rank into a profile.

    The arguments are those of `Recorder`. Record with `record_shapes=True`, or the sizes of collectives are missing.
    """
    delivery = Delivery(server, profile, redact=redact, keep=keep, timeout_s=timeout_s)

    def handle(profiler: Any) -> None:
        try:
            delivery.trace(lambda path: profiler.export_chrome_trace(str(path)), current_place())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not worth a training run
            delivery.complain("a trace is not sent", error)

    return handle


def _node() -> int | None:
    """Number of the machine within the job, as the launcher (torchrun, Slurm) says."""
    for variable in ("GROUP_RANK", "SLURM_NODEID"):
        if os.environ.get(variable, "").isdecimal():
            return int(os.environ[variable])
    return None


def _experimental_config() -> Any:
    """What has no public name yet: waits between streams, and annotations of threads other than the main one."""
    try:
        return torch._C._profiler._ExperimentalConfig(  # noqa: SLF001
            enable_cuda_sync_events=True, profile_all_threads=True
        )
    except (AttributeError, TypeError):  # an older or a newer PyTorch: traces then hold less
        return None
