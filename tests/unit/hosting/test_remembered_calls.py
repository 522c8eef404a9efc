"""Calls that come again: what is written from a remembered tree is what would be written in full, whoever reads it."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

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
from nodewise.hosting.processes.host import Host
from nodewise.hosting.processes.sending import MOST_INTERNED, Sending
from nodewise.hosting.processes.words import Op
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP, Catalogue, Query
from nodewise.profiles.digest import content_digest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "plugins" / "nodewise_example_amdahl"
PROFILES = [Profile(digest=f"job {number}") for number in range(3)]
CATALOGUE = Catalogue()


class InFull(Sending):
    """Remembers nothing."""

    def _form(self, *_: Any) -> None:
        return None


def sendings() -> tuple[Sending, Sending]:
    host = cast("Host", SimpleNamespace(distribution="any 1.0", generation=1))
    return Sending(host), InFull(host)


ROWS = st.builds(
    lambda counts, mode, batch, device, nodes: Configurations.of(
        len(counts), nodes=as_ints(counts) if nodes else 1, workers=as_ints(counts), sync_mode=mode,
        batch_per_worker=batch, device=device,
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.sampled_from([SyncMode.ASYNC, SyncMode.ALLREDUCE]),
    st.sampled_from([32, 64]),
    st.sampled_from(["", "A100"]),
    st.booleans(),
)  # fmt: skip
CALLS = st.tuples(
    st.sampled_from(PROFILES),
    ROWS,
    st.sampled_from([Options(), Options(seed=7)]),
    st.sampled_from([None, 3, 4]),
    st.booleans(),
    st.sampled_from([(), (), (), (), (5,)]),
)


@given(st.lists(CALLS, max_size=30))
def test_what_is_remembered_is_written_as_in_full(calls: list[Any]) -> None:
    remembering, in_full = sendings()
    for number, (profile, rows, options, model, alone, released) in enumerate(calls):
        query = Query(configurations=rows, options=options, catalogue=CATALOGUE)
        following = None if model is None else (SimpleNamespace(target=model), "predict", (rows, options))
        written = [
            each.asking(number, Op.CALL, model or 1, "predict", (rows, options), [*released])
            if alone
            else each.asking(number, Op.CALL, "estimator/any", "assess", (profile, query), [*released], following)
            for each in (remembering, in_full)
        ]
        assert written[0] == written[1]


def test_what_comes_again_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    sending, _ = sendings()
    rows = [Configurations.of(2, nodes=as_ints([1, number]), workers=as_ints([1, number])) for number in range(1, 6)]

    def ask(profile: Profile, each: Configurations) -> None:
        query = Query(configurations=each, options=Options(), catalogue=CATALOGUE)
        following = (SimpleNamespace(target=len(profile.digest)), "predict", (each, Options()))
        sending.asking(1, Op.CALL, "estimator/any", "assess", (profile, query), [], following)

    for profile, each in zip(PROFILES, rows, strict=False):
        ask(profile, each)  # what is new to the host is told in full
    ask(PROFILES[0], rows[3])
    monkeypatch.setattr(Sending, "_intern", None)
    ask(PROFILES[1], rows[4])


# --- through the public door, beside the same plugin inline


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
