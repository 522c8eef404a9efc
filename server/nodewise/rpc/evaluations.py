"""EvaluationService: backtests, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from nodewise.domain.columns import Ints, constant_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.profile import PhaseTimings
from nodewise.domain.workload import Network, Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.evaluation.backtest import run_backtest
from nodewise.evaluation.results import BacktestResult, EstimatorEvaluation, RowPredictions
from nodewise.mapper.configurations import read_evidence
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.profiles import read_phase_timings, read_workload
from nodewise.mapper.reading import Reader, quote
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits, too_much
from nodewise.rpc.calls import Call
from nodewise.rpc.long_call import LongCall, Workshop, stream_result
from nodewise_protos.v1 import configuration_pb2, workload_pb2
from nodewise_protos.v1beta1 import evaluation_service_pb2 as pb
from nodewise_values.wire import to_message as to_wire

__all__ = ["Evaluations", "read_estimators", "read_held_back", "read_table", "run_request", "write_result"]


@dataclass(slots=True, eq=False)
class Evaluations:
    """Behaviours of EvaluationService.

    Attributes
    ----------
    compute : Compute
        The pool that runs backtests, with its plugins but without its models or stored profiles.
    """

    compute: Compute[Workshop]

    @stream_result
    async def backtest(self, request: pb.BacktestRequest, call: Call) -> LongCall:
        """Sends progress, at least once, then the result. If the time is over before, the error states the progress."""
        return LongCall(backtest, request.SerializeToString())


def backtest(workshop: Workshop, data: bytes, run: LongRun) -> Iterator[bytes]:
    """Read the request, run the backtest, and write its messages."""
    request = pb.BacktestRequest.FromString(data)

    def report(count: int, total: int) -> None:
        progress = pb.BacktestProgress(done_count=count, total_count=total)
        run.tell(pb.BacktestResponse(progress=progress).SerializeToString)
        if run.budget.remaining_s() <= 0:
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"the call's time was over after {count} of {total} jobs")

    estimators = read_estimators(request.estimators)
    result = run_request(
        workshop.answers, request, workshop.limits, estimators=estimators, progress=report, look=run.budget.look_up
    )
    yield pb.BacktestResponse(result=result).SerializeToString()


def run_request(
    answers: Answers,
    request: pb.BacktestRequest,
    limits: Limits,
    *,
    estimators: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
    look: Callable[[], None] = lambda: None,
) -> pb.BacktestResult:
    """The result of a request, of the estimators that are named (``run_backtest``). Raises NodewiseError."""
    table = read_table(request.table, "table", limits)
    sources, evidence = read_held_back(request, table)
    calibration = None
    if request.HasField("calibration"):
        calibration = read_table(request.calibration, "calibration", limits)
    result = run_backtest(
        answers,
        table,
        calibration=calibration,
        estimators=estimators,
        sources=sources,
        evidence=evidence,
        progress=progress,
        look=look,
    )
    return write_result(result)


LONGEST_JOB_NAME: Final = 256
LONGEST_REASON: Final = 300
"""Most characters of a refusal's text in the result: every row may have a text of its own."""

FactsT = TypeVar("FactsT", Workload, Network)
MessageT = TypeVar("MessageT")


def read_table(message: pb.MeasurementTable, path: str, limits: Limits) -> MeasurementTable:
    """A table of measurements.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    rows = len(message.job_indexes)
    _check_rows(max(rows, len(message.job_names), len(message.phase_rows)), path, limits)
    reader = Reader()
    if not rows:
        reader.wrong(f"{path}.job_indexes", "must have one entry per row, and at least one")
        reader.finish()
    jobs = _jobs(message.job_names, f"{path}.job_names", reader)
    job_index = reader.ints(message.job_indexes, f"{path}.job_indexes", rows, default=None, most=max(len(jobs) - 1, 0))
    configurations = _configurations(message.configurations, f"{path}.configurations", rows, reader, limits)
    if len(message.train) != rows:
        reader.wrong(f"{path}.train", f"must have one entry for each of {rows} rows, found {len(message.train)}")
    phase_rows, phase_timings = _phases(message, path, configurations, rows, reader, limits)
    workloads = _facts(message.workloads, f"{path}.workloads", jobs, reader, read_workload, Workload())
    networks = _facts(message.networks, f"{path}.networks", jobs, reader, _read_network, Network())
    table = from_message(
        message,
        MeasurementTable,
        f"{path}.",
        reader,
        row_count=rows,
        jobs=jobs,
        job_index=job_index,
        configurations=configurations,
        train=freeze(np.array(message.train, dtype=np.bool_)),
        phase_rows=phase_rows,
        phase_timings=phase_timings,
        workloads=workloads,
        networks=networks,
    )
    reader.finish()
    return table


def read_estimators(names: Iterable[str]) -> tuple[str, ...]:
    """The requested estimators, each once; the registry checks whether they are loaded.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    distinct = tuple(dict.fromkeys(names))
    for number, name in enumerate(distinct):
        reader.text(name, f"estimators[{number}]", 63)
    reader.finish()
    return distinct


def read_held_back(request: pb.BacktestRequest, table: MeasurementTable) -> tuple[tuple[str, ...], int | None]:
    """The source of each job, or none, and the number of evidence rows of each job; None = the train rows.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    sources = tuple(request.job_sources)
    if len(sources) not in (0, len(table.jobs)):
        reader.wrong("job_sources", f"must have one entry for each of {len(table.jobs)} jobs, found {len(sources)}")
    for number, name in enumerate(sources):
        reader.text(name, f"job_sources[{number}]", LONGEST_JOB_NAME)
    evidence = request.evidence_rows_count if request.HasField("evidence_rows_count") else None
    if evidence is not None and evidence < 0:
        reader.wrong("evidence_rows_count", f"must be at least 0, found {evidence}")
    reader.finish()
    return sources, evidence


def _check_rows(rows: int, path: str, limits: Limits) -> None:
    if rows > limits.backtest_rows:
        text = f"{path}: {rows} rows exceed backtest_rows = {limits.backtest_rows}; split the table by jobs"
        raise too_much(text, "backtest_rows", limits.backtest_rows, rows)


def _jobs(names: Iterable[str], path: str, reader: Reader) -> tuple[str, ...]:
    numbers: dict[str, int] = {}
    for number, name in enumerate(names):
        if not name or len(name) > LONGEST_JOB_NAME or not name.isprintable():
            reader.wrong(
                f"{path}[{number}]", f"must be 1 to {LONGEST_JOB_NAME} printable characters, found {quote(name)}"
            )
        elif name in numbers:
            reader.wrong(f"{path}[{number}]", f"must be unique; entry {numbers[name]} is {quote(name)} too")
        numbers.setdefault(name, number)
    if not numbers:
        reader.wrong(path, "must have at least one entry")
    return tuple(names)


def _configurations(
    message: configuration_pb2.Configurations, path: str, rows: int, reader: Reader, limits: Limits
) -> Configurations:
    """One row per row of the table; a single row applies to all."""
    configurations = read_evidence(message, path, reader, limits)
    if len(configurations) == 1:
        return configurations.take(constant_ints(rows, 0))
    if len(configurations) != rows:
        reader.wrong(path, f"must have one row for each of {rows} rows of the table, found {len(configurations)}")
        return Configurations.of(rows)
    return configurations


def _phases(
    message: pb.MeasurementTable, path: str, configurations: Configurations, rows: int, reader: Reader, limits: Limits
) -> tuple[Ints, PhaseTimings]:
    timings = message.phase_timings
    if not message.phase_rows and not timings.ByteSize():
        return constant_ints(0, 0), PhaseTimings.none()
    timed_rows = len(message.phase_rows)
    if not timed_rows:
        reader.wrong(f"{path}.phase_rows", "must list the rows of the phase timings")
        return constant_ints(0, 0), PhaseTimings.none()
    if timings.configurations.ByteSize():
        reader.wrong(f"{path}.phase_timings.configurations", "must be empty: phase_rows lists the configurations")
    phase_rows = reader.ints(message.phase_rows, f"{path}.phase_rows", timed_rows, default=None, most=rows - 1)
    first = np.unique(phase_rows, return_index=True)[1]
    if len(first) < timed_rows:
        again = int(np.setdiff1d(np.arange(timed_rows), first)[0])
        reader.wrong(f"{path}.phase_rows[{again}]", f"must be unique, found row {phase_rows[again]} twice")
    inside = freeze(np.clip(phase_rows, 0, rows - 1))
    # Phase timings belong to rows of the table, so the limit is that of the table and not that of a batch.
    table_limits = replace(limits, rows_per_batch=limits.backtest_rows)
    phase_timings = read_phase_timings(
        timings, f"{path}.phase_timings", reader, table_limits, configurations.take(inside)
    )
    return inside, phase_timings


def _read_network(message: workload_pb2.Network, path: str, reader: Reader) -> Network:
    return from_message(message, Network, f"{path}.", reader)


def _facts(
    messages: Sequence[MessageT],
    path: str,
    jobs: Sequence[str],
    reader: Reader,
    read: Callable[[MessageT, str, Reader], FactsT],
    nothing: FactsT,
) -> tuple[FactsT, ...]:
    if not messages:
        return (nothing,) * len(jobs)
    if len(messages) != len(jobs):
        reader.wrong(path, f"must have one entry for each of {len(jobs)} job_names, found {len(messages)}")
    return tuple(read(message, f"{path}[{number}]", reader) for number, message in enumerate(messages))


def write_result(result: BacktestResult) -> pb.BacktestResult:
    """The result of a backtest."""
    return pb.BacktestResult(evaluations=map(_evaluation, result.evaluations), prior=result.prior)


def _evaluation(evaluation: EstimatorEvaluation) -> pb.EstimatorEvaluation:
    return to_message(
        evaluation,
        pb.EstimatorEvaluation,
        estimator_version=evaluation.version,
        by_job=[pb.GroupMetrics(name=name, metrics=to_wire(metrics)) for name, metrics in evaluation.by_job],
        by_sync=[pb.GroupMetrics(name=name, metrics=to_wire(metrics)) for name, metrics in evaluation.by_sync],
        predictions=_predictions(evaluation.predictions),
    )


def _predictions(predictions: RowPredictions) -> pb.TestPredictions:
    has_refusals = predictions.reason_index.any()
    return to_message(
        predictions,
        pb.TestPredictions,
        statuses=predictions.status.tolist(),
        refusal_reasons=map(_shorten, predictions.reasons) if has_refusals else (),
        refusal_indexes=predictions.reason_index if has_refusals else (),
    )


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."
