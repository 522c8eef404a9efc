"""Curves per second: the engine's answer over 16 configurations beside asking for one configuration at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from results import Result

from nodewise.domain.columns import as_floats, as_ints, constant_floats, constant_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import PhaseTimings, Profile
from nodewise.estimation.engine import Engine
from nodewise.estimation.question import Question
from nodewise.estimation.registry import load_registry
from nodewise.profiles.digest import content_digest

JOBS = 300
CONFIGURATIONS = 16


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


def run() -> Iterator[Result]:
    """Fresh models each time: what a scheduler's first round over new jobs costs."""
    profiles = [profile(number) for number in range(JOBS)]
    registry = load_registry(safe_mode=True)
    workers = as_ints(np.arange(1, CONFIGURATIONS + 1))
    together = Configurations.of(CONFIGURATIONS, workers=workers)
    alone = [Configurations.of(1, workers=[int(count)]) for count in workers]

    def curves() -> None:
        engine = Engine(registry)
        for one in profiles:
            engine.answer(Question(profile=one, configurations=together))

    def points() -> None:
        engine = Engine(registry)
        for one in profiles:
            for configuration in alone:
                engine.answer(Question(profile=one, configurations=configuration))

    yield Result("curves_of_16_configurations", per_second(curves, JOBS), "curves/s", per_second(points, JOBS))
