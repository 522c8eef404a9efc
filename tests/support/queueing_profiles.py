"""Small profiles and questions for the queueing estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from partitioned_transformers import CATALOGUE, KnownContext

from nodewise.estimation.estimators.check import check_predictions
from nodewise.plugin import (
    Catalogue,
    Configurations,
    Model,
    Network,
    Observations,
    Options,
    PhaseTimings,
    Predictions,
    Profile,
    Query,
    Reason,
    RowStatus,
    SyncMode,
    WorkerGroup,
    WorkerGroups,
    Workload,
    as_floats,
    as_ints,
    constant_floats,
)
from nodewise_queueing.estimator import QueueingEstimator

FLOATS: Final = ("link_bytes_per_s", "hybrid_sync_fraction", "hybrid_switch_s")


def rows(
    workers: Sequence[int],
    mode: SyncMode = SyncMode.ASYNC,
    *,
    device: str = "",
    **columns: int | float | Sequence[int] | Sequence[float],
) -> Configurations:
    """Configurations of one mode; other columns hold one value each, or one per row."""
    plain = Configurations.of(len(workers), nodes=as_ints(workers), workers=as_ints(workers), device=device)
    values = {}
    for name, value in {"parameter_servers": 1, **columns}.items():
        listed = list(value) if isinstance(value, Sequence) else [value] * len(workers)
        values[name] = as_floats(listed) if name in FLOATS else as_ints([int(each) for each in listed])
    return plain.replaced(sync_mode=as_ints([int(mode)] * len(workers)), **values)


def mixed(
    *compositions: Sequence[WorkerGroup],
    mode: SyncMode = SyncMode.ASYNC,
    device: str = "",
    **columns: int | float | Sequence[int] | Sequence[float],
) -> Configurations:
    """Configurations whose workers are not alike, one composition each."""
    asked = rows([sum(group.workers for group in groups) for groups in compositions], mode, device=device, **columns)
    named = (group.device for groups in compositions for group in groups)
    devices = tuple(dict.fromkeys((device, *named)))
    return asked.replaced(devices=devices, worker_groups=WorkerGroups.of(compositions, devices))


def timings(
    *runs: tuple[float, float, float, float],
    workers: int = 1,
    cv: float = -1.0,
    hidden_s: float = 0.0,
    steps: int = 0,
    **columns: int | float,
) -> PhaseTimings:
    """Timed runs, each (download, compute, upload, update) in seconds."""
    count = len(runs)
    return PhaseTimings(
        configurations=rows([workers] * count, **columns),
        download_s=as_floats([run[0] for run in runs]),
        compute_s=as_floats([run[1] for run in runs]),
        upload_s=as_floats([run[2] for run in runs]),
        update_s=as_floats([run[3] for run in runs]),
        compute_variation=constant_floats(count, cv),
        transfer_variation=constant_floats(count, -1.0),
        hidden_s=constant_floats(count, hidden_s),
        steps=as_ints([steps] * count),
    )


def observations(measured: dict[int, float], mode: SyncMode = SyncMode.ASYNC, **columns: int | float) -> Observations:
    """Steps/s by number of workers."""
    return Observations.of(rows(list(measured), mode, **columns), as_floats(list(measured.values())))


def profile(
    phases: PhaseTimings | None = None,
    measured: Observations | None = None,
    *,
    parameter_bytes: int | None = None,
    tensors: int | None = None,
    shard_bytes: tuple[int, ...] | None = None,
    shard_tensors: tuple[int, ...] | None = None,
    **network: Any,
) -> Profile:
    """A profile of what is given; other names are facts about the network."""
    return Profile(
        workload=Workload(
            parameter_bytes=parameter_bytes, tensors=tensors, shard_bytes=shard_bytes, shard_tensors=shard_tensors
        ),
        network=Network(**network),
        phase_timings=PhaseTimings.none() if phases is None else phases,
        observations=Observations.none() if measured is None else measured,
    )


def fitted(of: Profile, catalogue: Catalogue = CATALOGUE) -> Model:
    """What the estimator makes of a profile and the shipped catalogue, or another."""
    return QueueingEstimator().fit(of, KnownContext(catalogue=catalogue))


def predicted(of: Profile, asked: Configurations, **options: Any) -> Predictions:
    """Fit and predict, checked as the core checks."""
    return check_predictions(fitted(of).predict(asked, Options(**options)), asked)


def answered(of: Profile, asked: Configurations, **options: Any) -> Predictions:
    """The same, where every row must be answered."""
    answer = predicted(of, asked, **options)
    assert answer.answered.all(), answer.refusals
    return answer


def refused(answer: Predictions) -> dict[int, tuple[Reason, str]]:
    """Reason and message of each row that is not answered."""
    found = {row: (each.refusal.reason, each.refusal.message) for each in answer.refusals for row in each.rows}
    assert [row for row, status in enumerate(answer.status) if status == RowStatus.REFUSED] == sorted(found)
    return found


def reasons(answer: Predictions) -> set[str]:
    """What the reader is told."""
    return {notice.reason for notice in answer.notices}


def steps_per_s(answer: Predictions, asked: Configurations) -> Any:
    """Rates: of all workers together, or of rounds."""
    return asked.cycles_per_step() / answer.step_s


def assessed(of: Profile, asked: Configurations):
    """What the estimator says it can do."""
    return QueueingEstimator().assess(of, Query(configurations=asked))


def reversed_evidence(of: Profile) -> Profile:
    """The same profile with its evidence in the opposite order."""
    return replace(
        of,
        phase_timings=of.phase_timings.take(as_ints(range(len(of.phase_timings))[::-1])),
        observations=of.observations.take(as_ints(range(len(of.observations))[::-1])),
    )
