"""The behaviour of EvaluationService: progress, result, cancellation, deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from measurement_tables import Proportional, Row, registry_of, table_of

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.answer.answers import Answers
from nodewise.mapper.configurations import write_configurations
from nodewise.plugin import Assessment, Profile, Query
from nodewise.ports.compute import LongRun
from nodewise.ports.limits import Limits
from nodewise.profiles.reading import TraceLoader
from nodewise.profiles.traces import TraceStore
from nodewise.rpc.calls import Call
from nodewise.rpc.evaluations import Evaluations, backtest
from nodewise.rpc.long_call import Workshop
from nodewise.runtime.compute.pool import ComputePool, GenerationCompute, Tools
from nodewise.runtime.compute.threads import ThreadRunner
from nodewise_protos.v1beta1 import evaluation_service_pb2 as pb

CALL = Call("test", None)


class Service:
    """The service over threads of this process, and what it answered."""

    def __init__(self, estimator: Proportional, **limits: int) -> None:
        self.workshop = Workshop(
            answers=Answers(registry_of(estimator)),
            traces=TraceLoader(TraceStore(), {}),
            limits=Limits(**limits),
        )
        self.pool = GenerationCompute(ComputePool(ThreadRunner, 2), Tools(self.workshop))

    async def backtest(self, request: pb.BacktestRequest) -> AsyncIterator[pb.BacktestResponse]:
        behaviour = Evaluations(self.pool).backtest(request, CALL)
        try:
            async for message in behaviour:
                yield pb.BacktestResponse.FromString(message)
        finally:
            await behaviour.aclose()

    async def events(self, request: pb.BacktestRequest) -> list[pb.BacktestResponse]:
        return [event async for event in self.backtest(request)]


def request_of(rows: list[Row], *estimators: str) -> pb.BacktestRequest:
    table = table_of(rows)
    return pb.BacktestRequest(
        table=pb.MeasurementTable(
            job_names=table.jobs,
            job_indexes=table.job_index.tolist(),
            configurations=write_configurations(table.configurations),
            steps_per_second=table.steps_per_s.tolist(),
            train=table.train.tolist(),
        ),
        estimators=estimators,
    )


def jobs(count: int) -> list[Row]:
    return [Row(job=str(number), train=train, workers=1 + train) for number in range(count) for train in (True, False)]


@dataclass
class Gated(Proportional):
    """Assesses a job when it is let."""

    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    entered: threading.Event = field(default_factory=threading.Event)
    assessed: int = 0

    def assess(self, profile: Profile, query: Query) -> Assessment:
        self.entered.set()
        self.gate.acquire()
        self.assessed += 1
        return super().assess(profile, query)


async def test_progress_comes_before_the_result() -> None:
    service = Service(Proportional())
    events = await service.events(request_of(jobs(3)))
    assert [event.WhichOneof("event") for event in events] == ["progress"] * (len(events) - 1) + ["result"]
    assert (events[-2].progress.done_count, events[-2].progress.total_count) == (3, 3)
    (evaluation,) = events[-1].result.evaluations
    assert evaluation.estimator == "auto"
    assert evaluation.overall.rows_count == 3


async def test_progress_tells_what_is_done_and_is_not_repeated() -> None:
    estimator = Gated()
    service = Service(estimator)
    stream = service.backtest(request_of(jobs(3), "proportional"))
    first = await anext(stream)
    assert (first.progress.done_count, first.progress.total_count) == (0, 3)
    estimator.gate.release(1)
    second = await anext(stream)
    assert second.progress.done_count == 1
    estimator.gate.release(2)
    *rest, result = [event async for event in stream]
    assert result.WhichOneof("event") == "result"
    counts = [event.progress.done_count for event in rest]
    assert counts in ([3], [2, 3])


async def test_a_stream_that_is_closed_stops_before_the_next_job() -> None:
    estimator = Gated()
    service = Service(estimator)
    stream = service.backtest(request_of(jobs(3), "proportional"))
    await anext(stream)
    await asyncio.to_thread(estimator.entered.wait)
    await stream.aclose()
    estimator.gate.release(3)
    await service.pool.pool.close()
    assert estimator.assessed == 1


async def test_a_call_that_is_cancelled_stops_before_the_next_job() -> None:
    estimator = Gated()
    service = Service(estimator)

    async def consume() -> list[pb.BacktestResponse]:
        return await service.events(request_of(jobs(3), "proportional"))

    task = asyncio.create_task(consume())
    await asyncio.to_thread(estimator.entered.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    estimator.gate.release(3)
    await service.pool.pool.close()
    assert estimator.assessed == 1


def test_a_late_call_says_how_far_it_came() -> None:
    now_s = [0.0]

    class Slow(Proportional):
        def assess(self, profile: Profile, query: Query) -> Assessment:
            now_s[0] = 2.0
            return super().assess(profile, query)

    run = LongRun(Budget(1.0, clock_s=lambda: now_s[0]), lambda _: None)
    with pytest.raises(NodewiseError) as caught:
        run.do(backtest, Service(Slow()).workshop, request_of(jobs(3), "proportional").SerializeToString())
    assert caught.value.reason == Reason.DEADLINE_EXCEEDED
    assert caught.value.message == "the call's time was over after 1 of 3 jobs"


async def test_more_backtests_than_run_at_once_wait_their_turn() -> None:
    service = Service(Proportional())

    async def consume() -> int:
        return len(await service.events(request_of(jobs(2))))

    assert min(await asyncio.gather(*(consume() for _ in range(8)))) >= 2


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(pb.BacktestRequest(), Reason.INVALID_FIELD, id="no table"),
        pytest.param(request_of(jobs(1), "oracle"), Reason.ESTIMATOR_NOT_FOUND, id="no such estimator"),
        pytest.param(request_of(jobs(5)), Reason.LIMIT_EXCEEDED, id="too many rows"),
    ],
)
async def test_a_request_that_cannot_be_run_says_why(request_: pb.BacktestRequest, reason: Reason) -> None:
    service = Service(Proportional(), backtest_rows=9)
    with pytest.raises(NodewiseError) as caught:
        await service.events(request_)
    assert caught.value.reason == reason


async def test_a_calibration_table_is_read_under_its_own_path() -> None:
    service = Service(Proportional())
    request = request_of(jobs(1))
    request.calibration.CopyFrom(request.table)
    request.calibration.train.pop()
    with pytest.raises(NodewiseError) as caught:
        await service.events(request)
    assert caught.value.violations[0].field == "calibration.train"
