"""Which revision answers, who waits for what, and what is begun for those who do not wait."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from estimators import Fake, registry_of
from profile_batches import batch
from questions import Asked
from serving import inline, stored, workers

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import ProfileStore
from nodewise.rpc.errors import status_of
from nodewise_protos.v1 import options_pb2, profile_pb2

CACHED_ONLY = options_pb2.FRESHNESS_CACHED_ONLY
ALLOW_STALE = options_pb2.FRESHNESS_ALLOW_STALE
ROWS = workers(2, 4)


@pytest.fixture
def store() -> ProfileStore:
    return open_store("memory:")


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def asked(store: ProfileStore, fake: Fake) -> Asked:
    return Asked(registry_of({"fake": fake}), store=store)


def commit(store: ProfileStore, number: int, *rates: float) -> None:
    """A revision of the profile ``job``, of so many measured runs."""
    store.append("job", "session", [batch(number, *rates, commit=True)])


def options(freshness: Any, estimator: str = "fake") -> options_pb2.PredictOptions:
    return options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator, freshness=freshness))


def at(**revision: Any) -> profile_pb2.ProfileSource:
    return profile_pb2.ProfileSource(profile_id="job", **revision)


def refused(asked: Asked, reason: Reason, **request: Any) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        asked.predict(configurations=ROWS, **request)
    assert caught.value.reason == reason
    return caught.value


def test_a_miss_starts_the_fit_that_a_later_call_finds(asked: Asked, fake: Fake) -> None:
    for _ in range(2):
        error = refused(asked, Reason.MODEL_NOT_CACHED, profile=inline(), options=options(CACHED_ONLY))
        assert error.metadata["estimator"] == "fake"
    assert (fake.fitted, len(asked.begun)) == (0, 1)  # asked twice, begun once
    asked.let_go()
    answer = asked.predict(configurations=ROWS, profile=inline(), options=options(CACHED_ONLY))
    assert (answer.basis.estimator, answer.basis.stale, fake.fitted) == ("fake", False, 1)


def test_a_fit_that_failed_may_be_begun_again(store: ProfileStore) -> None:
    def fit(*_: object) -> Any:
        raise NodewiseError(Reason.EVIDENCE_MISSING, "not yet")

    asked = Asked(registry_of({"fake": Fake(fit=fit)}), store=store)
    for _ in range(2):
        refused(asked, Reason.MODEL_NOT_CACHED, profile=inline(), options=options(CACHED_ONLY))
        assert len(asked.begun) == 1
        with pytest.raises(NodewiseError, match="not yet"):
            asked.let_go()


def test_stale_answers_come_of_the_newest_revision_that_is_fitted(
    asked: Asked, store: ProfileStore, fake: Fake
) -> None:
    commit(store, 1, 1.0)
    first = asked.predict(configurations=ROWS, profile=stored("job"), options=options(ALLOW_STALE))
    assert (first.basis.profile_revision, first.basis.stale) == (1, False)  # nothing fitted: it waits
    commit(store, 2, 2.0)
    stale = asked.predict(configurations=ROWS, profile=stored("job"), options=options(ALLOW_STALE))
    assert (stale.basis.profile_revision, stale.basis.stale) == (1, True)
    assert (stale.basis.digest, stale.predictions) == (first.basis.digest, first.predictions)
    assert (fake.fitted, len(asked.begun)) == (1, 1)
    asked.let_go()
    fresh = asked.predict(configurations=ROWS, profile=stored("job"), options=options(ALLOW_STALE))
    assert (fresh.basis.profile_revision, fresh.basis.stale, fake.fitted) == (2, False, 2)
    assert fresh.basis.digest != first.basis.digest


def test_nobody_else_gets_a_stale_answer(asked: Asked, store: ProfileStore) -> None:
    commit(store, 1, 1.0)
    asked.predict(configurations=ROWS, profile=stored("job"), options=options(ALLOW_STALE))
    commit(store, 2, 2.0)
    assert asked.predict(configurations=ROWS, profile=stored("job"), options=options(ALLOW_STALE)).basis.stale
    fresh = asked.predict(configurations=ROWS, profile=stored("job"), options=options(0))
    assert (fresh.basis.profile_revision, fresh.basis.stale) == (2, False)


def test_an_exact_revision_answers_as_it_did_then(asked: Asked, store: ProfileStore) -> None:
    commit(store, 1, 1.0)
    then = asked.predict(configurations=ROWS, profile=stored("job"))
    commit(store, 2, 2.0)
    again = asked.predict(configurations=ROWS, profile=at(revision=1))
    assert again.basis == then.basis
    assert asked.predict(configurations=ROWS, profile=at(revision=2)).basis.profile_revision == 2
    error = refused(asked, Reason.REVISION_NOT_FOUND, profile=at(revision=3))
    assert "3" in error.message
    both = refused(asked, Reason.INVALID_FIELD, profile=at(revision=1, minimum_revision=1))
    assert both.violations[0].field == "profile.minimum_revision"


def test_a_minimum_revision_is_waited_for(asked: Asked, store: ProfileStore) -> None:
    commit(store, 1, 1.0)
    later = threading.Timer(0.2, commit, (store, 2, 2.0))
    later.start()
    try:
        answer = asked.predict(configurations=ROWS, profile=at(minimum_revision=2), remaining_s=60.0)
    finally:
        later.join()
    assert answer.basis.profile_revision == 2


@pytest.mark.parametrize(("freshness", "remaining_s"), [(0, 0.2), (CACHED_ONLY, 60.0), (ALLOW_STALE, 60.0)])
def test_a_revision_that_does_not_come_is_to_be_asked_for_again(
    asked: Asked, store: ProfileStore, freshness: int, remaining_s: float
) -> None:
    commit(store, 1, 1.0)
    request = {"profile": at(minimum_revision=2), "options": options(freshness), "remaining_s": remaining_s}
    error = refused(asked, Reason.REVISION_NOT_REACHED, **request)
    assert error.metadata == {"profile_id": "job", "revision": "1", "minimum_revision": "2"}
    status = status_of(error)
    assert status.code == 14
    kinds = [detail.type_url.rpartition(".")[2] for detail in status.details]
    assert kinds == ["ErrorInfo", "RetryInfo"]


def test_models_of_a_file_answer_as_those_of_memory(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path / 'store.db'}")
    asked = Asked(registry_of({"fake": Fake()}), store=store)
    commit(store, 1, 1.0)
    commit(store, 2, 2.0)
    assert asked.predict(configurations=ROWS, profile=at(revision=1)).basis.profile_revision == 1
    store.close()
