"""The estimator `unseen`: what it answers and refuses, in whose words, and what it learns from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import (
    Catalogue,
    Configurations,
    NodewiseError,
    Observations,
    Options,
    Predictions,
    Prior,
    Profile,
    Query,
    Workload,
    as_floats,
)
from nodewise_unseen.corpus import shipped_runs
from nodewise_unseen.estimator import UnseenEstimator

CATALOGUE = load_catalogue()
RESNET = Workload(family="ResNet", flops_per_sample=1.658696889e9)


@dataclass(frozen=True)
class Context:
    prior: Prior | None = None
    catalogue: Catalogue = CATALOGUE
    seed: int = 0

    def traces(self) -> Any:
        return ()

    def model(self, estimator: str) -> Any:
        raise AssertionError(estimator)


def rows(*workers: int, batch: int = 128, device: str = "K80", **more: Any) -> Configurations:
    stated = {"nodes": workers, "workers": workers, "batch_per_worker": batch, "device": device}
    return Configurations.of(len(workers), **stated | more)


def job(
    name: str, flops: float, steps_per_s: float, *, batch: int = 128, device: str = "V100", **facts: Any
) -> Profile:
    return Profile(
        profile_id=name,
        workload=Workload(flops_per_sample=flops, **facts),
        observations=Observations.of(rows(1, batch=batch, device=device), as_floats([steps_per_s])),
    )


def predicted(
    workload: Workload, configurations: Configurations, prior: Prior | None = None, **held: Any
) -> Predictions:
    estimator, profile = UnseenEstimator(), Profile(workload=workload, **held)
    return estimator.fit(profile, Context(prior)).predict(configurations, Options())


def test_the_shipped_table_is_whole() -> None:
    runs = shipped_runs()
    assert len(runs) == 40
    assert {run.device for run in runs} == {"K80", "P100"}
    assert {run.family for run in runs} == {"ResNet", "Shake-Shake"}


def test_a_model_of_a_known_family_is_answered_with_a_range() -> None:
    told = predicted(RESNET, rows(1))
    assert told.step_s[0] == pytest.approx(0.218, rel=0.1)  # measured, and in the table
    assert 0.0 < told.log_spread[0] < 0.15
    assert told.extrapolation.tolist() == [1.0]
    assert told.notices == ()


@pytest.mark.parametrize(
    ("workload", "asked", "field", "words"),
    [
        (Workload(family="ResNet"), rows(1), "flops_per_sample", "FLOPs per sample"),
        (RESNET, rows(1, batch=0), "batch_per_worker_samples", "samples per step"),
        (RESNET, rows(1, device="abacus"), "device", "no peak of the device"),
        (RESNET, rows(4), "observations", "measure this model on one worker"),
        (replace(RESNET, precision="fp8"), rows(1), "device", "in this precision"),
    ],
)
def test_what_is_missing_is_named(workload: Workload, asked: Configurations, field: str, words: str) -> None:
    found = UnseenEstimator().assess(Profile(workload=workload), Query(configurations=asked, catalogue=CATALOGUE))
    assert found.refusal is not None
    assert found.refusal.missing_fields == (field,)
    assert words in found.refusal.message


def test_rows_are_refused_each_for_its_own_reason_and_the_others_are_answered() -> None:
    configurations = rows(1, 2, 1).replaced(batch_per_worker=np.array([128, 128, 0]))
    found = UnseenEstimator().assess(
        Profile(workload=RESNET), Query(configurations=configurations, catalogue=CATALOGUE)
    )
    assert (found.refusal, found.strength) == (None, 0.0)
    assert np.isfinite(found.expected_log_error).tolist() == [True, False, False]
    told = predicted(RESNET, configurations)
    assert told.answered.tolist() == [True, False, False]
    assert [each.refusal.missing_fields for each in told.refusals] == [
        ("observations",),
        ("batch_per_worker_samples",),
    ]


def test_beyond_the_hull_a_range_widens_then_nothing_is_said() -> None:
    sizes = [1e9, 8e9, 2e10, 1e13]
    answers = [predicted(replace(RESNET, flops_per_sample=size), rows(1)) for size in sizes]
    spreads = [float(each.log_spread[0]) for each in answers]
    assert spreads[0] < spreads[1] < spreads[2]
    assert [float(each.extrapolation[0]) for each in answers[:3]] == pytest.approx([1.0, 1.36, 3.4], rel=0.01)
    assert answers[3].refusals[0].refusal.missing_fields == ("observations",)
    assert "10 times beyond" in answers[3].refusals[0].refusal.message


def test_families_and_devices_that_never_ran_are_named() -> None:
    (family,) = predicted(replace(RESNET, family="MobileNet"), rows(1)).notices
    assert family.reason == "FAMILY_UNSEEN"
    assert "'MobileNet'" in family.message
    (device,) = predicted(RESNET, rows(1, device="A100")).notices
    assert device.reason == "DEVICE_UNSEEN"
    assert predicted(replace(RESNET, family="res-net"), rows(1)).notices == ()


def test_names_of_a_device_are_one_device_and_another_format_is_another() -> None:
    by_alias, by_name = (predicted(RESNET, rows(1, device=name)) for name in ("Tesla K80", "K80"))
    np.testing.assert_array_equal(by_alias.step_s, by_name.step_s)
    half = predicted(replace(RESNET, precision="fp16"), rows(1, device="P100"))
    assert half.step_s[0] < predicted(RESNET, rows(1, device="P100")).step_s[0]
    assert [notice.reason for notice in half.notices] == ["DEVICE_UNSEEN"]


def test_the_store_teaches_devices_and_families() -> None:
    corpus = [job(f"v{size}", size * 1e9, 40.0 / size, family="Wide") for size in (1, 2, 4, 8)]
    prior = UnseenEstimator().learn(corpus)
    assert prior.sources[1] == "4 runs of stored profiles"
    asked = Workload(family="Wide", flops_per_sample=3e9)
    before, after = predicted(asked, rows(1, device="V100")), predicted(asked, rows(1, device="V100"), prior)
    assert after.log_spread[0] < 0.5 * before.log_spread[0]
    assert after.step_s[0] == pytest.approx(3 / 40, rel=0.15)
    assert prior.prior_id == UnseenEstimator().learn(corpus[::-1]).prior_id
    assert prior.prior_id != UnseenEstimator().learn(corpus[1:]).prior_id


@pytest.mark.parametrize(
    ("asked", "first", "second"),
    [
        (("ResNet", "V100"), job("a", 3e9, 14.3, family="ResNet"), job("b", 1e9, 33.3, family="ResNet")),
        (
            ("MobileNet", "K80"),
            job("a", 3e9, 1.7, family="MobileNet", device="K80"),
            job("b", 1e9, 4.0, family="MobileNet", device="K80"),
        ),
    ],
)
def test_one_run_and_then_another_narrow_what_never_ran(
    asked: tuple[str, str], first: Profile, second: Profile
) -> None:
    workload, device = Workload(family=asked[0], flops_per_sample=1.66e9), asked[1]
    ends = [
        float(
            np.exp(1.645 * predicted(workload, rows(1, device=device), UnseenEstimator().learn(corpus)).log_spread[0])
        )
        for corpus in ([], [first], [first, second])
    ]
    assert ends[0] == pytest.approx(2.5, abs=0.1)
    assert ends[1] == pytest.approx(1.4, abs=0.05)
    assert ends[2] == pytest.approx(1.12, abs=0.01)


def test_models_of_the_shipped_table_left_out_in_turn() -> None:
    errors: dict[str, list[float]] = {"K80": [], "P100": []}
    for flops in sorted({run.flops for run in shipped_runs()}):
        left = tuple(run for run in shipped_runs() if run.flops != flops)
        prior = Prior.of("unseen", [flops], sources=(), content=left)
        for run in shipped_runs():
            if run.flops == flops:
                workload = Workload(family=run.family, flops_per_sample=flops / 128)
                told = predicted(workload, rows(1, device=run.device), prior)
                errors[run.device].append(abs(float(told.step_s[0]) / run.seconds - 1.0))
    assert np.mean(errors["K80"]) <= 0.06
    assert np.mean(errors["P100"]) <= 0.08


def test_runs_that_a_profile_leaves_out_are_not_known_of_the_prior() -> None:
    corpus = [job(f"v{size}", size * 1e9, 40.0 / size, family="Wide") for size in (1, 2, 4, 8)]
    odd = job("odd", 3e9, 20.0, family="Wide")  # faster than its kin
    prior = UnseenEstimator().learn([*corpus, odd])
    held_back = predicted(odd.workload, rows(1, device="V100"), prior, profile_id="odd")
    without = predicted(odd.workload, rows(1, device="V100"), UnseenEstimator().learn(corpus))
    np.testing.assert_allclose(held_back.step_s, without.step_s)
    shown = predicted(odd.workload, rows(1, device="V100"), prior, profile_id="odd", observations=odd.observations)
    assert shown.step_s[0] < 0.98 * held_back.step_s[0]


def test_a_catalogue_without_the_devices_of_any_run_cannot_teach() -> None:
    with pytest.raises(NodewiseError, match="at least 4 runs"):
        UnseenEstimator().fit(Profile(workload=RESNET), Context(catalogue=Catalogue()))


def test_tensors_and_activations_count_where_runs_tell_them_and_are_missed_nowhere() -> None:
    """Steps of 1 ms a tensor besides FLOPs: the table that ships tells no tensors, and must not hide it."""
    draw = np.random.default_rng(3)
    corpus, truth = [], {}
    for number, flops in enumerate(np.geomspace(1e9, 8e9, 14)):
        tensors = int(draw.integers(20, 300))
        truth[number] = float(flops) * 128 / 1e13 + 1e-3 * tensors
        facts = {"tensors": tensors, "activation_bytes_per_sample": float(flops) / 300, "family": "Wide"}
        corpus.append(job(f"t{number}", float(flops), 1.0 / truth[number], **facts))
    prior = UnseenEstimator().learn(corpus)
    counted = Workload(flops_per_sample=3e9, tensors=200, activation_bytes_per_sample=1e7, family="Wide")
    told = predicted(counted, rows(1, device="V100"), prior)
    hardly = predicted(replace(counted, tensors=None), rows(1, device="V100"), prior)
    assert told.step_s[0] == pytest.approx(3e9 * 128 / 1e13 + 0.2, rel=0.05)
    assert told.log_spread[0] < 0.5 * hardly.log_spread[0]
    assert hardly.answered.all()
