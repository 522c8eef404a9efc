"""Which model answers over a socket: fits that misses begin, stale answers, exact revisions, answers that hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
from estimators import Fake, predictions_of, registry_of
from patience import PATIENCE_S
from serving import Failure, Stubs, failure_of, inline, observed, one_worker_phases, stored, workers

from nodewise.plugin import Configurations
from nodewise.plugin import Profile as PluginProfile
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import options_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = pytest.mark.wheel

"""Longer than anything here takes; nothing waits so long."""
CACHED_ONLY = options_pb2.FRESHNESS_CACHED_ONLY
ALLOW_STALE = options_pb2.FRESHNESS_ALLOW_STALE


class Gated(Fake):
    """Predicts as many seconds a step as runs were measured; each fit waits at the gate."""

    def __init__(self) -> None:
        super().__init__(fit=self._fitted)
        self.gate, self.waiting = threading.Event(), threading.Semaphore(0)
        self.gate.set()
        self.predicted = 0

    def _fitted(self, profile: PluginProfile, _: object) -> Any:
        self.waiting.release()
        assert self.gate.wait(PATIENCE_S)
        runs = len(profile.observations or ())

        def predict(configurations: Configurations, options: object) -> Any:
            self.predicted += 1
            return predictions_of([1.0 + runs] * len(configurations))

        return Fake(predict)


@pytest.fixture
def gated() -> Iterator[Gated]:
    estimator = Gated()
    yield estimator
    estimator.gate.set()


@pytest.fixture
def stubs(gated: Gated) -> Iterator[Stubs]:
    settings = Settings(store="memory:", grace_s=1.0, scoring=False)
    registry = registry_of({"gated": gated}, mode="thread")
    with EmbeddedServer(settings, registry) as server, Stubs(server.target) as found:
        yield found


def append(stubs: Stubs, runs: int = 1, profile_id: str = "job") -> int:
    """Commit so many measured runs; returns the revision."""
    content = profile_pb2.ProfileContent(observations=observed([1] * runs, [1.0] * runs))
    request = profiles.AppendProfileRequest(profile_id=profile_id, request_id=uuid4().hex, content=content)
    return int(stubs.profile.AppendProfile(request, timeout=PATIENCE_S).profile.revision)


def question(profile: profile_pb2.ProfileSource | None = None, **fields: Any) -> pb.PredictRequest:
    freshness = fields.pop("freshness", options_pb2.FRESHNESS_UNSPECIFIED)
    model = options_pb2.ModelOptions(estimator=fields.pop("estimator", "gated"), freshness=freshness)
    return pb.PredictRequest(
        profile=profile or stored("job"),
        configurations=workers(1, 2),
        options=options_pb2.PredictOptions(model=model),
        **fields,
    )


def predict(stubs: Stubs, *stated: Any, **fields: Any) -> pb.PredictResponse:
    reply: pb.PredictResponse = stubs.prediction.Predict(question(*stated, **fields), timeout=PATIENCE_S)
    return reply


def refused(stubs: Stubs, *stated: Any, timeout: float = PATIENCE_S, **fields: Any) -> Failure:
    return failure_of(stubs.prediction.Predict, question(*stated, **fields), timeout=timeout)


def at(**revision: int) -> profile_pb2.ProfileSource:
    return profile_pb2.ProfileSource(profile_id="job", **revision)


# --- freshness


def test_a_miss_begins_the_fit_and_nobody_waits_for_it(stubs: Stubs, gated: Gated) -> None:
    gated.gate.clear()
    about = inline(one_worker_phases(compute_s=0.77))
    for _ in range(2):
        failure = refused(stubs, about, freshness=CACHED_ONLY)
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "MODEL_NOT_CACHED")
    assert gated.waiting.acquire(timeout=PATIENCE_S), "no fit was begun"
    gated.gate.set()
    waited = predict(stubs, about)
    answer = predict(stubs, about, freshness=CACHED_ONLY)
    assert answer.predictions == waited.predictions
    assert not answer.basis.stale
    assert gated.fitted == 1, "the fit that the miss began is the one that answers"


def test_stale_answers_come_at_once_while_the_newest_is_fitted(stubs: Stubs, gated: Gated) -> None:
    append(stubs)
    first = predict(stubs, freshness=ALLOW_STALE)
    assert (first.basis.profile_revision, first.basis.stale) == (1, False), "nothing was fitted: it waits"
    gated.gate.clear()
    append(stubs)
    stale = predict(stubs, freshness=ALLOW_STALE)
    assert (stale.basis.profile_revision, stale.basis.stale) == (1, True)
    assert (stale.predictions, stale.basis.digest) == (first.predictions, first.basis.digest)
    missed = refused(stubs, freshness=CACHED_ONLY)
    assert missed.reason == "MODEL_NOT_CACHED", "the older model is no answer to who did not allow it"
    gated.gate.set()
    fresh = predict(stubs)
    assert (fresh.basis.profile_revision, fresh.basis.stale) == (2, False)
    assert list(fresh.predictions.step_seconds) == [3.0, 3.0]
    again = predict(stubs, freshness=ALLOW_STALE)
    assert (again.basis, again.predictions) == (fresh.basis, fresh.predictions)


# --- revisions


def test_an_exact_revision_answers_as_it_did_then(stubs: Stubs) -> None:
    append(stubs)
    then = predict(stubs)
    append(stubs, 2)
    stubs.profile.RetractEvidence(
        profiles.RetractEvidenceRequest(profile_id="job", request_id="r", observation_numbers=[1])
    )
    now = predict(stubs)
    assert now.basis.profile_revision == 3
    exact = predict(stubs, at(revision=1))
    assert (exact.predictions, exact.recommendation) == (then.predictions, then.recommendation)
    assert (exact.basis.profile_revision, exact.basis.digest) == (1, then.basis.digest)
    assert predict(stubs, at(revision=3)).basis == now.basis
    never = refused(stubs, at(revision=4))
    assert (never.code, never.reason) == (grpc.StatusCode.NOT_FOUND, "REVISION_NOT_FOUND")
    assert (never.metadata["profileId"], never.metadata["revision"]) == ("job", "4")
    both = refused(stubs, at(revision=1, minimum_revision=1))
    assert list(both.fields) == ["profile.minimum_revision"]
    (one, other) = stubs.prediction.BatchPredict(
        pb.BatchPredictRequest(
            jobs=[pb.BatchJob(profile=at(revision=1)), pb.BatchJob(profile=at(revision=9))], configurations=workers(1)
        )
    ).outcomes
    assert (one.HasField("problem"), other.problem.reason) == (False, "REVISION_NOT_FOUND")


def test_a_stored_revision_outlives_the_server(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:{tmp_path / 'store.db'}", grace_s=1.0, scoring=False)
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:
        content = one_worker_phases()
        stubs.profile.AppendProfile(
            profiles.AppendProfileRequest(profile_id="job", request_id="phases", content=content)
        )
        then = predict(stubs, estimator="queueing")
        append(stubs)
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:
        exact = predict(stubs, at(revision=1), estimator="queueing")
        assert (exact.predictions, exact.basis.digest) == (then.predictions, then.basis.digest)
        unchanged = predict(stubs, at(revision=1), estimator="queueing", if_none_match=then.basis.digest)
        assert unchanged.unchanged, "another server with the same plugins and settings gives the same answer"


def test_a_revision_to_come_is_waited_for(stubs: Stubs) -> None:
    append(stubs)
    coming = stubs.prediction.Predict.future(question(at(minimum_revision=2)), timeout=PATIENCE_S)
    assert not coming.done()
    append(stubs)
    assert coming.result().basis.profile_revision == 2


@pytest.mark.parametrize(("freshness", "timeout"), [(0, 0.5), (CACHED_ONLY, PATIENCE_S), (ALLOW_STALE, PATIENCE_S)])
def test_a_revision_that_does_not_come_is_to_be_asked_for_again(stubs: Stubs, freshness: int, timeout: float) -> None:
    append(stubs)
    failure = refused(stubs, at(minimum_revision=2), freshness=freshness, timeout=timeout)
    if freshness:
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "REVISION_NOT_REACHED")
        assert any("RetryInfo" in detail.type_url for detail in failure.status.details)
        assert (failure.metadata["revision"], failure.metadata["minimumRevision"]) == ("1", "2")
    else:
        # The caller's own deadline may end the call before the service's word of it arrives.
        assert failure.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


# --- answers that still hold


def test_an_answer_that_still_holds_is_not_computed_again(stubs: Stubs, gated: Gated) -> None:
    append(stubs)
    first = predict(stubs)
    assert first.basis.digest
    asked = gated.predicted
    again = predict(stubs, if_none_match=first.basis.digest)
    assert (again.unchanged, again.basis.digest) == (True, first.basis.digest)
    assert not again.HasField("predictions")
    assert not again.HasField("recommendation")
    assert gated.predicted == asked, "unchanged costs no prediction"
    other = predict(stubs, if_none_match="of another answer")
    assert (other.unchanged, other.predictions) == (False, first.predictions)
    append(stubs)
    moved = predict(stubs, if_none_match=first.basis.digest)
    assert (moved.unchanged, moved.basis.profile_revision) == (False, 2)
    assert moved.basis.digest != first.basis.digest
    assert moved.predictions.rows_count == 2


def test_labels_are_no_part_of_what_an_answer_rests_on(stubs: Stubs) -> None:
    append(stubs)
    first = predict(stubs)
    stubs.profile.AppendProfile(
        profiles.AppendProfileRequest(profile_id="job", request_id="label", labels={"team": "a"})
    )
    assert predict(stubs, if_none_match=first.basis.digest).unchanged


def _stream(stubs: Stubs, batch: pb.BatchPredictRequest) -> pb.BatchPredictResponse:
    (reply,) = stubs.prediction.StreamPredict(iter([pb.StreamPredictRequest(question_id="b", batch=batch)]))
    found: pb.BatchPredictResponse = reply.batch
    return found


def _call(stubs: Stubs, batch: pb.BatchPredictRequest) -> pb.BatchPredictResponse:
    found: pb.BatchPredictResponse = stubs.prediction.BatchPredict(batch)
    return found


@pytest.mark.parametrize("ask", [_call, _stream])
def test_jobs_of_a_batch_that_still_hold_have_no_rows(
    stubs: Stubs, ask: Callable[[Stubs, pb.BatchPredictRequest], pb.BatchPredictResponse]
) -> None:
    names = ("one", "two", "three")
    for name in names:
        append(stubs, profile_id=name)
    batch = pb.BatchPredictRequest(
        jobs=[pb.BatchJob(profile=stored(name)) for name in names],
        configurations=workers(1, 2),
        options=question().options,
    )
    first = ask(stubs, batch)
    digests = [first.bases[outcome.basis_index].digest for outcome in first.outcomes]
    for job, digest in zip(batch.jobs, digests, strict=True):
        job.if_none_match = digest
    append(stubs, profile_id="two")
    again = ask(stubs, batch)
    assert [outcome.unchanged for outcome in again.outcomes] == [True, False, True]
    assert list(again.row_offsets) == [0, 0, 2, 2]
    assert again.predictions.rows_count == 2
    assert list(again.predictions.step_seconds) == [3.0, 3.0]
    assert [again.bases[outcome.basis_index].digest == digest for outcome, digest in zip(again.outcomes, digests)] == [
        True,
        False,
        True,
    ]
    assert [outcome.HasField("recommendation") for outcome in again.outcomes] == [False, True, False]
