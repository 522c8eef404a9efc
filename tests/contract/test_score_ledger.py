"""What every store's running scores keep to: every commit with a predecessor is scored once, whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from profile_batches import WORKLOAD, batch
from stores import Opener

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.scores import RunningScore, ScoreSums
from nodewise.profiles.ledger import MOST_ATTEMPTS, MOST_WAITING, UnscoredCommit
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import Evidence, ProfileStore, StoreOptions

LEASE_S = 1000.0
OVER_S = 0.0
"""A lease that is over as soon as it was given, as if its holder had died long ago."""
ONE = ScoreSums(observations=1, absolute_log_error=0.5, log_error=-0.5, intervals=1, covered=1)


def committed(store: ProfileStore, *, first: int = 1, last: int, profile_id: str = "job") -> None:
    """Commits of one observation each; those after the first of a profile can be scored."""
    for number in range(first, last + 1):
        store.append(profile_id, "s", [batch(number, float(number), commit=True)])


def claim(store: ProfileStore, lease_s: float = LEASE_S) -> UnscoredCommit:
    commit = store.scores.claim(lease_s)
    assert commit is not None
    return commit


def plain(scores: Sequence[RunningScore]) -> dict[tuple[str, str], ScoreSums]:
    return {(score.estimator, score.version): score.sums for score in scores}


def test_a_store_begins_without_scores(store: ProfileStore) -> None:
    assert store.scores.scores() == ()
    assert store.scores.waiting() == 0
    assert store.scores.claim(LEASE_S) is None


def test_commits_with_observations_and_a_revision_before_wait_in_order(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, 2.0, commit=True)])
    assert store.scores.waiting() == 0, "nothing predicted the first"
    store.append("job", "s", [batch(2, workload=WORKLOAD, commit=True), batch(3, commit=True)])
    assert store.scores.waiting() == 0, "nothing was observed"
    store.append("job", "s", [batch(4, 3.0), batch(5, 4.0, commit=True), batch(6, 5.0, commit=True), batch(7, 6.0)])
    assert store.scores.waiting() == 2
    uid = store.load("job").uid
    assert claim(store) == UnscoredCommit(key=1, profile_id="job", uid=uid, revision=3, first_number=3, last_number=4)
    assert claim(store) == UnscoredCommit(key=2, profile_id="job", uid=uid, revision=4, first_number=5, last_number=5)
    assert store.scores.claim(LEASE_S) is None


def test_sums_are_added_by_estimator_and_version(store: ProfileStore) -> None:
    committed(store, last=3)
    assert store.scores.settle(claim(store), {("a", "1"): ONE, ("b", "1"): ScoreSums()})
    (score,) = store.scores.scores()
    assert (score.estimator, score.version, score.sums) == ("a", "1", ONE)
    assert score.update_time_s > 1e9
    more = ScoreSums(observations=3, absolute_log_error=1.0, log_error=1.0, intervals=2, covered=0, unanswered=2)
    assert store.scores.settle(claim(store), {("a", "1"): more, ("a", "2"): ONE})
    assert plain(store.scores.scores()) == {
        ("a", "1"): ScoreSums(
            observations=4, absolute_log_error=1.5, log_error=0.5, intervals=3, covered=1, unanswered=2
        ),
        ("a", "2"): ONE,
    }
    assert store.scores.waiting() == 0


def test_what_nobody_answered_is_kept_without_errors(store: ProfileStore) -> None:
    committed(store, last=2)
    assert store.scores.settle(claim(store), {("a", "1"): ScoreSums(unanswered=4)})
    assert plain(store.scores.scores()) == {("a", "1"): ScoreSums(unanswered=4)}


def test_a_commit_is_settled_once(store: ProfileStore) -> None:
    committed(store, last=2)
    first, second = claim(store, OVER_S), claim(store, OVER_S)
    assert first == second, "the first scorer's lease was over"
    assert store.scores.settle(second, {("a", "1"): ONE})
    assert not store.scores.settle(first, {("a", "1"): ONE})
    assert not store.scores.settle(second, {("a", "1"): ONE})
    committed(store, first=3, last=3)
    assert not store.scores.settle(first, {("a", "1"): ONE}), "keys are not used twice"
    assert plain(store.scores.scores()) == {("a", "1"): ONE}
    assert store.scores.waiting() == 1


def test_a_batch_sent_again_waits_once(store: ProfileStore) -> None:
    committed(store, last=2)
    committed(store, last=2)
    assert store.scores.waiting() == 1
    store.scores.settle(claim(store), {})
    committed(store, last=2)
    assert store.scores.waiting() == 0


def test_a_refused_append_leaves_nothing_to_score(store: ProfileStore) -> None:
    committed(store, last=1)
    with pytest.raises(NodewiseError):
        store.append("job", "s", [batch(2, 2.0, commit=True), batch(4, 3.0)])
    assert store.scores.waiting() == 0


def test_a_released_commit_is_claimed_as_if_it_never_had_been(store: ProfileStore) -> None:
    committed(store, last=2)
    for _ in range(MOST_ATTEMPTS + 1):
        store.scores.release(claim(store))
    assert claim(store).revision == 2


def test_a_commit_that_ends_every_scorer_is_given_up(store: ProfileStore) -> None:
    committed(store, last=3)
    taken = [claim(store, OVER_S).revision for _ in range(2 * MOST_ATTEMPTS)]
    assert taken == [2] * MOST_ATTEMPTS + [3] * MOST_ATTEMPTS
    assert store.scores.claim(LEASE_S) is None
    assert store.scores.waiting() == 0


def test_what_was_retracted_before_it_was_scored_is_named(store: ProfileStore) -> None:
    committed(store, last=1)
    store.append("job", "s", [batch(2, 2.0, 3.0, 4.0, commit=True)])
    store.retract("job", "r", Evidence.of([1, 3]))
    assert claim(store).retracted == {3}


def test_a_deleted_profile_takes_what_waits_with_it_and_leaves_the_scores(store: ProfileStore) -> None:
    committed(store, last=4)
    store.scores.settle(claim(store), {("a", "1"): ONE})
    lost = claim(store)
    store.delete("job")
    assert store.scores.waiting() == 0
    committed(store, last=2)
    assert not store.scores.settle(lost, {("a", "1"): ONE})
    assert plain(store.scores.scores()) == {("a", "1"): ONE}
    assert claim(store).uid != lost.uid


def test_scoring_leaves_profiles_and_their_generation_alone(store: ProfileStore) -> None:
    committed(store, last=2)
    profile, generation = store.load("job"), store.generation()
    store.scores.settle(claim(store), {("a", "1"): ONE})
    assert store.generation() == generation
    assert store.load("job", profile) is profile


@pytest.mark.long
def test_no_more_commits_wait_than_can_be_scored_soon() -> None:
    store = open_store("memory:")
    committed(store, last=1 + MOST_WAITING + 512)
    assert MOST_WAITING <= store.scores.waiting() <= MOST_WAITING + 256
    assert claim(store).revision > 2, "the oldest are gone"
    store.close()


def test_commits_need_not_be_put_down() -> None:
    store = open_store("memory:", StoreOptions(scored=False))
    committed(store, last=3)
    assert store.scores.waiting() == 0
    store.close()


def test_a_closed_store_keeps_no_scores(store: ProfileStore) -> None:
    store.close()
    for call in (store.scores.scores, store.scores.waiting):
        with pytest.raises(NodewiseError) as caught:
            call()
        assert caught.value.reason == Reason.STORE_UNAVAILABLE


# --- several processes (each with a store of its own)


def test_scorers_share_the_work_and_count_every_commit_once(shared: Opener) -> None:
    stores = [shared(), shared(), shared()]
    committed(stores[0], last=61)
    together = threading.Barrier(len(stores))

    def score(store: ProfileStore, lease_s: float) -> int:
        together.wait()
        settled = 0
        while (commit := store.scores.claim(lease_s)) is not None:
            settled += store.scores.settle(commit, {("a", "1"): ONE})
        return settled

    with ThreadPoolExecutor(len(stores)) as pool:
        settled = [done.result() for done in [pool.submit(score, store, LEASE_S) for store in stores]]
    assert sum(settled) == 60
    assert plain(stores[0].scores.scores())["a", "1"].observations == 60
    for store in stores:
        store.close()


def test_a_scorer_that_was_killed_is_stood_in_for_when_its_lease_is_over(shared: Opener) -> None:
    killed = shared()
    committed(killed, last=4)
    done = claim(killed)
    killed.scores.settle(done, {("a", "1"): ONE})
    lost = claim(killed, OVER_S)
    killed.close()
    again = shared()
    assert plain(again.scores.scores()) == {("a", "1"): ONE}
    assert again.scores.waiting() == 2
    assert claim(again) == lost
    assert claim(again).revision == 4
    again.close()


def test_a_claim_is_held_against_other_processes_until_its_lease_is_over(shared: Opener) -> None:
    one, other = shared(), shared()
    committed(one, last=2)
    held = claim(one)
    assert other.scores.claim(LEASE_S) is None
    assert other.scores.waiting() == 1
    one.scores.release(held)
    assert claim(other) == held
    one.close()
    other.close()
