"""The frontier of offers, and the one to take: what chance may do is held against it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.completion.questions import Choice, OfferResult
from nodewise.domain.columns import Floats
from nodewise.domain.completions import CompletionSpread
from nodewise.domain.objective import FewestDevices, LeastCost, LeastTime, Objective

__all__ = ["choose_offer", "frontier_of", "least_sure", "pareto_mask"]

SURE_ERRORS: Final = 1.64
"""Standard errors by which a share of runs has to exceed a confidence: of offers just below it one in twenty passes."""
NEVER: Final = "ever finishes the job"
RULE_OF_THREE: Final = 3.0
"""What is seen in none of n runs has a chance of at most 3 / n (at 95 %)."""


def pareto_mask(costs: Floats) -> NDArray[np.bool_]:
    """Rows that no other row dominates: nowhere more, somewhere less. Equal rows all stay."""
    kept = np.ones(len(costs), dtype=np.bool_)
    for at, row in enumerate(costs):
        no_more = np.all(costs <= row, axis=1)
        kept[at] = not np.any(no_more & np.any(costs < row, axis=1))
    return kept


def frontier_of(rows: Sequence[OfferResult]) -> tuple[int, ...]:
    """Answered rows that no other beats in mean cost, 90th percentile of time (mean, if alone known), failures."""
    places = [at for at, row in enumerate(rows) if row.completion is not None]
    if not places:
        return ()
    costs = np.array([_judged_by(rows[at]) for at in places])
    return tuple(at for at, kept in zip(places, pareto_mask(costs).tolist(), strict=True) if kept)


def _judged_by(row: OfferResult) -> tuple[float, float, float]:
    found = row.completion
    assert found is not None
    simulated = found.failure_probability is not None
    time_s = found.time_s.p90 if simulated else found.time_s.mean
    return _or_never(found.cost.mean), _or_never(time_s), found.failure_probability or 0.0


def _or_never(value: float | None) -> float:
    return math.inf if value is None else value


def least_sure(share: float, runs: int) -> float:
    """What a probability is at least, by a share of so many runs."""
    if share >= 1.0:
        return 1.0 - RULE_OF_THREE / runs
    return share - SURE_ERRORS * math.sqrt(share * (1.0 - share) / runs)


def choose_offer(rows: Sequence[OfferResult], objective: Objective, runs: int) -> tuple[Choice | None, str]:
    """The row to take, or why none is."""
    rule, confidence = objective.rule, objective.confidence
    answered = [at for at, row in enumerate(rows) if row.completion is not None]
    if not answered:
        return None, "no offer could be answered" if rows else ""
    passed = [at for at in answered if _meets(rows[at], objective, runs)]
    limit = _limit_of(objective)
    if not passed:
        best = max(answered, key=lambda at: _closeness(rows[at], objective))
        return (
            None,
            f"none of {len(answered)} offers {limit or NEVER}; the closest is {_describe(rows[best], objective)}",
        )
    if isinstance(rule, LeastTime):
        best, name, what = min(passed, key=lambda at: _time(rows[at], confidence)), "least_time", "fastest"
    elif isinstance(rule, FewestDevices):
        best = min(passed, key=lambda at: (_workers(rows[at]), _cost(rows[at])))
        name, what = "fewest_devices", "one with the fewest devices"
    else:
        best, name, what = (
            min(passed, key=lambda at: (_cost(rows[at]), _time(rows[at], None))),
            "least_cost",
            "cheapest",
        )
    among = f"{len(answered)} offers"
    if limit:
        among = f"{among}, of which {len(passed)} {limit if len(passed) == 1 else _plural(limit)}"
    why = f"{_describe(rows[best], objective)}: the {what} of {among}"
    return Choice(row=best, rule=name, why=why), ""


def _deadline_s(objective: Objective) -> float | None:
    rule = objective.rule
    return rule.deadline_s if isinstance(rule, LeastCost | FewestDevices) else None


def _limit_of(objective: Objective) -> str:
    """What an offer has to do, in words; empty = to be done."""
    sure = "" if objective.confidence is None else f" with {100.0 * objective.confidence:.4g} %"
    deadline_s, rule = _deadline_s(objective), objective.rule
    if deadline_s is not None:
        by = "finishes" if objective.confidence is not None else "finishes on average"
        return f"{by} by {deadline_s / 3600.0:.4g} h{sure}"
    if isinstance(rule, LeastTime) and (rule.max_cost is not None or rule.max_nodes is not None):
        cost = "" if rule.max_cost is None else f" costs at most {rule.max_cost:.6g}{sure}"
        nodes = "" if rule.max_nodes is None else f" has at most {rule.max_nodes} nodes"
        return " and".join(filter(None, (cost, nodes))).strip()
    if objective.confidence is not None:
        return f"ever finishes the job{sure}"
    return ""


def _plural(limit: str) -> str:
    """What several offers do."""
    for one, many in (("finishes ", "finish "), ("costs ", "cost "), ("has ", "have ")):
        limit = limit.replace(one, many)
    return limit


def _meets(row: OfferResult, objective: Objective, runs: int) -> bool:
    found = row.completion
    assert found is not None
    if found.cost.mean is None or found.time_s.mean is None:
        return False
    rule, confidence, deadline_s = objective.rule, objective.confidence, _deadline_s(objective)
    if isinstance(rule, LeastTime):
        assert row.offer is not None
        if rule.max_nodes is not None and row.offer.nodes > rule.max_nodes:
            return False
        if rule.max_cost is not None and _quantile(found.cost, confidence) > rule.max_cost:
            return False
    if confidence is None:
        return deadline_s is None or found.time_s.mean <= deadline_s
    if found.failure_probability is None:  # of closed forms a mean alone is known, or all is certain
        return deadline_s is None or found.time_s.mean <= deadline_s
    share = 1.0 - found.failure_probability if deadline_s is None else found.deadline_probability or 0.0
    if found.time_s.standard_error is None:  # all is certain: one run told it
        return share >= confidence
    return least_sure(share, runs) >= confidence


def _quantile(found: CompletionSpread, confidence: float | None) -> float:
    """A bound that holds with a confidence, at the next of the quantiles that are told; the mean without."""
    if confidence is None:
        return _or_never(found.mean)
    quantiles = ((0.5, found.p50), (0.9, found.p90), (0.99, found.p99))
    return next((_or_never(value) for share, value in quantiles if confidence <= share), math.inf)


def _time(row: OfferResult, confidence: float | None) -> float:
    assert row.completion is not None
    found = row.completion.time_s
    return _quantile(found, confidence) if found.p50 is not None else _or_never(found.mean)


def _cost(row: OfferResult) -> float:
    assert row.completion is not None
    return _or_never(row.completion.cost.mean)


def _workers(row: OfferResult) -> int:
    assert row.offer is not None
    return row.offer.workers


def _closeness(row: OfferResult, objective: Objective) -> tuple[float, float]:
    """How close a row that fails comes to what is asked for."""
    found = row.completion
    assert found is not None
    chance = (
        found.deadline_probability if _deadline_s(objective) is not None else 1.0 - (found.failure_probability or 0)
    )
    return chance or 0.0, -_or_never(found.time_s.mean)


def _describe(row: OfferResult, objective: Objective) -> str:
    """A row with its numbers."""
    found = row.completion
    assert found is not None
    if found.time_s.mean is None or found.cost.mean is None:
        return f"{row.name!r}, which never finishes"
    parts = [f"{found.time_s.mean / 3600.0:.4g} h for {found.cost.mean:.6g} on average"]
    deadline_s = _deadline_s(objective)
    if deadline_s is not None and found.deadline_probability is not None:
        parts.append(f"{100.0 * found.deadline_probability:.2f} % of the runs finish by {deadline_s / 3600.0:.4g} h")
    elif found.failure_probability:
        parts.append(f"{100.0 * found.failure_probability:.2f} % of the runs never finish")
    return f"{row.name!r} ({', '.join(parts)})"
