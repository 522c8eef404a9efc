"""A batch of architectures answers what each of them gets alone, in any order."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import registry_with

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.architectures import Architectures
from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.architectures import ArchitecturesQuestion, Rankings, rank_architectures
from nodewise.estimation.question import Question, Terms

ROUNDING = 1e-9

WORKLOADS = st.builds(
    Workload,
    flops_per_sample=st.none() | st.floats(1e6, 1e12),
    family=st.none() | st.sampled_from(["ResNet", "shake shake", "another"]),
    parameter_bytes=st.none() | st.integers(1, 10**9),
    tensors=st.none() | st.integers(1, 500),
    activation_bytes_per_sample=st.none() | st.floats(1.0, 1e9),
)
ROWS = st.tuples(st.sampled_from([1, 1, 1, 2]), st.sampled_from([0, 32, 128]), st.sampled_from(["K80", "A100", "?"]))
SHARED = st.builds(
    Workload,
    family=st.none() | st.just("ResNet"),
    flops_per_sample=st.none() | st.just(1e9),
    precision=st.none() | st.sampled_from(["fp32", "fp16"]),
)


@cache
def answers() -> Answers:
    return Answers(registry_with(), catalogue=load_catalogue())


def asked(rows: list[tuple[int, int, str]]) -> Configurations:
    workers, batches, devices = zip(*rows, strict=True)
    found = Configurations.of(len(rows), nodes=workers, workers=workers)
    return found.replaced(devices=devices, device_index=as_ints(range(len(rows))), batch_per_worker=as_ints(batches))


def batch(many: Architectures, configurations: Configurations, shared: Workload) -> Rankings:
    question = ArchitecturesQuestion(
        profile=Profile(workload=shared),
        architectures=many,
        configurations=configurations,
        terms=Terms(estimator="unseen"),
    )
    found = rank_architectures(answers(), question)
    assert found is not None
    return found


def answer_of(question: Question) -> Predictions:
    """Of a call of its own; one that is refused as a whole is refused in every row."""
    try:
        return answers().answer(question).predictions
    except NodewiseError as error:
        return Predictions.refused(len(question.configurations), error.refusal)


def rows_of(found: Predictions) -> list[tuple[Any, ...]]:
    refused = {row: each.refusal.reason for each in found.refusals for row in each.rows}
    return [(int(status), refused.get(row)) for row, status in enumerate(found.status)]


@settings(max_examples=24, deadline=None, derandomize=True)
@given(st.lists(WORKLOADS, min_size=1, max_size=5), st.lists(ROWS, min_size=1, max_size=3), SHARED)
def test_at_once_as_alone(workloads: list[Workload], rows: list[tuple[int, int, str]], shared: Workload) -> None:
    many = Architectures.concatenated([Architectures.of(workload) for workload in workloads])
    configurations = asked(rows)
    found = batch(many, configurations, shared).answer
    for place in range(len(many)):
        profile = Profile(workload=many.workload(place, shared))
        question = Question(profile=profile, configurations=configurations, terms=Terms(estimator="unseen"))
        part = found.predictions.take(as_ints(range(place * len(rows), (place + 1) * len(rows))))
        alone = answer_of(question)
        assert rows_of(part) == rows_of(alone)
        for name in ("step_s", "log_spread", "extrapolation"):
            np.testing.assert_allclose(getattr(part, name), getattr(alone, name), rtol=ROUNDING)


@settings(max_examples=16, deadline=None, derandomize=True)
@given(st.lists(WORKLOADS, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_the_order_asked_is_the_order_answered(workloads: list[Workload], chance: Any) -> None:
    many = Architectures.concatenated([Architectures.of(workload) for workload in workloads])
    order = list(range(len(many)))
    chance.shuffle(order)
    configurations = asked([(1, 128, "K80")])
    straight, turned = (batch(each, configurations, Workload()) for each in (many, many.take(as_ints(order))))
    np.testing.assert_allclose(
        turned.answer.predictions.step_s, straight.answer.predictions.step_s[order], rtol=ROUNDING
    )
    steps = turned.answer.predictions.step_s
    told = turned.rankings[0].order
    assert set(told.tolist()) == set(np.flatnonzero(steps > 0.0).tolist())
    assert np.all(np.diff(steps[told]) >= 0.0)
