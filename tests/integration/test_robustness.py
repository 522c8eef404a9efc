"""What misbehaves costs its own call and nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
from misbehaving import Constant, answered, record
from patience import PATIENCE_S
from serving import Stubs, failure_of, inline, registry_with, workers

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.plugin import Configurations, Notice
from nodewise.ports.limits import Limits
from nodewise.runtime import application
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import configuration_pb2 as configurations
from nodewise_protos.v1 import options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = pytest.mark.wheel

SECRET = "a secret of the server"


def by(estimator: str) -> options_pb2.PredictOptions:
    """Options that name an estimator."""
    return options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator))


def asked(estimator: str, *counts: int) -> predictions.PredictRequest:
    chosen = workers(*(counts or (1,)))
    return predictions.PredictRequest(profile=inline(), configurations=chosen, options=by(estimator))


def test_plugins_that_never_return_keep_nothing_else_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "THREADS_END_S", 0.05)
    released = threading.Event()
    hangs = record("hangs", Constant(fit=lambda: released.wait(PATIENCE_S)))
    settings = Settings(store="memory:", threads=2, grace_s=0.1)
    try:
        with EmbeddedServer(settings, registry_with((hangs,), mode="thread")) as server, Stubs(server.target) as stubs:
            for _ in range(4):
                failure = failure_of(stubs.prediction.Predict, asked("hangs"), timeout=0.2)
                assert failure.code is grpc.StatusCode.DEADLINE_EXCEEDED
            assert not stubs.profile.ListProfiles(profiles.ListProfilesRequest(), timeout=PATIENCE_S).profiles
            listed = stubs.prediction.ListEstimators(predictions.ListEstimatorsRequest(), timeout=PATIENCE_S)
            assert "hangs" in {estimator.plugin.name for estimator in listed.estimators}
        # Leaving the context stopped the server although the plugin still holds its threads.
    finally:
        released.set()


def _odd_error() -> None:
    raise NodewiseError("NO_REASON", SECRET, {"rows": 3})  # type: ignore[arg-type, dict-item]


def _far_notice(rows: Configurations) -> Any:
    return replace(answered(rows, np.ones(len(rows))), notices=(Notice("ODD", "odd", (2**40,)),))


def _odd_names(rows: Configurations) -> Any:
    return replace(answered(rows, np.ones(len(rows))), bottlenecks=(3,))


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    odd = (
        record("odd-error", Constant(fit=_odd_error)),
        record("far-notice", Constant(predict=_far_notice)),
        record("odd-names", Constant(predict=_odd_names)),
    )
    settings = Settings(store="memory:", limits=Limits(rows_per_call=5_000, reply_bytes=16_384))
    with EmbeddedServer(settings, registry_with(odd)) as server, Stubs(server.target) as found:
        yield found


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        ("odd-error", Reason.ESTIMATOR_FAILED),
        ("far-notice", Reason.ESTIMATOR_INVALID_RESULT),
        ("odd-names", Reason.ESTIMATOR_INVALID_RESULT),
    ],
)
def test_what_a_plugin_says_is_checked_before_it_is_passed_on(stubs: Stubs, estimator: str, reason: Reason) -> None:
    failure = failure_of(stubs.prediction.Predict, asked(estimator))
    assert failure.reason == reason
    assert SECRET not in str(failure.status)
    jobs = [predictions.BatchJob(profile=inline())]
    request = predictions.BatchPredictRequest(jobs=jobs, configurations=workers(1), options=by(estimator))
    (outcome,) = stubs.prediction.BatchPredict(request).outcomes
    assert outcome.problem.reason == reason
    assert not outcome.HasField("basis_index")
    assert SECRET not in str(outcome.problem)


def test_an_error_on_a_stream_ends_its_request_only(stubs: Stubs) -> None:
    questions = [
        predictions.StreamPredictRequest(question_id="odd", predict=asked("far-notice")),
        predictions.StreamPredictRequest(question_id="large", predict=asked("queueing", *range(1, 1001))),
        predictions.StreamPredictRequest(question_id="good", predict=asked("queueing", 1, 2)),
    ]
    replies = list(stubs.prediction.StreamPredict(iter(questions)))
    assert [reply.question_id for reply in replies] == ["odd", "large", "good"]
    assert [reply.WhichOneof("answer") for reply in replies] == ["problem", "problem", "predict"]
    assert [reply.problem.reason for reply in replies[:2]] == ["ESTIMATOR_INVALID_RESULT", "LIMIT_EXCEEDED"]
    assert "reply_bytes" in replies[1].problem.message


def test_a_batch_is_counted_while_it_is_read(stubs: Stubs) -> None:
    # Each job's own range is small on the wire; together they would be millions of rows.
    jobs = [
        predictions.BatchJob(
            profile=inline(),
            ranges=[configurations.ConfigurationRange(workers=configurations.CountRange(first=1, last=4000 - number))],
        )
        for number in range(1000)
    ]
    failure = failure_of(stubs.prediction.BatchPredict, predictions.BatchPredictRequest(jobs=jobs))
    assert failure.reason == Reason.LIMIT_EXCEEDED
    assert int(failure.metadata["found"]) < 10_000


def test_each_job_of_a_batch_says_which_columns_it_holds(stubs: Stubs) -> None:
    request = predictions.BatchPredictRequest(jobs=[predictions.BatchJob(profile=inline())], configurations=workers(1))
    (outcome,) = stubs.prediction.BatchPredict(request).outcomes
    assert list(outcome.columns) == sorted(outcome.columns)
    assert len(outcome.columns) >= 4
    assert outcome.interval_basis
