"""Swaps under load: servers change generations of plugins while clients of every kind ask, and nobody may notice."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from estimators import predictions_of
from patience import PATIENCE_S
from serving import Stubs, inline, one_worker_phases, registry_with, workers

from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.hosting.registry import Registry
from nodewise.plugin import Assessment, Context, EstimatorRecord, Query
from nodewise_client import AsyncClient, Client, PredictRequest
from nodewise_protos.v1 import options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_values.wire import from_message

NAME = "swapped"
COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Telling:
    """An estimator whose every prediction tells its version: a step takes as many seconds."""

    seconds: float

    def assess(self, profile: Profile, query: Query) -> Assessment:
        return Assessment(strength=0.5, evidence=("by hand",))

    def fit(self, profile: Profile, context: Context) -> Telling:
        return self

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        return predictions_of(np.full(len(configurations), self.seconds))


def version_of(number: int) -> str:
    return f"{number}.0"


def generation(number: int, *, mode: str = "inline") -> Registry:
    """The shipped plugins, and the estimator that tells its version."""
    record = EstimatorRecord(
        name=NAME, version=version_of(number), description="by hand", estimator=Telling(float(number))
    )
    return registry_with((record,), mode=mode)


@dataclass
class Seen:
    """What clients saw."""

    answers: dict[str, int] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)
    mixed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def reply(self, who: str, basis: Any, step_seconds: Any) -> None:
        """An answer: every row must be of the version that its basis names."""
        self.answers[who] = self.answers.get(who, 0) + 1
        self.versions.add(basis.estimator_version)
        if {float(basis.estimator_version)} != set(step_seconds):
            self.mixed.append(f"{who}: {basis.estimator_version} with {sorted(set(step_seconds))}")


def request_of(job: int, version: str = "") -> pb.PredictRequest:
    model = options_pb2.ModelOptions(estimator=NAME, estimator_version=version)
    return pb.PredictRequest(
        profile=inline(one_worker_phases(compute_s=0.1 + job / 1000)),
        configurations=workers(*COUNTS),
        options=options_pb2.PredictOptions(model=model),
    )


class Load:
    """Clients of every kind that ask for as long as the context lasts.

    Parameters
    ----------
    target : str
        HOST:PORT.
    kinds : tuple of str
        Of clients, one of each.
    pause_s : float
        Between an answer and the next question; 0 = as fast as they are answered, which leaves a swap in other
        processes next to no processor, and makes it last.
    """

    def __init__(
        self,
        target: str,
        *,
        kinds: tuple[str, ...] = ("stub", "batch", "stream", "sync", "async"),
        pause_s: float = 0.0,
    ) -> None:
        self.seen = Seen()
        self._target = target
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._guarded, args=(getattr(self, f"_{kind}"),)) for kind in kinds]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _guarded(self, ask: Callable[[], None]) -> None:
        try:
            ask()
        except Exception as error:  # noqa: BLE001 - the test tells of it
            self.seen.failures.append(f"{ask.__name__}: {error!r}")

    def _jobs(self) -> Iterator[int]:
        """Few jobs, so that most answers are kept ones, and now and then a new one."""
        for number in itertools.count():
            if self._ended.wait(self._pause_s):
                return
            yield number % 7 if number % 20 else 7 + number // 20 % 40

    def _stub(self) -> None:
        with Stubs(self._target) as stubs:
            for job in self._jobs():
                reply = stubs.prediction.Predict(request_of(job), timeout=PATIENCE_S)
                self.seen.reply("stub", reply.basis, reply.predictions.step_seconds)

    def _batch(self) -> None:
        with Stubs(self._target) as stubs:
            for job in self._jobs():
                jobs = [pb.BatchJob(profile=request_of(job + each).profile) for each in range(5)]
                options = request_of(job).options
                request = pb.BatchPredictRequest(jobs=jobs, configurations=workers(*COUNTS), options=options)
                reply = stubs.prediction.BatchPredict(request, timeout=PATIENCE_S)
                for number, outcome in enumerate(reply.outcomes):
                    first, last = reply.row_offsets[number : number + 2]
                    basis = reply.bases[outcome.basis_index]
                    self.seen.reply("batch", basis, reply.predictions.step_seconds[first:last])

    def _stream(self) -> None:
        def questions() -> Iterator[pb.StreamPredictRequest]:
            for job in self._jobs():
                yield pb.StreamPredictRequest(question_id=str(job), predict=request_of(job))

        with Stubs(self._target) as stubs:
            for answer in stubs.prediction.StreamPredict(questions(), timeout=PATIENCE_S):
                if answer.HasField("problem"):
                    self.seen.failures.append(f"stream: {answer.problem.reason}")
                self.seen.reply("stream", answer.predict.basis, answer.predict.predictions.step_seconds)

    def _sync(self) -> None:
        with Client(self._target) as client:
            for job in self._jobs():
                found = client.predict(value_of(job))
                self.seen.reply("sync", found.basis, [row.step_seconds for row in found])

    def _async(self) -> None:
        async def ask() -> None:
            async with AsyncClient(self._target) as client:
                for job in self._jobs():
                    found = await client.predict(value_of(job))
                    self.seen.reply("async", found.basis, [row.step_seconds for row in found])

        asyncio.run(ask())


def value_of(job: int) -> PredictRequest:
    """The same question as the client's own value."""
    found: PredictRequest = from_message(request_of(job), PredictRequest)
    return found
