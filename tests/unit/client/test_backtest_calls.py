"""Backtest: its table, its progress, its result, and a stream that was cut."""

from __future__ import annotations

import time

import grpc
import pytest
from canned_answers import TABLE
from fake_nodewise import status_of

from nodewise_client import (
    BacktestProgress,
    BacktestRequest,
    InternalError,
    InvalidArgumentError,
    NodewiseError,
    UnavailableError,
    Workload,
    measurement_table,
    scored_rows,
)
from nodewise_protos.v1beta1 import evaluation_service_pb2

S = grpc.StatusCode


def test_backtest_tells_progress_and_returns_the_result(client, server):
    reply = evaluation_service_pb2.BacktestResponse
    server.answer(
        "Backtest",
        [
            reply(progress={"done_count": 1, "total_count": 2}),
            reply(progress={"done_count": 2, "total_count": 2}),
            reply(
                result={
                    "prior": "shipped",
                    "evaluations": [
                        {
                            "estimator": "auto",
                            "overall": {"rows_count": 1, "refused_count": 1, "mape": 0.0, "fit_seconds": 0.5},
                            "by_job": [{"name": "a", "metrics": {"rows_count": 1}}],
                            "predictions": {
                                "rows": [1, 2],
                                "steps_per_second": [1.5, 0.0],
                                "statuses": [1, 2],
                                "refusal_reasons": ["", "EVIDENCE_MISSING"],
                                "refusal_indexes": [0, 1],
                            },
                        }
                    ],
                }
            ),
        ],
    )
    heard: list[BacktestProgress] = []
    result = client.backtest(
        BacktestRequest(table=TABLE, estimators=["all"], calibration=TABLE), on_progress=heard.append
    )
    assert [(progress.done_count, progress.total_count) for progress in heard] == [(1, 2), (2, 2)]
    (scores,) = result.evaluations
    overall = scores.overall
    assert (overall.rows_count, overall.refused_count, overall.mape, overall.kendall) == (1, 1, 0.0, None)
    assert (overall.fit_seconds, scores.by_job[0].metrics.rows_count) == (0.5, 1)
    rows = scored_rows(scores.predictions)
    assert [(row.row, row.steps_per_second, row.status, row.refusal_reason) for row in rows] == [
        (1, 1.5, "answered", None),
        (2, None, "refused", "EVIDENCE_MISSING"),
    ]
    sent = server.requests["Backtest"][0]
    assert sent.calibration == sent.table
    table = sent.table
    assert (list(table.job_names), list(table.job_indexes)) == (["a", "b"], [0, 0, 1])
    assert (list(table.steps_per_second), list(table.train)) == ([1.0, 0.0, 2.0], [True, False, True])
    assert list(table.exposed_sync_seconds) == [0.0, 0.1, 0.0]
    assert list(table.exposed_sync_known) == [False, True, False]
    assert len(table.measured_at_unix_seconds) == 3
    assert [workload.parameter_bytes for workload in table.workloads] == [0, 5]
    assert [network.link_bytes_per_second for network in table.networks] == [1.0, 0.0]


def test_facts_of_a_job_that_is_not_in_the_table_are_a_mistake():
    with pytest.raises(ValueError, match="'b'"):
        measurement_table(jobs="a", steps_per_second=1.0, train=True, workloads={"b": Workload()})


def test_a_backtest_that_ends_without_a_result_is_an_error(client, server):
    server.answer("Backtest", [])
    with pytest.raises(InternalError, match="without a result"):
        client.backtest(BacktestRequest(table=TABLE))
    server.answer("Backtest", status_of(S.INVALID_ARGUMENT, "bad", reason="CONTRADICTORY_FACTS"))
    with pytest.raises(InvalidArgumentError):
        client.backtest(BacktestRequest(table=TABLE))


PROGRESS = evaluation_service_pb2.BacktestResponse(progress={"done_count": 1, "total_count": 2})


RESULT = evaluation_service_pb2.BacktestResponse(result={"prior": "shipped"})


def test_a_stream_of_progress_that_was_cut_is_begun_again(client, server):
    server.answer("Backtest", [PROGRESS, S.UNAVAILABLE], S.UNAVAILABLE, [PROGRESS, S.UNAVAILABLE], [PROGRESS, RESULT])
    heard: list[BacktestProgress] = []
    result = client.backtest(BacktestRequest(table=TABLE), on_progress=heard.append)
    assert (result.prior, [progress.done_count for progress in heard]) == ("shipped", [1, 1, 1])
    first, *others = server.requests["Backtest"]
    assert others == [first] * 3


def test_a_stream_that_is_cut_each_time_is_given_up(client, server):
    server.answer("Backtest", *[[PROGRESS, S.UNAVAILABLE]] * 5)
    with pytest.raises(UnavailableError, match="cut"):
        client.backtest(BacktestRequest(table=TABLE))
    assert len(server.requests["Backtest"]) == 4


def test_a_stream_is_begun_again_within_its_deadline(client, server):
    server.answer("Backtest", [PROGRESS, S.UNAVAILABLE])
    with pytest.raises(UnavailableError, match="cut"):
        client.backtest(BacktestRequest(table=TABLE), timeout_s=1.0, on_progress=lambda _: time.sleep(1.0))
    assert len(server.requests["Backtest"]) == 1


@pytest.mark.parametrize("code", [S.RESOURCE_EXHAUSTED, S.INTERNAL, S.CANCELLED])
def test_a_stream_that_ends_otherwise_is_not_begun_again(client, server, code):
    server.answer("Backtest", [PROGRESS, code])
    with pytest.raises(NodewiseError, match="cut"):
        client.backtest(BacktestRequest(table=TABLE))
    assert len(server.requests["Backtest"]) == 1


def test_without_retry_a_stream_is_not_begun_again(server, make_client):
    server.answer("Backtest", [PROGRESS, S.UNAVAILABLE])
    with pytest.raises(UnavailableError):
        make_client(server.target, retry=False).backtest(BacktestRequest(table=TABLE))
    assert len(server.requests["Backtest"]) == 1
