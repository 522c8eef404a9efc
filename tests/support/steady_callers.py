"""Callers that ask at a steady pace whatever happens, and remember what it was like."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from serving import Stubs, inline, one_worker_phases, workers

from nodewise_client._connection import DEFAULT_MAX_RECEIVE_BYTES, Connection
from nodewise_protos.v1 import options_pb2, schedule_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import schedule_service_pb2 as schedules

KEPT_JOBS: Final = 20
"""Distinct jobs that are asked about again and again."""
NEW_EVERY: Final = 5
"""One question in so many is about a job that was never asked about."""
DEADLINE_S: Final = 60.0

Asked = Callable[[Stubs, int, dict[str, Any]], Any]


def predict_request(estimator: str, job: int) -> predictions.PredictRequest:
    """Sixteen configurations of a job."""
    options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator))
    profile = inline(one_worker_phases(compute_s=0.1 + job * 1e-5))
    return predictions.PredictRequest(profile=profile, configurations=workers(*range(1, 17)), options=options)


def predicting(estimator: str) -> Asked:
    """Predict by an estimator, or by ``auto``."""

    def ask(stubs: Stubs, job: int, options: dict[str, Any]) -> Any:
        return stubs.prediction.Predict(predict_request(estimator, job), **options)

    return ask


def scheduling(stubs: Stubs, job: int, options: dict[str, Any]) -> Any:
    """A decision about two jobs, by the default policy."""
    content = inline(one_worker_phases(compute_s=0.1 + job * 1e-5))
    jobs = [
        schedule_pb2.ScheduleJob(job_id=name, profile=content, remaining_samples=1e4, max_devices=4)
        for name in ("a", "b")
    ]
    pool = schedule_pb2.NodePool(name="all", available_devices=[2, 2])
    request = schedules.ScheduleRequest(now=Timestamp(seconds=1), cluster=schedule_pb2.Cluster(pools=[pool]), jobs=jobs)
    request.options.estimator = "queueing"
    return stubs.schedule.Schedule(request, **options)


USUAL: Final[Mapping[str, Asked]] = MappingProxyType(
    {"auto": predicting(""), "queueing": predicting("queueing"), "schedule": scheduling}
)
"""Callers by name."""


@dataclass
class Window:
    """What callers saw in a stretch of time."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def answered(self) -> int:
        """Calls with an answer."""
        return sum(map(len, self.seconds.values()))

    def percentile_ms(self, who: str, share: float) -> float:
        """Latency below which so large a share of a caller's answers lies; from when the question was due."""
        found = sorted(self.seconds.get(who, [float("nan")]))
        return 1e3 * found[min(len(found) - 1, int(share * len(found)))]


class SteadyCallers:
    """One thread for each caller, asking so many times a second.

    A question counts from when it was due: an answer that is late makes the questions behind it late as well.

    Parameters
    ----------
    target : str
        HOST:PORT.
    callers : mapping
        By name, what each asks.
    calls_per_s : float
        Of each.
    retrying : bool
        Whether with the shipped policy of retries.
    waiting : bool
        Whether calls wait for a connection; None = as `retrying`. With both, callers ask as those do who are to notice
        no restart.
    new_every : int
        One question in so many is about a job that was never asked about; 1 = all.
    """

    def __init__(
        self,
        target: str,
        callers: Mapping[str, Asked] = USUAL,
        *,
        calls_per_s: float = 10.0,
        retrying: bool = False,
        waiting: bool | None = None,
        new_every: int = NEW_EVERY,
    ) -> None:
        self._new_every = new_every
        self._target, self._pause_s, self._retrying = target, 1.0 / calls_per_s, retrying
        self._waiting = retrying if waiting is None else waiting
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.window = Window()
        self.windows = [self.window]
        self._threads = [threading.Thread(target=self._asking, args=entry) for entry in callers.items()]

    def begin_window(self) -> Window:
        """What is seen from now on stands in a window of its own; returns the one before."""
        with self._lock:
            before, self.window = self.window, Window()
            self.windows.append(self.window)
        return before

    @property
    def failures(self) -> list[str]:
        """Of all windows."""
        return [failure for window in self.windows for failure in window.failures]

    def answered(self) -> int:
        """Calls with an answer, of all windows."""
        return sum(window.answered() for window in self.windows)

    def _asking(self, who: str, ask: Asked) -> None:
        options: dict[str, Any] = {"timeout": DEADLINE_S, "wait_for_ready": self._waiting}
        with Stubs(self._target, _shipped_options(self._target) if self._retrying else ()) as stubs:
            due_s, window = time.monotonic(), self.window
            for number in itertools.count():
                if window is not self.window:  # what was late before is forgotten: it was told there
                    due_s, window = time.monotonic(), self.window
                if self._ended.wait(max(0.0, due_s - time.monotonic())):
                    return
                job = number if number % self._new_every == 0 else number % KEPT_JOBS
                try:
                    ask(stubs, job, options)
                except grpc.RpcError as error:
                    self._saw(window, who, None, f"{who}: {_said(error)}")
                else:
                    self._saw(window, who, time.monotonic() - due_s, "")
                due_s += self._pause_s

    def _saw(self, window: Window, who: str, seconds: float | None, failure: str) -> None:
        """What came of a question, told in the window in which it was asked."""
        with self._lock:
            if seconds is None:
                window.failures.append(failure)
            else:
                window.seconds.setdefault(who, []).append(seconds)

    def __enter__(self) -> SteadyCallers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(2.0 * DEADLINE_S)


def _shipped_options(target: str) -> list[tuple[str, Any]]:
    """Options of the shipped client's channels: what is retried, how often, and when a server is looked for again."""
    limit = DEFAULT_MAX_RECEIVE_BYTES
    return Connection(target=target, timeout_s=None, token=None, tls=False, retry=True, max_receive_bytes=limit).options


def _said(error: grpc.RpcError) -> str:
    assert isinstance(error, grpc.Call)
    return f"{error.code().name} {error.details()}"
