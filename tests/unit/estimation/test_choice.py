"""Who answers, from how far off each is expected to be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats
from nodewise.domain.configurations import SyncMode
from nodewise.estimation.choice.shares import (
    ABOUT_AS_GOOD,
    CLAIM_WEIGHT,
    OTHER_DEVICE_WEIGHT,
    Candidate,
    shares_of,
    similar_to,
    why,
)
from nodewise.estimation.lessons.trials import Trial
from nodewise.plugin import Assessment


def trial(error: float, device: str = "V100", mode: SyncMode = SyncMode.ALLREDUCE) -> Trial:
    return Trial(
        sync_mode=mode,
        device=device,
        log_errors=as_floats([error, -error]),
        log_spreads=as_floats([0.1, 0.1]),
        distances=as_floats([1.0, 1.0]),
    )


def candidate(name: str, *own: float, claim: float = 0.2, similar: tuple[Trial, ...] = ()) -> Candidate:
    assessment = Assessment(strength=0.5, expected_log_error=claim)
    return Candidate(estimator=name, assessment=assessment, own=[trial(each) for each in own], similar=similar)


def test_an_expected_error_is_a_mean_of_claim_own_runs_and_similar_jobs() -> None:
    found = candidate("a", 0.1, 0.3, similar=(trial(0.4), trial(0.8, device="T4")))
    expected = (CLAIM_WEIGHT * 0.2 + 0.1 + 0.3 + 0.4 + OTHER_DEVICE_WEIGHT * 0.8) / (
        CLAIM_WEIGHT + 3 + OTHER_DEVICE_WEIGHT
    )
    assert found.expected_log_error(["V100"]) == pytest.approx(expected)


@pytest.mark.parametrize(("strength", "error"), [(0.0, 0.65), (0.5, 0.35), (1.0, 0.05)])
def test_without_a_claimed_error_the_strength_of_evidence_is_one(strength: float, error: float) -> None:
    found = Candidate(estimator="a", assessment=Assessment(strength=strength))
    assert found.expected_log_error([""]) == pytest.approx(error)


def test_claims_alone_are_not_mixed() -> None:
    (share,) = shares_of([candidate("b", claim=0.21), candidate("a", claim=0.2)], ["V100"])
    assert (share.estimator, share.weight) == ("a", 1.0)


def test_where_nothing_was_tried_those_that_agree_outvote_the_strongest_claim() -> None:
    shares = shares_of([candidate("bold", claim=0.1), candidate("a", claim=0.3), candidate("b", claim=0.3)], ["V100"])
    assert {share.estimator: share.weight for share in shares} == dict.fromkeys(
        ["bold", "a", "b"], pytest.approx(1 / 3)
    )
    (share,) = shares_of([candidate("bold", claim=0.1), candidate("a", claim=0.5), candidate("b", claim=0.5)], ["V100"])
    assert share.estimator == "bold", "who claims less than a fourth as much has no vote"


def test_those_about_as_good_as_the_best_are_weighed_by_the_inverse_square() -> None:
    close, best, far = candidate("close", 0.3, 0.3), candidate("best", 0.2, 0.2), candidate("far", 0.9, 0.9)
    shares = shares_of([close, best, far], ["V100"])
    assert [share.estimator for share in shares] == ["best", "close"]
    assert sum(share.weight for share in shares) == pytest.approx(1.0)
    assert shares[0].weight / shares[1].weight == pytest.approx((0.8 / 0.6) ** 2)


def test_only_one_where_answers_cannot_be_mixed() -> None:
    assert len(shares_of([candidate("a", 0.2), candidate("b", 0.2)], ["V100"], mixed=False)) == 1


def test_similar_jobs_have_the_same_mode() -> None:
    trials = (trial(0.1), trial(0.2, mode=SyncMode.ASYNC))
    assert similar_to(trials, [SyncMode.ASYNC]) == (trials[1],)


def test_the_reason_names_everyone_and_their_errors() -> None:
    known = [candidate("b", 0.2, similar=(trial(0.1),)), candidate("a", 0.2), candidate("c", 2.0)]
    text = why(shares_of(known, ["V100"]), known, ["V100"])
    assert text == (
        "mixture of b 0.59 (expected error 17%: 20% on 1 scale of the job left out in turn, 10% on 1 similar job), "
        "a 0.41 (expected error 20%: 20% on 1 scale of the job left out in turn); not c (110%)"
    )
    assert why(shares_of(known[:1], ["V100"]), known[:1], ["V100"]) == "the only one that can answer"
    many = [candidate("a", 0.1), *(candidate(f"z{number}", 3.0) for number in range(6))]
    assert why(shares_of(many, [""]), many, [""]).endswith("and 2 more")


@given(errors=st.lists(st.floats(0.01, 3.0), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_whoever_takes_part_is_about_as_good_and_order_is_irrelevant(errors: list[float], seed: int) -> None:
    known = [candidate(f"e{number}", error, error) for number, error in enumerate(errors)]
    shares = shares_of(known, ["V100"])
    assert sum(share.weight for share in shares) == pytest.approx(1.0)
    best = shares[0].expected_log_error
    assert all(best <= share.expected_log_error <= ABOUT_AS_GOOD * best for share in shares)
    assert all(one.weight >= other.weight for one, other in pairwise(shares))
    order = np.random.default_rng(seed).permutation(len(known)).tolist()
    assert shares_of([known[row] for row in order], ["V100"]) == shares
