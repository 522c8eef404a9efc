"""Curves per second: the engine's answer beside asking point by point, and long exact curves beside plain Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from results import Result

from nodewise.domain.columns import as_floats, as_ints, constant_floats, constant_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.predictions import Options
from nodewise.domain.profile import PhaseTimings, Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Question
from nodewise.hosting.registry import load_registry
from nodewise.plugin import Catalogue, Model
from nodewise.profiles.digest import content_digest
from nodewise_laws import exact_mva

JOBS = 300
CONFIGURATIONS = 16
EXACT_JOBS = 1_000
EXACT_WORKERS = 1_024
PLAIN_JOBS = 20


def profile(number: int) -> Profile:
    """A job of its own: phases around those of job a1 of the testbed table."""
    scale = 1.0 + number / JOBS
    phases = PhaseTimings(
        configurations=Configurations.of(
            1, nodes=1, workers=1, sync_mode=SyncMode.ASYNC, parameter_servers=1, batch_per_worker=32
        ),
        download_s=as_floats([0.15876]),
        compute_s=as_floats([0.29659 * scale]),
        upload_s=as_floats([0.16033]),
        update_s=as_floats([0.005]),
        compute_variation=constant_floats(1, -1.0),
        transfer_variation=constant_floats(1, -1.0),
        hidden_s=constant_floats(1, 0.0),
        steps=constant_ints(1, 0),
    )
    found = Profile(phase_timings=phases)
    return Profile(phase_timings=phases, digest=content_digest(found))


def per_second(work: Callable[[], None], count: int) -> float:
    best = 0.0
    for _ in range(3):
        started = time.perf_counter()
        work()
        best = max(best, count / (time.perf_counter() - started))
    return best


def plain_mva(demands_s: list[float], think_s: float, population: int) -> tuple[list[float], list[list[float]]]:
    """The recursion as a textbook has it, in plain Python: throughput and residence at populations 1..n."""
    throughput, residence, queue = [], [], [0.0] * len(demands_s)
    for number in range(1, population + 1):
        spent = [demand * (1.0 + length) for demand, length in zip(demands_s, queue)]
        rate = number / (think_s + sum(spent))
        queue = [rate * time_s for time_s in spent]
        throughput.append(rate)
        residence.append(spent)
    return throughput, residence


def exact_curves() -> Result:
    """All numbers of workers of jobs with three stations: throughput, residence, queues; one core, the law alone."""
    thinks = np.linspace(0.3, 0.6, EXACT_JOBS).tolist()
    demands = [0.15876, 0.16033, 0.005]
    np.testing.assert_allclose(
        plain_mva(demands, 0.3, EXACT_WORKERS)[0], exact_mva(demands, 0.3, EXACT_WORKERS).throughput_per_s, rtol=1e-12
    )

    def compiled() -> None:
        for think in thinks:
            exact_mva(demands, think, EXACT_WORKERS)

    def plain() -> None:
        for think in thinks[:PLAIN_JOBS]:
            plain_mva(demands, think, EXACT_WORKERS)

    name = f"exact_curves_of_{EXACT_WORKERS}_workers"
    return Result(name, per_second(compiled, EXACT_JOBS), "curves/s", per_second(plain, PLAIN_JOBS))


def long_curves() -> Result:
    """Predictions of 1..1,024 workers of new jobs, with everything that an answer holds, beside the bare recursion.

    The estimator alone: fit and predict, one core.
    """
    estimator = load_registry(safe_mode=True).estimators["queueing"].record.estimator
    profiles = [profile(number) for number in range(EXACT_JOBS)]
    workers = as_ints(np.arange(1, EXACT_WORKERS + 1))
    question = Configurations.of(
        EXACT_WORKERS,
        nodes=workers,
        workers=workers,
        sync_mode=SyncMode.ASYNC,
        parameter_servers=1,
        batch_per_worker=32,
    )

    def answered() -> None:
        for one in profiles:
            estimator.fit(one, CONTEXT).predict(question, Options())

    def plain() -> None:
        for number in range(PLAIN_JOBS):
            plain_mva([0.15876, 0.16033, 0.005], 0.3 + 0.001 * number, EXACT_WORKERS)

    name = f"predictions_of_{EXACT_WORKERS}_workers"
    value = EXACT_WORKERS * per_second(answered, EXACT_JOBS)
    return Result(name, value, "predictions/s", EXACT_WORKERS * per_second(plain, PLAIN_JOBS))


class NoContext:
    """What a fit may use besides the profile: nothing."""

    prior = None
    catalogue = Catalogue()
    seed = 0

    def model(self, estimator: str) -> Model:
        raise NotImplementedError


CONTEXT = NoContext()


def run() -> Iterator[Result]:
    """Fresh models each time: what a scheduler's first round over new jobs costs."""
    profiles = [profile(number) for number in range(JOBS)]
    registry = load_registry(safe_mode=True)
    workers = as_ints(np.arange(1, CONFIGURATIONS + 1))
    together = Configurations.of(CONFIGURATIONS, workers=workers)
    alone = [Configurations.of(1, workers=[int(count)]) for count in workers]

    def curves() -> None:
        engine = Answers(registry)
        for one in profiles:
            engine.answer(Question(profile=one, configurations=together))

    def points() -> None:
        engine = Answers(registry)
        for one in profiles:
            for configuration in alone:
                engine.answer(Question(profile=one, configurations=configuration))

    yield Result("curves_of_16_configurations", per_second(curves, JOBS), "curves/s", per_second(points, JOBS))
    yield exact_curves()
    yield long_curves()
