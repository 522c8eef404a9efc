"""Small profiles and questions for the queueing estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nodewise.estimation.check import checked
from nodewise.plugin import (
    Configurations,
    Network,
    Observations,
    Options,
    PhaseTimings,
    Predictions,
    Profile,
    Query,
    SyncMode,
    Workload,
    as_floats,
    as_ints,
    constant_floats,
)
from nodewise_queueing.estimator import QueueingEstimator


def rows(
    workers: Sequence[int], mode: SyncMode = SyncMode.ASYNC, *, device: str = "", **columns: int | float
) -> Configurations:
    """Configurations of one mode; other columns hold one value each."""
    plain = Configurations.of(len(workers), nodes=as_ints(workers), workers=as_ints(workers), device=device)
    values = {
        name: as_floats([value] * len(workers)) if name == "link_bytes_per_s" else as_ints([int(value)] * len(workers))
        for name, value in {"parameter_servers": 1, **columns}.items()
    }
    return plain.replaced(sync_mode=as_ints([int(mode)] * len(workers)), **values)


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
    link_bytes_per_s: float | None = None,
    half_duplex: bool | None = None,
) -> Profile:
    """A profile of what is given."""
    return Profile(
        workload=Workload(parameter_bytes=parameter_bytes),
        network=Network(link_bytes_per_s=link_bytes_per_s, half_duplex=half_duplex),
        phase_timings=PhaseTimings.none() if phases is None else phases,
        observations=Observations.none() if measured is None else measured,
    )


def predicted(of: Profile, asked: Configurations) -> Predictions:
    """Fit and predict, checked as the core checks."""
    model = QueueingEstimator().fit(of, None)  # type: ignore[arg-type]  # the estimator needs no context
    return checked(model.predict(asked, Options()), asked, "queueing")


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
