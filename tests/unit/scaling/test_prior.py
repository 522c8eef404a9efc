"""What jobs teach: a device's own behaviour, the same from the same jobs, and the prior that is shipped."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scaling_profiles import PER_NODE, TEN, Law, answered, full, job, notices, points, rows

from learn_scaling_prior import FIXED, HYPER, learned
from nodewise.plugin import LearningEstimator, Prior, Profile
from nodewise_scaling.estimator import ScalingEstimator
from nodewise_scaling.form import REFERENCE_WORKERS
from nodewise_scaling.parameters import COUNT, HYPER_MEAN, NAMES
from nodewise_scaling.prior import Knowledge, load_default_prior

TWO_NODES = np.array([1.0 if name == "two_nodes" else 0.0 for name in NAMES])
TWO_NODES[NAMES.index("two_nodes_workers")] = np.log(PER_NODE / REFERENCE_WORKERS)
"""What two full nodes cost more, by the parameters."""
LESSONS = (*TEN, (6, 24, 8))


def jobs(two: float, device: str, count: int = 4) -> list[Profile]:
    """Jobs that have the anomaly at two nodes in common and nothing else."""
    return [
        job(
            Law(
                fixed_s=0.02 + 0.03 * number,
                sample_s=0.01 + 0.01 * number,
                inside_s=0.05 + 0.02 * number,
                across_s=0.3 + 0.15 * number,
                two=two,
            ),
            LESSONS,
            device=device,
            digest=f"{device}-{number}",
        )
        for number in range(count)
    ]


def learn(*profiles: Profile) -> Prior:
    return ScalingEstimator().learn(list(profiles))


def knowledge(prior: Prior) -> Knowledge:
    assert isinstance(prior.content, Knowledge)
    return prior.content


def two_nodes(known: Knowledge, device: str) -> tuple[float, float]:
    mean, sd = known.of(device)
    return float(mean @ TWO_NODES), float(np.hypot(*(sd * TWO_NODES)[TWO_NODES != 0.0]))


@pytest.mark.parametrize("two", [1.5, 2.5])
def test_what_two_nodes_cost_on_a_device_is_learned_from_its_jobs(two: float) -> None:
    corpus = [*jobs(two, "here"), *jobs(1.0, "there")]
    lessons = [(each.digest.partition("-")[0], points(each)) for each in corpus]
    for known in (learned(lessons), knowledge(learn(*corpus))):
        here, here_sd = two_nodes(known, "here")
        there, _ = two_nodes(known, "there")
        assert here == pytest.approx(np.log(two), abs=0.2)
        assert there == pytest.approx(0.0, abs=0.2)
        # Nobody knows of a third device what is known of these two.
        assert here_sd < two_nodes(known, "elsewhere")[1]


def test_a_new_job_is_predicted_better_where_its_device_is_known() -> None:
    law = Law(fixed_s=0.03, sample_s=0.04, inside_s=0.12, across_s=0.6, two=2.5)
    new = job(law, [(1, 1, 8), (1, 4, 8), (2, 8, 8)], device="here")
    asked = full([3, 4, 8])
    before = answered(new, rows(asked, device="here"))
    after = answered(new, rows(asked, device="here"), learn(*jobs(2.5, "here")))
    truth = np.array(law.step_s(asked))
    errors = [np.abs(np.log(answer.step_s / truth)).mean() for answer in (before, after)]
    assert errors[1] < 0.5 * errors[0]
    assert np.all(after.log_spread < before.log_spread)
    assert "CLUSTER_NOT_KNOWN" in notices(before)
    assert "CLUSTER_NOT_KNOWN" not in notices(after)


def test_the_same_jobs_in_any_order_are_one_prior() -> None:
    corpus = [*jobs(2.0, "here"), *jobs(1.2, "there", 2)]
    first, again = learn(*corpus), learn(*corpus[::-1])
    assert first.prior_id == again.prior_id
    assert first.prior_id.startswith("scaling-")
    assert first.prior_id != learn(*corpus[:-1]).prior_id
    new = job(device="here")
    asked = rows(full([3, 8]), device="here")
    assert answered(new, asked, first).step_s.tolist() == answered(new, asked, again).step_s.tolist()


def test_an_empty_corpus_leaves_the_shipped_prior() -> None:
    prior = learn()
    assert (prior.estimator, prior.sources) == ("scaling", load_default_prior().sources)
    assert knowledge(prior).document() == load_default_prior().document()
    assert learn(Profile(digest="empty")).prior_id == prior.prior_id
    asked = rows(full([3, 8]))
    assert answered(job(), asked, prior).step_s.tolist() == answered(job(), asked).step_s.tolist()


def test_the_estimator_learns_and_says_from_what() -> None:
    assert isinstance(ScalingEstimator(), LearningEstimator)
    assert learn(*jobs(2.0, "here")).sources[-1].startswith("4 jobs")


def test_devices_that_the_shipped_prior_knows_are_not_learned_again() -> None:
    assert learn(*jobs(2.0, "T4")).prior_id == learn().prior_id


def test_the_shipped_prior_names_its_sources_and_devices() -> None:
    known = load_default_prior()
    assert all(source.endswith(("all rows", "all rows: hidden exchange")) for source in known.sources)
    assert all(0.0 <= hidden <= jobs for hidden, jobs in known.overlapped.values())
    assert known.overlapped_share("T4") < known.overlapped_share("") < known.overlapped_share("H100")
    assert {"T4", "V100", "2080Ti", "A100"} == set(known.offset)
    assert {device for device, _, _ in known.scores} == set(known.offset)
    for values in (known.mean, known.job_sd, known.device_sd, *known.offset.values(), *known.offset_variance.values()):
        assert values.shape == (COUNT,)
        assert np.all(np.isfinite(values))
    assert min(known.job_sd.min(), known.device_sd.min()) > 0.0
    np.testing.assert_array_equal(known.mean[list(FIXED)], HYPER_MEAN[list(FIXED)])


@pytest.mark.parametrize("known", [load_default_prior(), HYPER], ids=["shipped", "hyper"])
def test_a_prior_is_the_same_after_a_round_trip_through_text(known: Knowledge) -> None:
    document = json.loads(json.dumps(known.document()))
    again = Knowledge.from_document(document)
    assert again.document() == known.document()
    for device in (*known.offset, "a device that nobody knows"):
        np.testing.assert_array_equal(again.of(device), known.of(device))
        assert again.multiplier(device, 0.9) == known.multiplier(device, 0.9)


def test_a_prior_of_other_parameters_is_not_read() -> None:
    document = load_default_prior().document()
    with pytest.raises(ValueError, match="parameters"):
        Knowledge.from_document({**document, "parameters": document["parameters"][::-1]})


def test_intervals_widen_with_the_asked_share_and_where_nothing_was_tried() -> None:
    known = load_default_prior()
    for device in known.offset:
        levels = [known.multiplier(device, level) for level in (0.5, 0.8, 0.9, 0.95, 1.0)]
        assert levels == sorted(levels)
        assert levels[0] > 0.0
    # A device without scores: those of all others, widened.
    assert known.multiplier("K80", 0.9) > np.median([known.multiplier(device, 0.9) for device in known.offset])
