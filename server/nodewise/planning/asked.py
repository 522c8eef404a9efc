"""A planning model as a search asks it: every answer is checked, every fault is told without the plugin's insides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.planning import Exclusion, PlanConstraints
from nodewise.estimation.faults import failure, told
from nodewise.estimation.registry import Loaded
from nodewise.plugin import EstimatorRecord, PlanningModel, PlanSpace

__all__ = ["COLUMNS", "AskedModel", "AskedSpace", "Values"]

COLUMNS: Final = ("step_s", "memory_bytes", "memory_capacity_bytes")
REQUIRED: Final = frozenset({"nodes", "workers", "device_index", "global_batch", "parameter_servers", "sync_mode"})
"""What a prefix must settle: keys and limits are made of it."""
LEAST_STEP_S: Final = 1e-9
"""As in predictions (``estimation.check``); those that last too long to be true lose."""
BOUND_TOLERANCE: Final = 1e-9
"""Relative amount by which a value below its bound is called a fault; rounding is not the model's fault to prove."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """What is known of some rows: seconds of a step, memory needed, and memory there is (infinite = not known)."""

    step_s: Floats
    memory_bytes: Floats
    capacity_bytes: Floats

    @property
    def excess_bytes(self) -> Floats:
        """Memory that is missing on each device."""
        return np.maximum(self.memory_bytes - self.capacity_bytes, 0.0)

    def fits(self) -> NDArray[np.bool_]:
        """Rows that need no more memory than there is."""
        return self.memory_bytes <= self.capacity_bytes

    def take(self, rows: Ints) -> Values:
        """Some rows."""
        return Values(self.step_s[rows], self.memory_bytes[rows], self.capacity_bytes[rows])


class AskedModel:
    """A fitted model of one estimator.

    Parameters
    ----------
    loaded : Loaded
        Its estimator, for faults.
    model : PlanningModel
        The model.
    """

    def __init__(self, loaded: Loaded[EstimatorRecord], model: PlanningModel) -> None:
        self._loaded = loaded
        self._model = model

    @property
    def name(self) -> str:
        """Name of the estimator."""
        return self._loaded.record.name

    def space(self, constraints: PlanConstraints) -> AskedSpace:
        """The space within the constraints, with the bounds of its prefixes.

        Raises
        ------
        NodewiseError
            What the model raises; ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT.
        """
        space: Any = self._called("space", lambda: self._model.space(constraints))
        prefixes: Any = self._called("space", lambda: space.prefixes)
        sizes: Any = self._called("space", lambda: space.sizes)
        if not isinstance(prefixes, Configurations):
            raise self._invalid("space", f"prefixes are a {type(prefixes).__name__} instead of Configurations")
        if not _is_column(sizes, len(prefixes), "iu") or (sizes < 0).any():
            raise self._invalid("space", f"sizes are no column of whole numbers for {len(prefixes)} prefixes")
        final = self._called("space", lambda: frozenset(space.final))
        exclusions = self._called("space", lambda: tuple(space.exclusions))
        missing = sorted(REQUIRED - final)
        if missing:
            raise self._invalid("space", f"a prefix must settle {missing[0]}")
        if len(prefixes) and (min(prefixes.workers.min(), prefixes.nodes.min(), prefixes.global_batch.min()) < 1):
            raise self._invalid("space", "a prefix has no workers, nodes or global batch")
        bounds = self._values("lower_bound", space.lower_bound, len(prefixes))
        return AskedSpace(self, space, prefixes, sizes.astype(np.int64), bounds, constraints, final, exclusions)

    def evaluate(self, chunk: Configurations, constraints: PlanConstraints) -> Values:
        """Step time and memory of completions."""
        found = self._values("evaluate", lambda: self._model.evaluate(chunk, COLUMNS), len(chunk))
        return _constrained(found, constraints)

    def memory_terms(self, rows: Configurations) -> dict[str, Floats]:
        """What the memory of some rows consists of."""
        names = tuple(self._called("memory_terms", lambda: self._model.memory_terms))
        return self._columns("evaluate", lambda: self._model.evaluate(rows, names), names, len(rows))

    def completed(self, space: PlanSpace, prefixes: Ints, count: int) -> Configurations:
        """Completions of some prefixes."""
        rows: Any = self._called("completed", lambda: space.completed(prefixes))
        if not isinstance(rows, Configurations) or len(rows) != count:
            raise self._invalid("completed", "it is not as many Configurations as the sizes of the prefixes say")
        return rows

    def unsound(self, problem: str) -> NodewiseError:
        """That a bound does not hold."""
        return self._invalid("lower_bound", problem)

    def _values(self, method: str, call: Callable[[], Any], rows: int) -> Values:
        columns = self._columns(method, call, COLUMNS, rows)
        step_s, memory, capacity = (columns[name] for name in COLUMNS)
        if rows and step_s.min() < LEAST_STEP_S:
            raise self._invalid(method, f"step_s is below {LEAST_STEP_S:g} s")
        return Values(step_s, memory, np.where(capacity > 0.0, capacity, np.inf))

    def _columns(self, method: str, call: Callable[[], Any], names: Sequence[str], rows: int) -> dict[str, Floats]:
        answer: Any = self._called(method, call)
        if not isinstance(answer, Mapping):
            raise self._invalid(method, f"it is a {type(answer).__name__} instead of a mapping of columns")
        found: dict[str, Floats] = {}
        for name in names:
            column: Any = answer.get(name)
            if not _is_column(column, rows, "f"):
                raise self._invalid(method, f"{name} is no column of numbers for {rows} rows")
            if rows and not (np.isfinite(column).all() and column.min() >= 0.0):
                raise self._invalid(method, f"{name} is not finite or is negative")
            found[name] = column
        return found

    def _called(self, method: str, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except NodewiseError as error:
            raise told(self._loaded, method, error) from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
            raise failure(self._loaded, method, error) from None

    def _invalid(self, method: str, problem: str) -> NodewiseError:
        return NodewiseError(
            Reason.ESTIMATOR_INVALID_RESULT,
            f"estimator {self.name!r} answered {method} with something that cannot be true: {problem}",
            {"estimator": self.name, "method": method, "problem": problem},
        )


class AskedSpace:
    """A space with the bounds of its prefixes; made by :meth:`AskedModel.space`."""

    def __init__(
        self,
        model: AskedModel,
        space: PlanSpace,
        prefixes: Configurations,
        sizes: Ints,
        bounds: Values,
        constraints: PlanConstraints,
        final: frozenset[str],
        exclusions: tuple[Exclusion, ...],
    ) -> None:
        self._model = model
        self._space = space
        self._constraints = constraints
        self.prefixes = prefixes
        self.sizes = sizes
        self.bounds = _constrained(bounds, constraints)
        self.total = int(sizes.sum())
        self.exclusions = exclusions
        self.final = final

    def evaluated(self, prefixes: Ints) -> tuple[Configurations, Values, Ints]:
        """All completions of some prefixes, their values, and the prefix of each.

        Raises
        ------
        NodewiseError
            ESTIMATOR_INVALID_RESULT, also where a completion is below the bound of its prefix.
        """
        sizes = self.sizes[prefixes]
        origin = np.repeat(prefixes, sizes)
        rows = self._model.completed(self._space, prefixes, len(origin))
        values = self._model.evaluate(rows, self._constraints)
        for name in ("step_s", "memory_bytes"):
            bound, found = getattr(self.bounds, name), getattr(values, name)
            if (found < bound[origin] * (1.0 - BOUND_TOLERANCE)).any():
                raise self._model.unsound(f"a completion's {name} is below the bound of its prefix")
        return rows, values, origin


def _constrained(found: Values, constraints: PlanConstraints) -> Values:
    """With the memory that the constraints leave."""
    if constraints.memory_factor == 1.0 and constraints.memory_headroom_bytes == 0.0:
        return found
    capacity = found.capacity_bytes * constraints.memory_factor - constraints.memory_headroom_bytes
    return Values(found.step_s, found.memory_bytes, np.maximum(capacity, 0.0))


def _is_column(column: Any, rows: int, kinds: str) -> bool:
    return isinstance(column, np.ndarray) and column.shape == (rows,) and column.dtype.kind in kinds
