"""Clusters, jobs and predictions by table, for tests of policies and of the scheduling room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st
import numpy as np

from nodewise.domain.columns import as_floats, as_ints, constant_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Predictions, RowRefusal, RowStatus
from nodewise.domain.profile import Profile
from nodewise.domain.schedule import Allocation, ClusterState, CurrentAllocation, Curves, JobState, NodePool
from nodewise.estimation.question import Answer, Basis, Question
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import PolicyRecord
from nodewise_policies.plugin import nodewise_policies

TABLE = (10.0, 20.0, 30.0, 38.0, 46.0, 49.0, 50.0, 50.0)
"""The published example: throughput on 1 to 8 devices."""

POLICIES: dict[str, LoadedPlugin[PolicyRecord]] = {
    record.name: LoadedPlugin(record, "tests 1.0", "inline") for record in nodewise_policies()
}
SHARING_TIME = ("max-min-fairness", "max-min-fairness-aware", "min-makespan-aware")
GRANTING = tuple(sorted(POLICIES.keys() - SHARING_TIME))


@dataclass
class Clock:
    """A budget that ends after so many looks."""

    looks: float = float("inf")

    def remaining_s(self) -> float:
        self.looks -= 1
        return 1.0 if self.looks >= 0 else 0.0

    def look_up(self) -> None:
        """Somebody waits."""


def job(job_id: str, left: float = 1000.0, submitted: float = 0.0, **changes: object) -> JobState:
    """A job that may run in the first pool on any count of its curve."""
    values: dict[str, object] = {"allowed_devices": tuple(range(1, 65)), "allowed_pools": (0,)}
    values.update(changes)
    return JobState(job_id=job_id, remaining_samples=left, submit_time_s=submitted, **values)  # type: ignore[arg-type]


def pool(name: str = "p", *available: int, device: str = "V100", **stated: Any) -> NodePool:
    return NodePool(name=name, device=device, available_devices=as_ints(available), **stated)


Rates = Mapping[int, Sequence[float]] | Sequence[float]
"""Throughput on 1, 2, ... devices, in the first pool or by pool; 0 = not answered."""


def curves_of(tables: Sequence[Rates]) -> Curves:
    offsets, pools, devices, rates = [0], [], [], []
    for table in tables:
        by_pool = table if isinstance(table, Mapping) else {0: table}
        for index, column in sorted(by_pool.items()):
            for count, rate in enumerate(column, start=1):
                if rate > 0:
                    pools.append(index)
                    devices.append(count)
                    rates.append(rate)
        offsets.append(len(rates))
    return Curves(
        offsets=as_ints(offsets),
        pool=as_ints(pools),
        devices=as_ints(devices),
        nodes=constant_ints(len(rates), 1),
        samples_per_s=as_floats(rates),
        configurations=Configurations.of(len(rates), workers=as_ints(devices)),
    )


def state_of(
    jobs: Sequence[JobState],
    free: int | Sequence[int],
    quotas: Mapping[str, int] | None = None,
    parameters: Mapping[str, float] | None = None,
) -> ClusterState:
    sizes = [free] if isinstance(free, int) else free
    pools = tuple(pool(f"p{index}", size) for index, size in enumerate(sizes))
    return ClusterState(
        now_s=0.0, pools=pools, jobs=tuple(jobs), quotas=dict(quotas or {}), parameters=dict(parameters or {})
    )


def with_defaults(name: str, state: ClusterState) -> ClusterState:
    """The state with the policy's defaults where it states no parameter, as the service puts it to a policy."""
    known = {parameter.name: parameter.default for parameter in POLICIES[name].record.parameters}
    stated = {key: value for key, value in state.parameters.items() if key in known}
    return replace(state, parameters={**known, **stated})


def decided(name: str, state: ClusterState, tables: Sequence[Rates], budget: Clock | None = None) -> Allocation:
    allocation = POLICIES[name].record.policy.decide(with_defaults(name, state), curves_of(tables), budget or Clock())
    assert isinstance(allocation, Allocation)
    return allocation


def granted(name: str, state: ClusterState, tables: Sequence[Rates]) -> list[int]:
    """Worker devices of each job, in order."""
    return [grant.devices for grant in decided(name, state, tables).grants]


@dataclass
class Tables:
    """Predicts from tables: a profile's digest names the table, by device name, of samples/s on 1, 2, ... workers.

    ``errors`` raises for a digest; counts beyond a table, or with rate 0, are refused. ``asked`` keeps the questions.
    """

    tables: Mapping[str, Mapping[str, Sequence[float]]]
    batch: int = 1
    errors: Mapping[str, NodewiseError] = field(default_factory=dict)
    infeasible: bool = False
    asked: list[Question] = field(default_factory=list)

    def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        digest = question.profile.digest
        if digest in self.errors:
            raise self.errors[digest]
        configurations = question.configurations
        rows = len(configurations)
        rates = np.zeros(rows)
        for row, (workers, device) in enumerate(zip(configurations.workers.tolist(), configurations.device_names())):
            column = self.tables[digest].get(device, ())
            rates[row] = column[workers - 1] if workers <= len(column) else 0.0
        return answer_of(configurations, rates, batch=self.batch, infeasible=self.infeasible)


def answer_of(configurations: Configurations, rates: np.ndarray, *, batch: int, infeasible: bool = False) -> Answer:
    """An answer with these samples/s (or mini-batches/s where ``batch`` is 0)."""
    rows = len(rates)
    answered = rates > 0
    refused = tuple(np.flatnonzero(~answered).tolist())
    no = RowStatus.INFEASIBLE_MEMORY if infeasible else RowStatus.REFUSED
    refusal = Refusal(Reason.UNSUPPORTED_CONFIGURATION, "beyond the table", ("observations",))
    step_s = np.divide(max(batch, 1), rates, out=np.zeros(rows), where=answered)
    predictions = replace(
        Predictions.refused(rows, refusal),
        status=freeze(np.where(answered, RowStatus.ANSWERED, no).astype(np.int64)),
        step_s=freeze(step_s),
        refusals=() if infeasible or not refused else (RowRefusal(refused, refusal),),
        excess_memory_bytes=freeze(np.where(answered, 0.0, 1e9)) if infeasible else None,
    )
    steps_per_s = np.divide(1.0, step_s, out=np.zeros(rows), where=answered)
    return Answer(
        configurations=configurations,
        predictions=predictions,
        steps_per_s=steps_per_s,
        samples_per_s=steps_per_s * batch,
        minibatches_per_s=freeze(rates.copy()),
        interval=None,
        finish_s=None,
        costs=None,
        recommendation=None,
        notices=(),
        basis=Basis(estimator="table", estimator_version="1", choice="test", profile_revision=0, profile_digest=""),
        samples_per_step=constant_ints(rows, batch),
    )


def profile(digest: str) -> Profile:
    return Profile(digest=digest)


Instance = tuple[ClusterState, list[Rates]]
RATES = st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 4.5, 6.0, 7.0, 9.0]), max_size=8)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    pools = draw(st.integers(1, 2))
    tables: list[Rates] = []
    jobs: list[JobState] = []
    for index in range(draw(st.integers(0, 7))):
        tables.append({number: draw(RATES) for number in range(pools)})
        current = None
        if draw(st.booleans()):
            current = CurrentAllocation(pool=0, placement=((0, draw(st.integers(1, 3))),))
        jobs.append(
            job(
                f"j{draw(st.permutations('abc'))[0]}{index}",
                draw(st.sampled_from([10.0, 100.0, 100.0, 1000.0])),
                draw(st.sampled_from([0.0, 1.0])),
                server_devices=draw(st.integers(0, 1)) if current is None else 0,
                requested_devices=draw(st.integers(1, 8)),
                weight=draw(st.sampled_from([1.0, 1.0, 2.0])),
                queue=draw(st.sampled_from(["", "q"])),
                allowed_pools=tuple(range(pools)),
                current=current,
            )
        )
    sizes = [draw(st.integers(0, 20)) for _ in range(pools)]
    quotas = {"q": draw(st.integers(0, 12))} if draw(st.booleans()) else {}
    return state_of(jobs, sizes, quotas, {"backfill": float(draw(st.booleans()))}), tables
