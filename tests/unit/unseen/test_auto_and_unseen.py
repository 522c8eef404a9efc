"""`auto` asks `unseen` where nobody knows the model on that device, and nowhere else."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from serving import registry_with

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question

RESNET = Workload(family="ResNet", flops_per_sample=1.66e9)


@cache
def answers() -> Answers:
    return Answers(registry_with(), catalogue=load_catalogue())


def rows(device: str, workers: int = 1) -> Configurations:
    return Configurations.of(
        1, nodes=1, workers=workers, batch_per_worker=128, device=device, sync_mode=SyncMode.ALLREDUCE
    )


def asked(device: str, ran_on: str | None = None, workload: Workload = RESNET, workers: int = 1) -> Answer:
    observed = Observations.none() if ran_on is None else Observations.of(rows(ran_on), np.array([4.6]))
    profile = Profile(workload=workload, observations=observed)
    return answers().answer(Question(profile=profile, configurations=rows(device, workers)))


def test_facts_alone_are_answered() -> None:
    assert asked("K80").basis.estimator == "unseen"


def test_a_run_on_another_device_leaves_it_to_the_law_that_knows_both() -> None:
    found = asked("P100", ran_on="K80")
    assert found.basis.estimator == "unseen"
    assert found.predictions.step_s[0] == pytest.approx(0.0826, rel=0.15)  # measured of that network


def test_a_run_on_that_device_answers_itself() -> None:
    found = asked("K80", ran_on="K80")
    assert "unseen" not in {found.basis.estimator, *(share.estimator for share in found.basis.mixture)}
    assert found.predictions.step_s[0] == pytest.approx(1 / 4.6)


@pytest.mark.parametrize(
    ("workload", "workers", "words"),
    [
        (Workload(family="ResNet"), 1, "unseen: FLOPs per sample of the model"),
        (RESNET, 4, "unseen: the estimator predicts one worker only: for more, measure this model on one worker"),
    ],
)
def test_where_nobody_can_it_says_what_is_missing(workload: Workload, workers: int, words: str) -> None:
    with pytest.raises(NodewiseError, match=words):
        asked("K80", workload=workload, workers=workers)


def test_without_flops_nothing_changes() -> None:
    found = asked("K80", ran_on="K80", workload=Workload(family="ResNet"))
    assert found.basis.estimator != "unseen"
