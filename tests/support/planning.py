"""Planning models by tables, and what a search must find by looking at everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from estimators import record_of

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.planning import Exclusion, PlanConstraints, PlanPool
from nodewise.domain.predictions import Options, Predictions, RowStatus
from nodewise.domain.profile import Profile
from nodewise.hosting.registry import LoadedPlugin
from nodewise.planning.checked_model import CheckedModel
from nodewise.plugin import BASIC_COLUMNS, DEGREES, Assessment, EstimatorRecord, Query

ANY = PlanConstraints(pools=(PlanPool(device="A", nodes=(1, 2), workers_per_node=8),), global_batches=(64,))
COLUMNS = BASIC_COLUMNS | frozenset(DEGREES)


@dataclass(frozen=True, eq=False)
class Table:
    """Every completion of a space: its prefix and what it takes. ``batch_per_worker`` is its number, from 1."""

    prefixes: Configurations
    origin: np.ndarray[Any, Any]
    step_s: np.ndarray[Any, Any]
    memory: np.ndarray[Any, Any]
    capacity: np.ndarray[Any, Any]
    bound_s: np.ndarray[Any, Any]
    bound_memory: np.ndarray[Any, Any]

    @property
    def rows(self) -> Configurations:
        numbers = as_ints(np.arange(1, len(self.origin) + 1))
        return self.prefixes.take(as_ints(self.origin)).replaced(batch_per_worker=numbers)


def random_table(seed: int, prefixes: int, most: int, values: int = 6) -> Table:
    """Few distinct values, so that there are ties everywhere; bounds are sound and often tight."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(0, most + 1, prefixes)
    origin = np.repeat(np.arange(prefixes), sizes)
    nodes = draw.integers(1, 4, prefixes)
    device = draw.integers(0, 2, prefixes)
    rows = Configurations.of(prefixes, nodes=nodes, workers=nodes * 2, sync_mode=SyncMode.ALLREDUCE).replaced(
        devices=("B", "A"),
        device_index=as_ints(device),
        global_batch=as_ints(draw.choice([32, 64], prefixes)),
        tensor_parallel=as_ints(draw.integers(1, 3, prefixes)),
    )
    count = len(origin)
    step_s = draw.integers(1, values + 1, count) / 4.0
    memory = draw.integers(1, values + 1, count) * 8.0
    capacity = np.where(device == 0, draw.integers(1, values + 2), draw.integers(1, values + 2)) * 8.0
    bound_s, bound_memory = np.full(prefixes, 1e3), np.full(prefixes, 1e6)
    np.minimum.at(bound_s, origin, step_s)
    np.minimum.at(bound_memory, origin, memory)
    loose = draw.choice([1.0, 1.0, 0.75, 0.5], (2, prefixes))
    return Table(rows, origin, step_s, memory, capacity, bound_s * loose[0], bound_memory * loose[1])


class TableModel:
    """A planning model that looks up; counts what it evaluates. ``wrong`` replaces what its methods answer."""

    memory_terms = ("weights_bytes", "activations_bytes")

    def __init__(self, table: Table, wrong: Mapping[str, Any] | None = None) -> None:
        self.table = table
        self.wrong = dict(wrong or {})
        self.evaluated = 0
        self.largest = 0

    prefixes = property(lambda self: self.wrong.get("prefixes", self.table.prefixes))
    sizes = property(
        lambda self: self.wrong.get(
            "sizes", as_ints(np.bincount(self.table.origin, minlength=len(self.table.prefixes)))
        )
    )
    final = property(
        lambda self: self.wrong.get(
            "final",
            frozenset(
                {
                    "nodes",
                    "workers",
                    "device_index",
                    "global_batch",
                    "tensor_parallel",
                    "sync_mode",
                    "parameter_servers",
                }
            ),
        )
    )
    exclusions: tuple[Exclusion, ...] = ()

    def space(self, constraints: PlanConstraints) -> TableModel:
        return self

    def completed(self, prefixes: np.ndarray[Any, Any]) -> Any:
        if "completed" in self.wrong:
            return self.wrong["completed"]
        rows = [np.flatnonzero(self.table.origin == prefix) for prefix in prefixes.tolist()]
        return self.table.rows.take(as_ints(np.concatenate([np.zeros(0, dtype=np.int64), *rows])))

    def lower_bound(self) -> Any:
        found = {
            "step_s": as_floats(self.table.bound_s),
            "memory_bytes": as_floats(self.table.bound_memory),
            "memory_capacity_bytes": as_floats(self.table.capacity),
        }
        return self._told("lower_bound", found)

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Any:
        self.evaluated += len(chunk)
        self.largest = max(self.largest, len(chunk))
        rows = chunk.batch_per_worker - 1
        memory = self.table.memory[rows]
        found = {
            "step_s": self.table.step_s[rows],
            "memory_bytes": memory,
            "memory_capacity_bytes": self.table.capacity[self.table.origin[rows]],
            "weights_bytes": 0.25 * memory,
            "activations_bytes": 0.75 * memory,
        }
        return self._told("evaluate", {name: found[name] for name in columns})

    def _told(self, method: str, found: dict[str, Any]) -> Any:
        wrong = self.wrong.get(method, {})
        if isinstance(wrong, BaseException):
            raise wrong
        return found | wrong if isinstance(wrong, dict) else wrong

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        rows = configurations.batch_per_worker - 1
        step_s, memory = self.table.step_s[rows], self.table.memory[rows]
        excess = np.maximum(memory - self.table.capacity[self.table.origin[rows]], 0.0)
        fits = excess == 0.0
        step_s = np.where(fits, step_s, 0.0)
        return Predictions(
            status=as_ints(np.where(fits, RowStatus.ANSWERED, RowStatus.INFEASIBLE_MEMORY)),
            step_s=as_floats(step_s),
            log_spread=as_floats(np.where(fits, 0.1, 0.0)),
            breakdown_s={"compute": as_floats(0.75 * step_s), "exposed_tensor": as_floats(0.25 * step_s)},
            bottlenecks=("compute",),
            bottleneck_index=as_ints(np.where(fits, 0, -1)),
            extrapolation=as_floats(np.where(fits, 1.0, 0.0)),
            memory_bytes=as_floats(memory),
            excess_memory_bytes=as_floats(excess),
        )


class TableEstimator:
    """Fits every profile into one planning model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def assess(self, profile: Profile, query: Query) -> Assessment:
        return Assessment(evidence=("a table",), strength=0.0)

    def fit(self, profile: Profile, context: object) -> Any:
        return self.model


def planner(model: Any, name: str = "table") -> EstimatorRecord:
    return EstimatorRecord(
        name=name,
        version="1.0",
        description="for tests",
        estimator=TableEstimator(model),
        capabilities=frozenset({"plan"}),
        columns=COLUMNS,
    )


def checked_model(model: Any) -> CheckedModel:
    return CheckedModel(LoadedPlugin(record_of("table", model), "tests 1.0", "inline"), model)
