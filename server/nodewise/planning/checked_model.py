"""A planning model whose answers are checked before a search uses them, and its space with bounds."""

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
"""A further column of models with ``tells_upper_memory``."""
REQUIRED: Final = frozenset({"nodes", "workers", "device_index", "global_batch", "parameter_servers", "sync_mode"})
"""Dimensions that a prefix must fix: keys and limits are computed from them."""
LEAST_STEP_S: Final = 1e-9
"""As in predictions (``estimation.estimators.check``). No upper limit is needed: a search prefers shorter steps."""
BOUND_TOLERANCE: Final = 1e-9
"""Relative difference to its bound below which a value is a fault of the model; smaller differences are rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Values of some rows: seconds per step, memory needed, and memory available (infinite = not known).

    ``upper_bytes`` must fit as well: the upper bound of the memory needed where the question states headroom, else the
    memory needed.
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
    plugin : LoadedPlugin
        The estimator that faults of the model count against.
    model : Model
        A model with the methods of PlanningModel.
    """

    def __init__(self, plugin: LoadedPlugin[EstimatorRecord], model: Model) -> None:
        self._plugin = plugin
        self._model = model

    @property
    def name(self) -> str:
        """Name of the estimator."""
        return self._plugin.record.name

    def space(self, constraints: PlanConstraints) -> BoundedSpace:
        """The space within the constraints, with the bounds of its prefixes.

        Raises
        ------
        NodewiseError
            What the model raises; ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT.
        """
        space: Any = call(self._plugin, self._model, "space", constraints, check=_anything)
        part = partial(read, self._plugin, space, method="space")
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
        values = self._values(self._model, "evaluate", chunk, columns, rows=len(chunk))
        return _constrain(values, constraints)

    def memory_terms(self, rows: Configurations) -> dict[str, Floats]:
        """Parts of the memory of some rows, in bytes."""
        names = read(self._plugin, self._model, "memory_terms", check=_names)
        columns = partial(_columns, names=names, rows=len(rows))
        return call(self._plugin, self._model, "evaluate", rows, names, check=columns)

    def completed(self, space: PlanSpace, prefixes: Ints, count: int) -> Configurations:
        """Completions of some prefixes."""

        def wrong_with(rows: Any) -> str | None:
            if isinstance(rows, Configurations) and len(rows) == count:
                return None
            return f"it must return Configurations of {count} rows, the sum of the sizes of the prefixes"

        rows: Configurations = call(self._plugin, space, "completed", prefixes, check=unless_wrong(wrong_with))
        return rows

    def unsound(self, problem: str) -> NodewiseError:
        """The error of a bound that does not hold."""
        return impossible(self._plugin, "lower_bound", problem)

    def _values(self, target: Any, method: str, *arguments: Any, rows: int) -> Values:
        def check(answer: Any) -> Values:
            names = next((part for part in arguments if isinstance(part, tuple)), COLUMNS)
            columns = _columns(answer, names, rows)
            step_s, memory, capacity = (columns[name] for name in COLUMNS)
            if rows and step_s.min() < LEAST_STEP_S:
                raise ImpossibleAnswerError(f"step_s is below {LEAST_STEP_S:g} s")
            return Values(step_s, memory, np.where(capacity > 0.0, capacity, np.inf), columns.get(UPPER, memory))

        return call(self._plugin, target, method, *arguments, check=check)


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
            bound, column = getattr(self.bounds, name), getattr(values, name)
            if (column < bound[origin] * (1.0 - BOUND_TOLERANCE)).any():
                raise self.model.unsound(f"a completion's {name} is below the bound of its prefix")
        return rows, values, origin


def _constrain(values: Values, constraints: PlanConstraints) -> Values:
    """The values with the memory that the constraints leave."""
    if constraints.memory_factor == 1.0 and constraints.memory_headroom_bytes == 0.0:
        return values
    capacity = values.capacity_bytes * constraints.memory_factor - constraints.memory_headroom_bytes
    return replace(values, capacity_bytes=np.maximum(capacity, 0.0))


def _anything(answer: Any) -> Any:
    """Accept an answer whose parts are checked one by one."""
    return answer


def _prefixes(answer: Any) -> Configurations:
    if not isinstance(answer, Configurations):
        raise ImpossibleAnswerError(f"prefixes must be Configurations, found {type(answer).__name__}")
    if len(answer) and min(answer.workers.min(), answer.nodes.min(), answer.global_batch.min()) < 1:
        raise ImpossibleAnswerError("workers, nodes and global_batch of every prefix must be 1 or more")
    return answer


def _wrong_sizes(sizes: Any, prefixes: int) -> str | None:
    if _is_column(sizes, prefixes, "iu") and not (sizes < 0).any():
        return None
    return f"sizes must be {prefixes} integers of 0 or more, one for each prefix"


def _final(answer: Any) -> frozenset[str]:
    final = frozenset(answer)
    missing = sorted(REQUIRED - final)
    if missing:
        raise ImpossibleAnswerError(f"final must contain {missing[0]!r}, which every prefix must fix")
    return final


def _exclusions(answer: Any) -> tuple[Exclusion, ...]:
    exclusions = tuple(answer)
    if not all(isinstance(exclusion, Exclusion) for exclusion in exclusions):
        raise ImpossibleAnswerError("exclusions must contain nothing but Exclusion objects")
    return exclusions


def _names(answer: Any) -> tuple[str, ...]:
    names = tuple(answer)
    if isinstance(answer, str) or not all(is_name(name) for name in names):
        raise ImpossibleAnswerError("names must be printable texts of 1 to 64 characters")
    return names


def _columns(answer: Any, names: Sequence[str], rows: int) -> dict[str, Floats]:
    if not isinstance(answer, Mapping):
        raise ImpossibleAnswerError(f"it must return a mapping of columns, found {type(answer).__name__}")
    columns: dict[str, Floats] = {}
    for name in names:
        column: Any = answer.get(name)
        if not _is_column(column, rows, "f"):
            raise ImpossibleAnswerError(f"{name} must be an array of {rows} floating-point numbers, one for each row")
        if rows and not (np.isfinite(column).all() and column.min() >= 0.0):
            raise ImpossibleAnswerError(f"{name} must be finite and 0 or more in every row")
        columns[name] = column
    return columns


def _is_column(column: Any, rows: int, kinds: str) -> bool:
    return isinstance(column, np.ndarray) and column.shape == (rows,) and column.dtype.kind in kinds
