"""Hosted answers are those of the plugin inline, whatever its host still knows."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question, Terms
from nodewise.hosting.processes.connection import MOST_REMEMBERED
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP
from nodewise.profiles.digest import content_digest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "plugins" / "nodewise_example_amdahl"


def load(*, inline: bool) -> Registry:
    point = EntryPoint("amdahl", "nodewise_example_amdahl", ENTRY_POINT_GROUP)
    return load_registry(entry_points=lambda: [point], hosting=Hosting(trusted=("(unknown)",) if inline else ()))


@pytest.fixture(scope="module")
def registries() -> Iterator[list[Registry]]:
    """One inline, and two with a host of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(EXAMPLE)])
        found = [load(inline=True), load(inline=False), load(inline=False)]
        yield found
        for each in found:
            each.close()


def job(scale: float = 1.0) -> Profile:
    """Observations of a made-up job by Amdahl's law."""
    counts = as_ints([1, 2, 4, 8])
    rows = Configurations.of(4, nodes=counts, workers=counts, sync_mode=SyncMode.ALLREDUCE, batch_per_worker=32)
    observations = Observations.of(rows, as_floats(1.0 / (32 * counts * (0.002 + scale / counts))))
    found = Profile(observations=observations)
    return Profile(observations=observations, digest=content_digest(found))


def question(asked: Profile, first: int, rows: int = 4) -> Question:
    counts = as_ints(np.arange(first, first + rows))
    found = Configurations.of(rows, nodes=counts, workers=counts, sync_mode=SyncMode.ALLREDUCE, batch_per_worker=32)
    return Question(profile=asked, configurations=found, terms=Terms(estimator="amdahl"))


def same(one: Answer, other: Answer) -> None:
    np.testing.assert_array_equal(one.predictions.step_s, other.predictions.step_s)
    np.testing.assert_array_equal(one.predictions.log_spread, other.predictions.log_spread)
    assert one.predictions.breakdown_s.keys() == other.predictions.breakdown_s.keys()


def test_answers_of_two_workers_are_those_of_the_plugin_inline(registries: list[Registry]) -> None:
    inline, *hosted = map(Answers, registries)
    for first, scale in itertools.product(range(1, 5), (0.1, 0.3)):
        asked = question(job(scale), first)
        expected = inline.answer(asked)
        for each in hosted:
            same(each.answer(asked), expected)


def test_a_host_that_forgot_is_told_again(registries: list[Registry]) -> None:
    inline, hosted, _ = map(Answers, registries)
    (host,) = registries[1].hosts
    asked = job()
    for first in range(1, 13):
        if first in (5, 9):
            assert host.pid is not None
            os.kill(host.pid, signal.SIGKILL)
            while host._process is not None and not host._process.has_ended:
                os.sched_yield()
        same(hosted.answer(question(asked, first)), inline.answer(question(asked, first)))


def test_what_was_dropped_to_make_room_is_told_again(registries: list[Registry]) -> None:
    inline, _, hosted = map(Answers, registries)
    first_job = job(0.7)
    jobs = [job(0.5 + number / 1e3) for number in range(MOST_REMEMBERED)]
    for first, asked in enumerate([first_job, first_job, *jobs, first_job, *jobs[:2], first_job], 1):
        same(hosted.answer(question(asked, first, 2)), inline.answer(question(asked, first, 2)))
