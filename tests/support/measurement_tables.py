"""Tables of measurements and a tiny estimator, for tests of the evaluation room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from nodewise.domain.columns import as_floats, as_ints, constant_floats, constant_ints, freeze
from nodewise.domain.configurations import Configurations, Placement, SyncMode
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.predictions import Options, Predictions, RowRefusal, RowStatus
from nodewise.domain.profile import UNKNOWN, PhaseTimings, Profile
from nodewise.domain.workload import Network, Workload
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.plugin import Assessment, Context, Corpus, EstimatorRecord, Model, Prior, Query

PHASE_COLUMNS = ("download_s", "compute_s", "upload_s", "update_s")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table, as a CSV would have it. ``steps_per_s`` 0 = an empty cell."""

    job: str = "job"
    workers: int = 1
    steps_per_s: float = 1.0
    train: bool = False
    nodes: int = 0
    device: str = "V100"
    sync: SyncMode = SyncMode.ALLREDUCE
    servers: int = 0
    batch: int = 0
    accumulation: int = 1
    global_batch: int = 0
    placement: tuple[int, ...] = ()
    phases_s: tuple[float, float, float, float] | None = None
    exposed_sync_s: float = UNKNOWN
    measured_at_s: float = 0.0
    steps: int = 0
    step_variation: float = UNKNOWN
    memory_bytes: float = 0.0
    fitted: int = 1


def table_of(
    rows: Sequence[Row],
    workloads: Mapping[str, Workload] = MappingProxyType({}),
    networks: Mapping[str, Network] = MappingProxyType({}),
    jobs: Iterable[str] = (),
) -> MeasurementTable:
    """A table; jobs are numbered as they come, or as ``jobs`` lists them."""
    names = tuple(dict.fromkeys((*jobs, *(row.job for row in rows))))
    devices = tuple(dict.fromkeys(row.device for row in rows)) or ("",)

    def ints(name: str) -> Any:
        return as_ints([getattr(row, name) for row in rows])

    configurations = Configurations.of(len(rows), nodes=[row.nodes or row.workers for row in rows]).replaced(
        workers=ints("workers"),
        parameter_servers=ints("servers"),
        devices=devices,
        device_index=as_ints([devices.index(row.device) for row in rows]),
        sync_mode=ints("sync"),
        batch_per_worker=ints("batch"),
        accumulation=ints("accumulation"),
        global_batch=ints("global_batch"),
        placement=Placement.of([row.placement for row in rows]) if any(row.placement for row in rows) else None,
    )
    timed = [number for number, row in enumerate(rows) if row.phases_s is not None]
    columns = {
        name: as_floats([row.phases_s[place] for row in rows if row.phases_s is not None])
        for place, name in enumerate(PHASE_COLUMNS)
    }
    return MeasurementTable(
        jobs=names,
        job_index=as_ints([names.index(row.job) for row in rows]),
        configurations=configurations,
        steps_per_s=as_floats([row.steps_per_s for row in rows]),
        train=freeze(np.array([row.train for row in rows], dtype=np.bool_)),
        measured_at_s=as_floats([row.measured_at_s for row in rows]),
        exposed_sync_s=as_floats([row.exposed_sync_s for row in rows]),
        steps=ints("steps"),
        step_variation=as_floats([row.step_variation for row in rows]),
        measured_memory_bytes=as_floats([row.memory_bytes for row in rows]),
        fitted=ints("fitted"),
        phase_rows=as_ints(timed),
        phase_timings=PhaseTimings(
            configurations=configurations.take(as_ints(timed)),
            **columns,
            compute_variation=constant_floats(len(timed), UNKNOWN),
            transfer_variation=constant_floats(len(timed), UNKNOWN),
            hidden_s=constant_floats(len(timed), 0.0),
            steps=constant_ints(len(timed), 0),
        ),
        workloads=tuple(workloads.get(name, Workload()) for name in names),
        networks=tuple(networks.get(name, Network()) for name in names),
    )


def registry_of(*estimators: Any) -> Registry:
    """A registry of estimators that say their own names."""
    return Registry(
        estimators={
            estimator.name: LoadedPlugin(
                EstimatorRecord(name=estimator.name, version="1.2", description="for tests", estimator=estimator),
                "tests 0",
                "inline",
            )
            for estimator in estimators
        },
        policies={},
        trace_readers={},
        diagnosers={},
    )


def digest_of(values: Any) -> float:
    """A number that changes with any bit of a domain value (names of profiles included), order and all; 0 to 1."""
    return int.from_bytes(_bytes(values)[:6], "big") / 2**48


def _bytes(value: Any) -> bytes:
    import hashlib

    if isinstance(value, np.ndarray):
        content = value.tobytes()
    elif hasattr(value, "__dataclass_fields__"):
        content = b"".join(_bytes(getattr(value, field.name)) for field in fields(value))
    elif isinstance(value, tuple):
        content = b"".join(_bytes(entry) for entry in value)
    else:
        content = repr(value).encode()
    return hashlib.sha256(content).digest()


@dataclass
class Proportional:
    """Steps/s per worker as the mean of what was measured, else as a prior or ``rate`` has it.

    Refuses jobs that use ``refuses`` as device, and rows with more workers than ``most``; spread as given. With
    ``sensitive`` every bit of profile, prior and question moves the answer.
    """

    name: str = "proportional"
    rate: float = 0.0
    most: int = 10**6
    spread: float = 0.1
    refuses: str = ""
    sensitive: bool = False
    exact: bool = False

    def assess(self, profile: Profile, query: Query) -> Assessment:
        if self.refuses and self.refuses in query.configurations.device_names():
            return Assessment(refusal=Refusal(Reason.UNSUPPORTED_CONFIGURATION, f"never on {self.refuses}"))
        if not len(profile.observations) and not self.rate:
            return Assessment(refusal=Refusal(Reason.EVIDENCE_MISSING, "needs observations", ("observations",)))
        return Assessment(strength=0.5)

    def fit(self, profile: Profile, context: Context) -> Model:
        rate = self.rate
        if len(profile.observations):
            found = profile.observations
            rate = float(np.mean(found.steps_per_s / found.configurations.workers))
        elif context.prior is not None:
            rate = context.prior.content
        if self.sensitive:
            rate *= 1.0 + digest_of((profile, context.prior))
        return _ProportionalModel(rate, self)


@dataclass
class Learning(Proportional):
    """The same, learning its rate from all profiles."""

    name: str = "learning"
    rate: float = 1.0

    def learn(self, corpus: Corpus) -> Prior:
        rates = [
            float(np.mean(profile.observations.steps_per_s / profile.observations.configurations.workers))
            for profile in corpus
            if len(profile.observations)
        ]
        content = float(np.mean(rates)) if rates else self.rate
        if self.sensitive:
            content *= 1.0 + digest_of(tuple(corpus))
        return Prior(prior_id=f"{content:.17g}", estimator=self.name, sources=(), content=content)


@dataclass
class _ProportionalModel:
    rate: float
    estimator: Proportional

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        refused = configurations.workers > self.estimator.most
        rate = self.rate * configurations.workers
        if self.estimator.sensitive:
            rate = rate * (1.0 + digest_of(configurations))
        step_s = np.where(configurations.sync_mode == SyncMode.ASYNC, configurations.workers, 1) / rate
        step_s = np.where(refused, 0.0, step_s)
        return Predictions(
            status=freeze(np.where(refused, RowStatus.REFUSED, RowStatus.ANSWERED).astype(np.int64)),
            step_s=freeze(step_s),
            log_spread=freeze(np.where(refused, 0.0, self.estimator.spread)),
            breakdown_s={"all": freeze(step_s)},
            bottlenecks=("everything",),
            bottleneck_index=freeze(np.where(refused, -1, 0)),
            extrapolation=freeze(np.where(refused, 0.0, 1.0)),
            refusals=(
                RowRefusal(
                    tuple(np.flatnonzero(refused).tolist()),
                    Refusal(Reason.UNSUPPORTED_CONFIGURATION, f"at most {self.estimator.most} workers"),
                ),
            )
            if refused.any()
            else (),
        )


def shuffled(rows: Sequence[Row], order: Sequence[int], names: Mapping[str, str]) -> list[Row]:
    """The rows in another order, their jobs under other names."""
    return [replace(rows[number], job=names[rows[number].job]) for number in order]
