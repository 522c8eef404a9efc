"""A search over strategies: each is replayed alone and in combinations, because gains do not add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from math import sqrt
from typing import Final

import numpy as np

from nodewise.plugin import Change, ChangeKind, Strategy
from nodewise_diagnosis.accounting import Accounting, PartName
from nodewise_diagnosis.bottlenecks import RankedBottleneck
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.options import EVERYTHING, Attempt, Level, Option, changed_job, options
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.stopwatch import NS, Edit, Stopwatch

__all__ = ["search_strategies"]

_POOL: Final = 10
"""Single strategies that are combined: the best ones."""

_BEAM: Final = 4
"""Combinations of each size that are extended."""

_LARGEST: Final = 5
"""Most strategies in a combination."""

_LEAST_GAIN: Final = 0.002
"""Least gain, as a share of the step, that is reported."""

_NORMAL_90: Final = 1.645
_DEVIATION_OF_MEAN_DIFFERENCE: Final = 1.2533
"""Standard deviation over mean absolute deviation of a normal distribution."""


@dataclass(frozen=True, slots=True)
class _Trial:
    parts: tuple[int, ...]
    step_ns: float
    per_sample_ns: float


def search_strategies(
    case: Case, accounting: Accounting, bottlenecks: Sequence[RankedBottleneck], noise_s: float
) -> tuple[tuple[Strategy, ...], bool]:
    """The best strategies, single and combined, by speed-up per sample; whether the search came to its end.

    All pairs of the best single strategies are replayed, so that two that help only together are found; the best
    combinations are then extended.
    """
    count = case.question.strategies
    if count <= 0:
        return (), True
    search = _Search(case, accounting, list(options(case, accounting, bottlenecks)), noise_s)
    trials = search.all_tried()
    trials.sort(key=lambda one: (one.per_sample_ns, len(one.parts)))
    # Single strategies are what people begin with: they have half of the places at least. Of combinations the best of
    # each size come first, as those of one size are much alike.
    single = [one for one in trials if len(one.parts) == 1]
    of_size = [[one for one in trials if len(one.parts) == size] for size in range(2, _LARGEST + 1)]
    by_gain = [one for places in zip_longest(*of_size) for one in places if one is not None]
    single = single[: max(count - len(by_gain), count - count // 2)]
    best = single + by_gain[: count - len(single)]
    best.sort(key=lambda one: (one.per_sample_ns, len(one.parts)))
    return tuple(search.strategy(one) for one in best), search.complete


class _Search:
    def __init__(self, case: Case, accounting: Accounting, options: list[Option], noise_s: float) -> None:
        self._accounting = accounting
        self._case, self._options, self._run, self._noise_s = case, options, case.context, noise_s
        self._recorded = case.watch.graph.duration_ns.astype(np.float64)
        self._durations = np.empty_like(self._recorded)
        self._evaluated: dict[tuple[tuple[int, ...], Level], _Trial] = {}
        self._least_ns = max(_LEAST_GAIN * case.base_ns, 1.0)
        self._done = 0
        self.complete = True

    def all_tried(self) -> list[_Trial]:
        """Strategies that gain enough to be reported."""
        singles: list[_Trial] = []
        for index in range(len(self._options)):
            if self._over():
                return singles
            one = self._try((index,))
            if one.per_sample_ns < self._case.base_ns - self._least_ns:
                singles.append(one)
        singles.sort(key=lambda one: one.per_sample_ns)
        result = list(singles)
        combinations = [one for one in singles if not self._options[one.parts[0]].alone]
        pool = [one.parts[0] for one in combinations[:_POOL]]
        # A pair may include one that gains nothing by itself: what hides its gain must be removed first.
        others = [index for index, option in enumerate(self._options) if index not in pool and not option.alone]
        idle = others[: _POOL - len(pool)]
        level = combinations
        for size in range(2, _LARGEST + 1):
            extensions: dict[tuple[int, ...], _Trial] = {}
            heads = level if size == 2 else level[:_BEAM]
            for head in heads:
                for index in pool + idle:
                    parts = tuple(sorted({*head.parts, index}))
                    if len(parts) < size or parts in extensions or not self._compatible(parts):
                        continue
                    if self._over():
                        return result + list(extensions.values())
                    one = self._try(parts)
                    if one.per_sample_ns < head.per_sample_ns - self._least_ns:
                        extensions[parts] = one
            level = sorted(extensions.values(), key=lambda one: one.per_sample_ns)
            level = [one for one in level if self._every_part_helps(one)] if size > 2 else level
            result.extend(level[: 2 * _POOL])
            if not level:
                break
        return result

    def strategy(self, trial: _Trial) -> Strategy:
        """With its interval: every part at its best and at its worst, and what steps differ by."""
        case, parts = self._case, [self._options[index] for index in trial.parts]
        spread = _NORMAL_90 * _DEVIATION_OF_MEAN_DIFFERENCE * self._noise_s / sqrt(len(case.watch.steps))
        best, worst = (self._evaluate(trial.parts, level).step_ns * NS for level in (Level.BEST, Level.WORST))
        step = trial.step_ns * NS
        acts_on = self._acts_on(trial.parts)
        return Strategy(
            name=" + ".join(part.name for part in parts),
            predicted_step_s=max(step, NS),
            speedup=case.base_ns / max(trial.per_sample_ns, 1.0),
            lower_step_s=max(min(best, step) - spread, 0.0),
            upper_step_s=max(worst, step) + spread,
            parts=tuple(part.name for part in parts) if len(parts) > 1 else (),
            changes=tuple(change for part in parts for change in part.changes),
            rests_on=self._grounds(trial.parts),
            effort="; ".join(dict.fromkeys(part.effort for part in parts)),
            acts_on=() if acts_on & EVERYTHING else tuple(sorted(f"{k}: {w}" if w else k for k, w in acts_on)),
        )

    def _over(self) -> bool:
        if self._run.remaining_s() > 0:
            return False
        self.complete = False
        return True

    def _compatible(self, parts: tuple[int, ...]) -> bool:
        """Whether no two act on one part of the step."""
        pairs = combinations([self._options[index] for index in parts], 2)
        return not any(one.group == other.group or one.overlaps(other) for one, other in pairs)

    def _acts_on(self, parts: tuple[int, ...]) -> frozenset[PartName]:
        return frozenset[PartName]().union(*(self._options[index].acts_on for index in parts))

    def _grounds(self, parts: tuple[int, ...]) -> str:
        """The basis of the parts, and the parts of the step they act on."""
        basis = "; ".join(dict.fromkeys(self._options[index].rests_on for index in parts))
        acts_on = self._acts_on(parts)
        if acts_on & EVERYTHING:
            return basis
        names = ", ".join(sorted(f"{kind} ({what})" if what else kind for kind, what in acts_on))
        return f"{basis}; acts on {names}, {self._accounting.held_of_s(acts_on) * 1e3:.3f} ms of the step"

    def _every_part_helps(self, one: _Trial) -> bool:
        for index in one.parts:
            if self._over():
                return True
            rest = self._try(tuple(part for part in one.parts if part != index))
            if rest.per_sample_ns <= one.per_sample_ns + self._least_ns:
                return False
        return True

    def _try(self, parts: tuple[int, ...]) -> _Trial:
        self._done += 1
        self._run.advanced("strategies", self._done, self._done + 1)
        return self._evaluate(parts, Level.LIKELY)

    def _evaluate(self, parts: tuple[int, ...], level: Level) -> _Trial:
        """Replay the steps with some strategies, once."""
        key = parts, level
        if key not in self._evaluated:
            self._evaluated[key] = self._replay(parts, level)
        return self._evaluated[key]

    def _replay(self, parts: tuple[int, ...], level: Level) -> _Trial:
        watch, roles = self._case.watch, self._case.roles
        np.copyto(self._durations, self._recorded)
        attempt = Attempt(self._durations, watch.graph.lag_ns)
        for index in parts:
            self._options[index].apply(attempt, level)
        step = self._step_ns(attempt)
        if attempt.micro_batches > 1:
            alone = np.where((roles.role == Role.COMMUNICATION) | roles.optimizer, 0.0, attempt.duration_ns)
            step += (attempt.micro_batches - 1) * watch.step_ns(Edit(alone, attempt.lag_ns))
        # No strategy gains more than the parts that it acts on take, whatever its replay changes besides.
        acts_on = self._acts_on(parts)
        if not acts_on & EVERYTHING:
            least = (
                (self._case.base_ns - self._accounting.held_of_s(acts_on) / NS)
                * attempt.micro_batches
                * attempt.samples
            )
            step = max(step, least)
        return _Trial(parts, step, step / (attempt.micro_batches * attempt.samples))

    def _step_ns(self, attempt: Attempt) -> float:
        watch = self._case.watch
        if attempt.bucket_bytes:
            change = Change(kind=ChangeKind.BUCKET_BYTES, value=attempt.bucket_bytes)
            changed_graph = changed_job(self._case, (change,), attempt)
            if changed_graph is not None:
                return Stopwatch(changed_graph.graph, watch.steps).step_ns(
                    Edit(changed_graph.duration_ns, changed_graph.lag_ns)
                )
        return watch.step_ns(Edit(attempt.duration_ns, attempt.lag_ns))
