"""A planning model whose every answer is checked before a search goes by it, and its space with bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.planning import Exclusion, PlanConstraints
from nodewise.hosting.calls import ImpossibleAnswerError, call, impossible, read, unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.hosting.soundness import is_name
from nodewise.plugin import EstimatorRecord, Model, PlanSpace

__all__ = ["COLUMNS", "REQUIRED", "BoundedSpace", "CheckedModel", "Values"]

COLUMNS: Final = ("step_s", "memory_bytes", "memory_capacity_bytes")
UPPER: Final = "memory_upper_bytes"
"""What models with ``tells_upper_memory`` evaluate as well."""
REQUIRED: Final = frozenset({"nodes", "workers", "device_index", "global_batch", "parameter_servers", "sync_mode"})
"""What a prefix must settle: keys and limits are made of it."""
LEAST_STEP_S: Final = 1e-9
"""As in predictions (``estimation.estimators.check``); those that last too long to be true lose."""
BOUND_TOLERANCE: Final = 1e-9
"""Relative amount by which a value below its bound is called a fault; rounding is not the model's fault to prove."""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """What is known of some rows: seconds of a step, memory needed, and memory there is (infinite = not known).

    ``upper_bytes`` must fit as well: the memory's upper bound where headroom is wanted, else what is needed.
    """

    step_s: Floats
    memory_bytes: Floats
    capacity_bytes: Floats
    upper_bytes: Floats

    @staticmethod
    def concatenate(parts: Sequence[Values]) -> Values:
        """The rows of all parts, one after the other."""
        columns = ([getattr(part, each.name) for part in parts] for each in fields(Values))
        return Values(*(np.concatenate(column) if column else np.zeros(0) for column in columns))

    @property
    def excess_bytes(self) -> Floats:
        """Memory that is missing on each device."""
        return np.maximum(np.maximum(self.memory_bytes, self.upper_bytes) - self.capacity_bytes, 0.0)

    def fits(self) -> NDArray[np.bool_]:
        """Rows that need no more memory than there is."""
        return np.maximum(self.memory_bytes, self.upper_bytes) <= self.capacity_bytes

    def take(self, rows: Ints) -> Values:
        """Some rows."""
        return Values(*(getattr(self, each.name)[rows] for each in fields(self)))


class CheckedModel:
    """A fitted model of one estimator.

    Parameters
    ----------
    loaded : Loaded
        Its estimator, for faults.
    model : Model
        It has the methods of PlanningModel.
    """

    def __init__(self, loaded: LoadedPlugin[EstimatorRecord], model: Model) -> None:
        self._loaded = loaded
        self._model = model

    @property
    def name(self) -> str:
        """Name of the estimator."""
        return self._loaded.record.name

    def space(self, constraints: PlanConstraints) -> BoundedSpace:
        """The space within the constraints, with the bounds of its prefixes.

        Raises
        ------
        NodewiseError
            What the model raises; ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT.
        """
        space: Any = call(self._loaded, self._model, "space", constraints, check=_anything)
        part = partial(read, self._loaded, space, method="space")
        prefixes: Configurations = part("prefixes", check=_prefixes)
        sizes: Ints = part("sizes", check=unless_wrong(lambda column: _wrong_sizes(column, len(prefixes))))
        final: frozenset[str] = part("final", check=_final)
        exclusions: tuple[Exclusion, ...] = part("exclusions", check=_exclusions)
        bounds = _constrain(self._values(space, "lower_bound", rows=len(prefixes)), constraints)
        return BoundedSpace(prefixes, sizes.astype(np.int64), bounds, final, exclusions, constraints, self, space)

    def evaluate(self, chunk: Configurations, constraints: PlanConstraints) -> Values:
        """Step time and memory of completions."""
        upper = constraints.upper_memory and getattr(self._model, "tells_upper_memory", False)
        columns = (*COLUMNS, UPPER) if upper else COLUMNS
        found = self._values(self._model, "evaluate", chunk, columns, rows=len(chunk))
        return _constrain(found, constraints)

    def memory_terms(self, rows: Configurations) -> dict[str, Floats]:
        """What the memory of some rows consists of."""
        names = read(self._loaded, self._model, "memory_terms", check=_names)
        columns = partial(_columns, names=names, rows=len(rows))
        return call(self._loaded, self._model, "evaluate", rows, names, check=columns)

    def completed(self, space: PlanSpace, prefixes: Ints, count: int) -> Configurations:
        """Completions of some prefixes."""

        def wrong_with(rows: Any) -> str | None:
            if isinstance(rows, Configurations) and len(rows) == count:
                return None
            return "it is not as many Configurations as the sizes of the prefixes say"

        rows: Configurations = call(self._loaded, space, "completed", prefixes, check=unless_wrong(wrong_with))
        return rows

    def unsound(self, problem: str) -> NodewiseError:
        """That a bound does not hold."""
        return impossible(self._loaded, "lower_bound", problem)

    def _values(self, target: Any, method: str, *arguments: Any, rows: int) -> Values:
        def check(answer: Any) -> Values:
            wanted = next((part for part in arguments if isinstance(part, tuple)), COLUMNS)
            columns = _columns(answer, wanted, rows)
            step_s, memory, capacity = (columns[name] for name in COLUMNS)
            if rows and step_s.min() < LEAST_STEP_S:
                raise ImpossibleAnswerError(f"step_s is below {LEAST_STEP_S:g} s")
            return Values(step_s, memory, np.where(capacity > 0.0, capacity, np.inf), columns.get(UPPER, memory))

        return call(self._loaded, target, method, *arguments, check=check)


@dataclass(frozen=True, slots=True, eq=False)
class BoundedSpace:
    """A space with the bounds of its prefixes, within constraints; made by :meth:`CheckedModel.space`."""

    prefixes: Configurations
    sizes: Ints
    bounds: Values
    final: frozenset[str]
    exclusions: tuple[Exclusion, ...]
    constraints: PlanConstraints
    model: CheckedModel
    space: PlanSpace

    @property
    def total(self) -> int:
        """Configurations in all."""
        return int(self.sizes.sum())

    def evaluate(self, prefixes: Ints) -> tuple[Configurations, Values, Ints]:
        """All completions of some prefixes, their values, and the prefix of each.

        Raises
        ------
        NodewiseError
            ESTIMATOR_INVALID_RESULT, also where a completion is below the bound of its prefix.
        """
        sizes = self.sizes[prefixes]
        origin = np.repeat(prefixes, sizes)
        rows = self.model.completed(self.space, prefixes, len(origin))
        values = self.model.evaluate(rows, self.constraints)
        for name in ("step_s", "memory_bytes"):
            bound, found = getattr(self.bounds, name), getattr(values, name)
            if (found < bound[origin] * (1.0 - BOUND_TOLERANCE)).any():
                raise self.model.unsound(f"a completion's {name} is below the bound of its prefix")
        return rows, values, origin


def _constrain(found: Values, constraints: PlanConstraints) -> Values:
    """With the memory that the constraints leave."""
    if constraints.memory_factor == 1.0 and constraints.memory_headroom_bytes == 0.0:
        return found
    capacity = found.capacity_bytes * constraints.memory_factor - constraints.memory_headroom_bytes
    return replace(found, capacity_bytes=np.maximum(capacity, 0.0))


def _anything(answer: Any) -> Any:
    """What is checked part by part."""
    return answer


def _prefixes(answer: Any) -> Configurations:
    if not isinstance(answer, Configurations):
        raise ImpossibleAnswerError(f"prefixes are a {type(answer).__name__} instead of Configurations")
    if len(answer) and min(answer.workers.min(), answer.nodes.min(), answer.global_batch.min()) < 1:
        raise ImpossibleAnswerError("a prefix has no workers, nodes or global batch")
    return answer


def _wrong_sizes(sizes: Any, prefixes: int) -> str | None:
    if _is_column(sizes, prefixes, "iu") and not (sizes < 0).any():
        return None
    return f"sizes are no column of whole numbers for {prefixes} prefixes"


def _final(answer: Any) -> frozenset[str]:
    final = frozenset(answer)
    missing = sorted(REQUIRED - final)
    if missing:
        raise ImpossibleAnswerError(f"a prefix must settle {missing[0]}")
    return final


def _exclusions(answer: Any) -> tuple[Exclusion, ...]:
    exclusions = tuple(answer)
    if not all(isinstance(exclusion, Exclusion) for exclusion in exclusions):
        raise ImpossibleAnswerError("exclusions holds something that is no Exclusion")
    return exclusions


def _names(answer: Any) -> tuple[str, ...]:
    names = tuple(answer)
    if isinstance(answer, str) or not all(is_name(name) for name in names):
        raise ImpossibleAnswerError("it has a name that is no printable text of 1 to 64 characters")
    return names


def _columns(answer: Any, names: Sequence[str], rows: int) -> dict[str, Floats]:
    if not isinstance(answer, Mapping):
        raise ImpossibleAnswerError(f"it is a {type(answer).__name__} instead of a mapping of columns")
    found: dict[str, Floats] = {}
    for name in names:
        column: Any = answer.get(name)
        if not _is_column(column, rows, "f"):
            raise ImpossibleAnswerError(f"{name} is no column of numbers for {rows} rows")
        if rows and not (np.isfinite(column).all() and column.min() >= 0.0):
            raise ImpossibleAnswerError(f"{name} is not finite or is negative")
        found[name] = column
    return found


def _is_column(column: Any, rows: int, kinds: str) -> bool:
    return isinstance(column, np.ndarray) and column.shape == (rows,) and column.dtype.kind in kinds
