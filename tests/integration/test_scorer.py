"""One scorer on a store, step by step: estimators that fail or never return, jobs that vanish, and its end."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import structlog
from misbehaving import Constant, answered, record
from patience import PATIENCE_S, wait_until

from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import Observations
from nodewise.domain.scores import ScoreSums
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.profiles.batches import Batch
from nodewise.profiles.ledger import MOST_ATTEMPTS, UnscoredCommit
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import Evidence, ProfileStore
from nodewise.runtime.scoring import Scoring

"""Longer than anything here takes; nothing waits so long."""
OVER_S = 0.0
"""A lease that is over at once."""
ROWS = 2
ALL = ScoreSums(
    observations=ROWS,
    # One step per second is predicted; 0.5 and 2.0 were measured, outside exp(+-1.645 * 0.1).
    absolute_log_error=2.0 * math.log(2.0),
    log_error=0.0,
    intervals=ROWS,
    covered=0,
)
NONE = ScoreSums(unanswered=ROWS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ProfileStore]:
    opened = open_store(f"sqlite:{tmp_path / 'store.db'}")
    yield opened
    opened.close()


def observed(store: ProfileStore, job: str = "job", commits: int = 2) -> None:
    """Commits of ROWS observations each; those after the first wait to be scored."""
    for number in range(1, commits + 1):
        where = Configurations.of(
            ROWS, nodes=[1, 2], workers=[1, 2], sync_mode=SyncMode.ALLREDUCE, batch_per_worker=8, device="T4"
        )
        runs = Observations.of(where, np.array([0.5, 2.0]))
        store.append(job, "s", [Batch(sequence_number=number, observations=runs, commit=True)])


def scoring(store: ProfileStore, estimators: dict[str, Any], **stated: float) -> Scoring:
    nothing: Any = MappingProxyType({})
    loaded = {name: LoadedPlugin(record(name, each), "tests 1.0", "inline") for name, each in estimators.items()}
    registry = Registry(
        estimators=MappingProxyType(loaded), policies=nothing, trace_readers=nothing, diagnosers=nothing
    )
    return Scoring(Answers(registry), store, **stated)


def sums(store: ProfileStore) -> dict[str, ScoreSums]:
    return {score.estimator: score.sums for score in store.scores.scores()}


def raising(error: BaseException) -> Callable[[Any], Any]:
    def predict(_: Any) -> Any:
        raise error

    return predict


def test_every_estimator_is_scored_and_so_is_auto(store: ProfileStore) -> None:
    observed(store, commits=3)
    scorer = scoring(store, {"plain": Constant()})
    assert scorer.score_one()
    assert store.scores.waiting() == 1
    found = sums(store)
    assert found.keys() == {"auto", "plain"}
    for each in found.values():
        assert each.absolute_log_error == pytest.approx(ALL.absolute_log_error)
        assert (each.observations, each.intervals, each.covered) == (ALL.observations, ALL.intervals, ALL.covered)
    assert scorer.score_one()
    assert not scorer.score_one()
    assert sums(store)["plain"].observations == 2 * ROWS


@pytest.fixture
def every_level() -> Iterator[None]:
    """Events of every level are captured, whatever level a server of an earlier test has set."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET))
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize("error", [RuntimeError("a fault"), SystemExit(3), MemoryError()])
def test_an_estimator_that_fails_costs_its_own_score_alone(
    store: ProfileStore, error: BaseException, logs: list[Any]
) -> None:
    observed(store)
    assert scoring(store, {"plain": Constant(), "broken": Constant(predict=raising(error))}).score_one()
    assert {"scoring_skipped", "ESTIMATOR_FAILED"} <= {line.get(key) for line in logs for key in ("event", "reason")}
    found = sums(store)
    assert found["broken"] == NONE
    assert found["plain"].observations == ROWS


def test_an_answer_that_cannot_be_true_is_none(store: ProfileStore) -> None:
    observed(store)
    liar = Constant(predict=lambda asked: answered(asked, np.full(len(asked), np.nan)))
    assert scoring(store, {"plain": Constant(), "liar": liar}).score_one()
    assert sums(store)["liar"] == NONE


def test_a_scorer_that_stops_gives_its_commit_back_untouched(store: ProfileStore) -> None:
    observed(store)
    held, reached = threading.Event(), threading.Event()

    def hold(asked: Configurations) -> Any:
        reached.set()
        held.wait()
        return answered(asked, np.ones(len(asked)))

    scorer = scoring(store, {"slow": Constant(predict=hold)})
    scorer.start()
    assert reached.wait(PATIENCE_S)
    scorer.stop()
    waiting = threading.Thread(target=scorer.join)
    waiting.start()
    assert waiting.is_alive(), "an estimator of its is not back"
    assert store.scores.waiting()
    held.set()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()
    assert sums(store) == {}
    for _ in range(MOST_ATTEMPTS):  # it counts as never claimed
        claim_task = store.scores.claim(OVER_S)
        assert claim_task is not None
    assert claim_task.revision == 2


def test_a_scorer_that_never_began_can_be_stopped(store: ProfileStore) -> None:
    scorer = scoring(store, {})
    scorer.stop()
    scorer.join()


def test_commits_are_scored_as_they_come(store: ProfileStore) -> None:
    observed(store, commits=1)
    scorer = scoring(store, {"plain": Constant()}, look_s=PATIENCE_S)
    scorer.start()
    observed(store, "other", commits=2)
    scorer.notify()
    wait_until(lambda: not store.scores.waiting())
    assert sums(store)["plain"].observations == ROWS
    scorer.stop()
    scorer.join()


@pytest.mark.parametrize("namesake", [False, True])
def test_a_job_that_vanishes_while_it_is_scored_scores_nothing(
    store: ProfileStore, monkeypatch: pytest.MonkeyPatch, namesake: bool
) -> None:
    observed(store)
    claim = store.scores.claim

    def claim_and_delete(lease_s: float) -> UnscoredCommit | None:
        claim_task = claim(lease_s)
        store.delete("job")
        if namesake:
            observed(store)
        return claim_task

    monkeypatch.setattr(store.scores, "claim", claim_and_delete)
    assert scoring(store, {"plain": Constant()}).score_one()
    assert sums(store) == {}
    assert store.scores.waiting() == int(namesake), "another job under its name has its own turn"


def test_what_was_retracted_is_not_scored(store: ProfileStore) -> None:
    observed(store)
    store.retract("job", "r", Evidence.of([3]))
    assert scoring(store, {"plain": Constant()}).score_one()
    found = sums(store)["plain"]
    assert (found.observations, found.log_error) == (1, pytest.approx(-math.log(2.0)))


def test_a_job_of_which_only_facts_were_known_is_scored_by_who_can_answer(store: ProfileStore) -> None:
    """The revision before has no observations; the configurations say all that there is to know."""
    store.append("job", "s", [Batch(sequence_number=1, observations=_one_run(0.0), commit=True)])
    store.append("job", "s", [Batch(sequence_number=2, observations=_one_run(2.0), commit=True)])
    assert scoring(store, {"plain": Constant()}).score_one()
    assert sums(store)["plain"].observations == 1


def _one_run(steps_per_s: float) -> Observations:
    where = Configurations.of(1, nodes=1, workers=1, sync_mode=SyncMode.ALLREDUCE, batch_per_worker=8, device="T4")
    return Observations.of(where, np.array([steps_per_s]))
