"""EvaluationService: backtests, with progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.evaluation.backtest import backtested
from nodewise.ports.compute import Compute, LongRun
from nodewise.rpc.calls import Call
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.wire_evaluations import read_estimators, read_held_back, read_table, write_result
from nodewise_protos.v1beta1 import evaluation_service_pb2 as pb

__all__ = ["Evaluations"]


@dataclass(slots=True, eq=False)
class Evaluations:
    """Behaviours of EvaluationService.

    Attributes
    ----------
    compute : Compute
        Where backtests are made: of its plugins; its models and the profiles of a store take no part.
    """

    compute: Compute[Workshop]

    @streamed
    async def backtest(self, request: pb.BacktestRequest, call: Call) -> LongCall:
        """Progress, at least once, then the result. A call that is late says how far it came."""
        return LongCall(backtest, request.SerializeToString())


def backtest(workshop: Workshop, data: bytes, run: LongRun) -> Iterator[bytes]:
    """Read, run, write."""
    request = pb.BacktestRequest.FromString(data)
    estimators = read_estimators(request.estimators)
    table = read_table(request.table, "table", workshop.limits)
    sources, evidence = read_held_back(request, table)
    calibration = None
    if request.HasField("calibration"):
        calibration = read_table(request.calibration, "calibration", workshop.limits)

    def advanced(done: int, total: int) -> None:
        progress = pb.BacktestProgress(done_count=done, total_count=total)
        run.tell(pb.BacktestResponse(progress=progress).SerializeToString)
        if run.budget.remaining_s() <= 0:
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"{done} of {total} jobs were done in time")

    result = backtested(
        workshop.answers,
        table,
        calibration=calibration,
        estimators=estimators,
        sources=sources,
        evidence=evidence,
        progress=advanced,
        look=run.budget.look_up,
    )
    yield pb.BacktestResponse(result=write_result(result)).SerializeToString()
