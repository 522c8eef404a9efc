"""Exact best-first search over the prefixes of a space: the result is that of evaluating every configuration.

Prefixes are visited in the order of their lower bounds, a chunk of completions at a time. A prefix is pruned where none
of its completions can matter: it cannot fit into memory, cannot be within a limit, or cannot be better than the best
row so far. Where the frontier is computed too, a row of the frontier must also dominate the bounds of the prefix.
Comparisons use the values that the model computes and are strict where a tie could decide; the rows alone break ties.
So neither the order, nor the size of chunks, nor pruning changes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.planning.checked_model import BoundedSpace, Values
from nodewise.planning.frontier import Frontier, Points
from nodewise.planning.goal import KEYS, Goal
from nodewise.planning.order import first

__all__ = ["How", "Progress", "SearchResult", "search_space"]

FIRST_ROWS: Final = 512
CHUNK_ROWS: Final = 32768
"""Completions evaluated at a time: few at first, for a row to prune with; then as many as fit into a core's cache."""


FIRST_PREFIXES: Final = 512
"""Prefixes visited in the order for the best row, before the order for the frontier, whose rows prune more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How to search.

    Attributes
    ----------
    frontier : bool
        Whether to compute the frontier of time, devices and memory as well as the best row.
    prune : bool
        False = evaluate every configuration, in the order of the space.
    chunk_rows : int
        Most completions at a time, unless one prefix has more.
    budget : Budget or None
        Time left; when it is over, the best row so far is the result.
    """

    frontier: bool = True
    prune: bool = True
    chunk_rows: int = CHUNK_ROWS
    budget: Budget | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Progress:
    """Progress of a search; ``best`` is one row, or none."""

    space: int
    evaluated: int
    pruned: int
    feasible: int
    best: Configurations
    best_step_s: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SearchResult:
    """The result of a search.

    Attributes
    ----------
    winners, values : Configurations, Values
        The best row; where the goal is by scale, the best row of each scale, the smallest scale first. Empty = no
        configuration is feasible.
    frontier : Frontier or None
        The frontier of all configurations that fit into memory.
    space, evaluated, feasible : int
        Configurations in the space; of these evaluated; of those evaluated within memory and limits.
    over : mapping of limit to int
        Evaluated configurations that do not fit (``memory``), or exceed a limit of the objective.
    complete : bool
        False = the time was over before every configuration was evaluated or pruned.
    """

    winners: Configurations
    values: Values
    frontier: Frontier | None
    space: int
    evaluated: int
    feasible: int
    over: dict[str, int]
    complete: bool

    @property
    def pruned_count(self) -> int:
        """Configurations that need no evaluation."""
        return self.space - self.evaluated if self.complete else 0


@dataclass(slots=True, eq=False)
class _Best:
    """The best row of each scale so far, with its keys."""

    keys: Floats
    """Shape (KEYS, scales); infinite where a scale has no row yet."""
    rows: dict[int, tuple[Configurations, Values]] = field(default_factory=dict)

    def worse(self, keys: Floats, scales: Ints) -> NDArray[np.bool_]:
        """Mask of the rows that are strictly worse than the best of their scale.

        If a bound is worse, every row above the bound is worse.
        """
        mask = np.zeros(len(scales), dtype=bool)
        equal = np.ones(len(scales), dtype=bool)
        for number in range(KEYS):
            best = self.keys[number][scales]
            mask |= equal & (keys[number] > best)
            equal &= keys[number] == best
        return mask

    def offer(
        self, rows: Configurations, values: Values, keys: Floats, scales: Ints, feasible: NDArray[np.bool_]
    ) -> None:
        """Store the feasible rows that are better than the best of their scale."""
        promising = np.flatnonzero(feasible & ~self.worse(keys, scales))
        for scale in np.unique(scales[promising]).tolist():
            own = promising[scales[promising] == scale]
            best_row = own[first(rows.take(own), keys[:, own])]
            row, its_keys = rows.take(np.array([best_row])), keys[:, best_row]
            previous = self.rows.get(scale)
            if previous is not None and (its_keys == self.keys[:, scale]).all():
                both = Configurations.concatenated([previous[0], row])
                if first(both, np.stack((its_keys, its_keys), axis=1)) == 0:
                    continue
            self.rows[scale] = (row, values.take(np.array([best_row])))
            self.keys[:, scale] = its_keys


def search_space(
    space: BoundedSpace, goal: Goal, how: How, progress: Callable[[Progress], None] | None = None
) -> SearchResult:
    """Search a space.

    Parameters
    ----------
    progress : callable or None
        Called before the first chunk and after each; an exception that it raises ends the search.

    Raises
    ------
    NodewiseError
        What the model raises; ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT.
    """
    search = _Search(space, goal, how)
    tell = progress or (lambda _: None)
    tell(search.progress())
    complete = True
    for prefixes in search.chunks():
        if how.budget is not None and search.evaluated_count and how.budget.remaining_s() <= 0.0:
            complete = False
            break
        search.evaluate(prefixes)
        tell(search.progress())
    return search.result(complete=complete)


class _Search:
    """The state of a search."""

    def __init__(self, space: BoundedSpace, goal: Goal, how: How) -> None:
        self._space, self._goal, self._how = space, goal, how
        self.evaluated_count = self.skipped_count = self.feasible = 0
        self._over: dict[str, int] = {}
        prefixes, bounds = space.prefixes, space.bounds
        scales, self._scales = np.zeros(1, dtype=np.int64), np.zeros(len(prefixes), dtype=np.int64)
        if goal.by_scale:
            scales, self._scales = np.unique(goal.scales(prefixes), return_inverse=True)
        self._best = _Best(np.full((KEYS, len(scales)), np.inf))
        self._frontier = Frontier() if how.frontier else None
        # CheckedModel refuses bounds that are not finite, so keys of bounds are bounds of keys.
        self._keys = goal.keys(prefixes, bounds.step_s, bounds.memory_bytes, bounds.excess_bytes)
        self._hopeless = np.zeros(len(prefixes), dtype=bool)
        for limit in goal.limits(prefixes, bounds.step_s):
            self._hopeless |= limit.values > limit.most
        self._unfit = np.zeros(len(prefixes), dtype=bool) if goal.by_excess else ~bounds.fits()
        self._points = _points(prefixes, bounds)
        self._order = np.arange(len(prefixes))
        if how.prune:
            promising = np.flatnonzero(~self._unfit & ~self._hopeless if self._frontier is None else ~self._unfit)
            self._order = self._sort(promising)
            self.skipped_count = space.total - int(space.sizes[promising].sum())

    def _sort(self, prefixes: Ints) -> Ints:
        """The most promising prefixes first: by the first key, for the best row; then by the product of the bounds."""
        order = prefixes[np.argsort(self._keys[0][prefixes], kind="stable")]
        if self._frontier is None:
            return order
        rest = order[FIRST_PREFIXES:]
        points = self._points.take(rest)
        product = points.time * points.devices * np.maximum(points.memory, 1.0)
        return np.concatenate((order[:FIRST_PREFIXES], rest[np.argsort(product, kind="stable")]))

    def chunks(self) -> Iterator[Ints]:
        """Prefixes to evaluate, chunk by chunk; results of earlier chunks prune later ones."""
        most = min(FIRST_ROWS, self._how.chunk_rows)
        waiting: list[Ints] = []
        rows = at = 0
        while at < len(self._order):
            block = self._order[at : at + most]
            at += len(block)
            useful = block[self._useful(block)] if self._how.prune else block
            self.skipped_count += int(self._space.sizes[block].sum() - self._space.sizes[useful].sum())
            while len(useful):
                up_to = np.cumsum(self._space.sizes[useful])
                count = max(int(np.searchsorted(up_to, most - rows, side="right")), 0 if rows else 1)
                if count:
                    waiting.append(useful[:count])
                    rows += int(up_to[count - 1])
                useful = useful[count:]
                if len(useful) or rows >= most:
                    yield np.concatenate(waiting)
                    waiting, rows = [], 0
                    most = min(2 * most, self._how.chunk_rows)
                    if self._how.prune and len(useful):
                        left = useful[self._useful(useful)]
                        self.skipped_count += int(self._space.sizes[useful].sum() - self._space.sizes[left].sum())
                        useful = left
        if rows:
            yield np.concatenate(waiting)

    def _useful(self, prefixes: Ints) -> NDArray[np.bool_]:
        """Mask of the prefixes of which a completion may win or be on the frontier."""
        fits = ~self._unfit[prefixes]
        useful = fits & ~self._hopeless[prefixes]
        left = np.flatnonzero(useful)
        if len(left):
            few = prefixes[left]
            useful[left] = ~self._best.worse(self._keys[:, few], self._scales[few])
        if self._frontier is not None:
            others = np.flatnonzero(fits & ~useful)
            if len(others):
                useful[others] = ~self._frontier.dominates(self._points.take(prefixes[others]))
        return useful

    def evaluate(self, prefixes: Ints) -> None:
        """Evaluate all completions of some prefixes."""
        rows, values, origin = self._space.evaluate(prefixes)
        self.evaluated_count += len(rows)
        if not len(rows):
            return
        feasible = np.ones(len(rows), dtype=bool)
        if not self._goal.by_excess:
            feasible = values.fits()
            self._count("memory", ~feasible)
        fits = feasible
        for limit in self._goal.limits(rows, values.step_s):
            over = feasible & (limit.values > limit.most)
            self._count(limit.name, over)
            feasible = feasible & ~over
        self.feasible += int(np.count_nonzero(feasible))
        keys = self._goal.keys(rows, values.step_s, values.memory_bytes, values.excess_bytes)
        self._best.offer(rows, values, keys, self._scales[origin], feasible)
        if self._frontier is not None:
            self._frontier.offer(rows, _points(rows, values), fits)

    def _count(self, name: str, rows: NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(rows))
        if count:
            self._over[name] = self._over.get(name, 0) + count

    def _winners(self) -> tuple[Configurations, Values]:
        best = [self._best.rows[scale] for scale in sorted(self._best.rows)]
        if not best:
            return Configurations.of(0), Values.concatenate(())
        return Configurations.concatenated([row for row, _ in best]), Values.concatenate([values for _, values in best])

    def progress(self) -> Progress:
        """Progress so far. Of the best rows of several scales the fastest is reported."""
        winners, values = self._winners()
        fastest = np.array([int((values.step_s / winners.global_batch).argmin())] if len(winners) else [], dtype=int)
        return Progress(
            space=self._space.total,
            evaluated=self.evaluated_count,
            pruned=self.skipped_count,
            feasible=self.feasible,
            best=winners.take(fastest),
            best_step_s=values.step_s[fastest],
        )

    def result(self, *, complete: bool) -> SearchResult:
        """The result so far."""
        winners, values = self._winners()
        return SearchResult(
            winners=winners,
            values=values,
            frontier=self._frontier,
            space=self._space.total,
            evaluated=self.evaluated_count,
            feasible=self.feasible,
            over=self._over,
            complete=complete,
        )


def _points(rows: Configurations, values: Values) -> Points:
    """Time per sample, devices and memory; per sample, so that steps of different batches compare."""
    return Points(values.step_s / rows.global_batch, rows.devices_held(), values.memory_bytes)
