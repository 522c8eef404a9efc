"""Hosted answers are those of the plugin inline, whatever its host still knows; calls of one kind have one tree."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.predictions import Options
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question, Terms
from nodewise.hosting.processes.codec import HEADER
from nodewise.hosting.processes.host import Host
from nodewise.hosting.processes.sending import MOST_INTERNED, Sending
from nodewise.hosting.processes.words import Op
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP, Catalogue, Query
from nodewise.profiles.digest import content_digest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "plugins" / "nodewise_example_amdahl"
PROFILES = [Profile(digest=f"job {number}") for number in range(3)]
CATALOGUE = Catalogue()


def tree_of(sending: Sending, profile: Profile, counts: list[int], model: int, batch: int = 32) -> bytes:
    rows = Configurations.of(len(counts), nodes=1, workers=as_ints(counts), batch_per_worker=batch)
    query = Query(configurations=rows, options=Options(), catalogue=CATALOGUE)
    following = (SimpleNamespace(target=model), "predict", (rows, Options()))
    message = sending.asking(1, Op.CALL, "estimator/any", "assess", (profile, query), [], following)
    size, _, _ = HEADER.unpack_from(message)
    return message[HEADER.size : HEADER.size + size]


@given(st.lists(st.tuples(st.sampled_from(PROFILES), st.permutations([1, 2, 3]), st.integers(1, 9)), min_size=2))
def test_calls_about_other_jobs_rows_and_models_have_one_tree(calls: list[tuple[Profile, list[int], int]]) -> None:
    sending = Sending(cast("Host", SimpleNamespace(distribution="any 1.0", generation=1)))
    for profile in PROFILES:
        tree_of(sending, profile, [1, 2, 3], 1)  # what is new to the host is told in full
    assert len({tree_of(sending, *each) for each in calls}) == 1
    assert tree_of(sending, PROFILES[0], [1, 2], 1) != tree_of(sending, PROFILES[0], [1, 2, 3], 1)
    assert tree_of(sending, PROFILES[0], [1, 2], 1) != tree_of(sending, PROFILES[0], [1, 2], 1, batch=64)


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
            while host._life is not None and not host._life.ended:
                os.sched_yield()
        same(hosted.answer(question(asked, first)), inline.answer(question(asked, first)))


def test_what_was_dropped_to_make_room_is_told_again(registries: list[Registry]) -> None:
    inline, _, hosted = map(Answers, registries)
    first_job = job(0.7)
    jobs = [job(0.5 + number / 1e3) for number in range(MOST_INTERNED)]
    for first, asked in enumerate([first_job, first_job, *jobs, first_job, *jobs[:2], first_job], 1):
        same(hosted.answer(question(asked, first, 2)), inline.answer(question(asked, first, 2)))
