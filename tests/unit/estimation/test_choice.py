"""Who answers, from how far off each is expected to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    MOST_RATIO,
    OTHER_DEVICE_WEIGHT,
    Candidate,
    RowKinds,
    Shares,
    expected_log_errors,
    shares_of,
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


def kinds(device: str = "V100") -> RowKinds:
    return RowKinds(((SyncMode.ALLREDUCE, device),), None)


def error_of(each: Candidate, device: str = "V100") -> float:
    return float(each.expected_log_errors(kinds(device))[0])


def shared(known: Sequence[Candidate], *, mixed: bool = True) -> Shares:
    return shares_of(known, expected_log_errors(known, kinds()), mixed=mixed)


def reason(known: Sequence[Candidate]) -> str:
    return why(shared(known).mixture, known, expected_log_errors(known, kinds()), kinds())


def test_an_expected_error_is_a_mean_of_the_claim_by_what_trials_make_of_it() -> None:
    """Where 0.1 is stated, 0.08 is expected on average."""
    found = candidate("a", 0.04, 0.12, similar=(trial(0.16), trial(0.08, device="T4")))
    stated = 0.1 * np.sqrt(2.0 / np.pi)
    told = 0.2 * (0.04 + 0.12 + 0.16 + OTHER_DEVICE_WEIGHT * 0.08) / stated
    expected = (CLAIM_WEIGHT * 0.2 + told) / (CLAIM_WEIGHT + 3 + OTHER_DEVICE_WEIGHT)
    assert error_of(found) == pytest.approx(expected)


def test_errors_of_an_estimator_that_states_no_deviation_count_as_they_are() -> None:
    unstated = replace(trial(0.3), log_spreads=as_floats([0.0, 0.0]))
    found = Candidate(estimator="a", assessment=Assessment(expected_log_error=0.1), own=[unstated])
    assert error_of(found) == pytest.approx((CLAIM_WEIGHT * 0.1 + 0.3) / (CLAIM_WEIGHT + 1.0))


def test_no_trial_moves_a_claim_further_than_its_ratio() -> None:
    assert error_of(candidate("a", 3.0), "") == pytest.approx(0.2 * (1.0 + MOST_RATIO) / 2.0)


@pytest.mark.parametrize(("strength", "error"), [(0.0, 0.65), (0.5, 0.35), (1.0, 0.05)])
def test_without_a_claimed_error_the_strength_of_evidence_is_one(strength: float, error: float) -> None:
    found = Candidate(estimator="a", assessment=Assessment(strength=strength))
    assert error_of(found, "") == pytest.approx(error)


def test_claims_that_are_alike_are_mixed_and_weak_ones_are_not() -> None:
    found = shared([candidate("b", claim=0.21), candidate("a", claim=0.2), candidate("c", claim=0.4)])
    assert [share.estimator for share in found.mixture] == ["a", "b"]


def test_rows_that_the_best_refuses_are_answered_by_the_next() -> None:
    claims = as_floats([0.1, np.inf, 0.1])
    some = replace(candidate("some"), assessment=Assessment(expected_log_error=claims))
    known = [some, candidate("all", claim=0.5), candidate("worse", claim=0.9)]
    found = shared(known)
    assert [(share.estimator, share.expected_log_error) for share in found.mixture] == [("some", 0.1), ("all", 0.5)]
    assert found.weights.tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    assert shared(known, mixed=False).weights.tolist() == found.weights.tolist()


def test_a_row_that_all_refuse_has_no_weights() -> None:
    known = [replace(candidate("a"), assessment=Assessment(expected_log_error=as_floats([np.inf, 0.2])))]
    assert shared(known).weights.tolist() == [[0.0, 1.0]]


@given(
    claims=st.lists(st.lists(st.floats(0.01, 3.0), min_size=3, max_size=3), min_size=1, max_size=5),
    seed=st.integers(0, 9),
)
def test_what_a_row_weighs_does_not_depend_on_the_other_rows(claims: list[list[float]], seed: int) -> None:
    """Rows of several modes and devices, with trials, of rules and of others, asked together and one by one."""
    rng = np.random.default_rng(seed)
    all_kinds = ((SyncMode.ALLREDUCE, "V100"), (SyncMode.SYNC, "V100"), (SyncMode.ALLREDUCE, "T4"))
    index = rng.integers(0, 3, 3)

    def found(rows: Sequence[int]) -> dict[str, list[float]]:
        known = [
            replace(
                candidate(f"e{number}", 0.1 + 0.1 * number, similar=(trial(0.2, "T4"), trial(0.3, mode=SyncMode.SYNC))),
                assessment=Assessment(expected_log_error=as_floats([each[row] for row in rows])),
                quick=number % 2 == 0,
            )
            for number, each in enumerate(claims)
        ]
        asked = RowKinds(all_kinds, np.array([index[row] for row in rows]))
        shares = shares_of(known, expected_log_errors(known, asked))
        weights = dict(zip((share.estimator for share in shares.mixture), shares.weights.tolist(), strict=True))
        return {name: own for name, own in weights.items() if any(own)}

    together = found(range(3))
    for row in range(3):
        alone = {name: own[0] for name, own in found([row]).items()}
        assert alone == {name: own[row] for name, own in together.items() if own[row]}


def test_those_about_as_good_as_the_best_are_weighed_by_the_inverse_square() -> None:
    close, best, far = candidate("close", 0.12, 0.12), candidate("best", 0.1, 0.1), candidate("far", 0.9, 0.9)
    shares = shared([close, best, far]).mixture
    assert [share.estimator for share in shares] == ["best", "close"]
    assert sum(share.weight for share in shares) == pytest.approx(1.0)
    first, second = map(error_of, (best, close))
    assert shares[0].weight / shares[1].weight == pytest.approx((second / first) ** 2)


def test_of_rules_the_best_alone_takes_part() -> None:
    known = [candidate("model", claim=0.22), *(replace(candidate(name, claim=0.2), quick=True) for name in ("a", "b"))]
    assert [share.estimator for share in shared(known).mixture] == ["a", "model"]


def test_only_one_where_answers_cannot_be_mixed() -> None:
    assert len(shared([candidate("a", 0.2), candidate("b", 0.2)], mixed=False).mixture) == 1


def test_similar_jobs_have_the_same_mode() -> None:
    alike, other = trial(0.1), trial(0.2, mode=SyncMode.ASYNC)
    assert error_of(candidate("a", similar=(alike, other))) == error_of(candidate("a", similar=(alike,)))


def test_the_reason_names_everyone_and_their_errors() -> None:
    known = [candidate("b", 0.2, similar=(trial(0.1),)), candidate("a", 0.2), candidate("c", 2.0)]
    assert reason(known) == (
        "mixture of b 0.55 (expected error 32 %: 20 % in leave-one-out tests on 1 scale of the job, "
        "10 % in tests on 1 similar job), "
        "a 0.45 (expected error 35 %: 20 % in leave-one-out tests on 1 scale of the job); not c (50 %)"
    )
    assert reason(known[:1]) == "the only one that can answer"
    many = [candidate("a", 0.1), *(candidate(f"z{number}", 3.0) for number in range(6))]
    assert reason(many).endswith("and 2 more")


@given(errors=st.lists(st.floats(0.01, 3.0), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_whoever_takes_part_is_about_as_good_and_order_is_irrelevant(errors: list[float], seed: int) -> None:
    known = [candidate(f"e{number}", error, error) for number, error in enumerate(errors)]
    shares = shared(known).mixture
    assert sum(share.weight for share in shares) == pytest.approx(1.0)
    best = shares[0].expected_log_error
    assert all(best <= share.expected_log_error <= ABOUT_AS_GOOD * best for share in shares)
    assert all(one.weight >= other.weight for one, other in pairwise(shares))
    order = np.random.default_rng(seed).permutation(len(known)).tolist()
    assert shared([known[row] for row in order]).mixture == shares
