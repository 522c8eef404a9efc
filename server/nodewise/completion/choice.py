"""The frontier of offers, and the choice among them, which allows for the sampling error of runs."""

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
"""Standard errors by which a share of runs must exceed a confidence: one in twenty offers just below it passes."""
NEVER: Final = "ever finishes the job"
RULE_OF_THREE: Final = 3.0
"""An event in none of n runs has a probability of at most 3 / n (at 95 %)."""


def pareto_mask(costs: Floats) -> NDArray[np.bool_]:
    """Mask of the rows that no other row dominates (nowhere more, somewhere less). Equal rows all stay."""
    mask = np.ones(len(costs), dtype=np.bool_)
    for at, row in enumerate(costs):
        no_more = np.all(costs <= row, axis=1)
        mask[at] = not np.any(no_more & np.any(costs < row, axis=1))
    return mask


def frontier_of(rows: Sequence[OfferResult]) -> tuple[int, ...]:
    """Answered rows that no other dominates in mean cost, 90th percentile of time (else its mean), and failures."""
    places = [at for at, row in enumerate(rows) if row.completion is not None]
    if not places:
        return ()
    costs = np.array([_judged_by(rows[at]) for at in places])
    return tuple(at for at, on_frontier in zip(places, pareto_mask(costs).tolist(), strict=True) if on_frontier)


def _judged_by(row: OfferResult) -> tuple[float, float, float]:
    completion = row.completion
    assert completion is not None
    is_simulated = completion.failure_probability is not None
    time_s = completion.time_s.p90 if is_simulated else completion.time_s.mean
    return _or_never(completion.cost.mean), _or_never(time_s), completion.failure_probability or 0.0


def _or_never(value: float | None) -> float:
    return math.inf if value is None else value


def least_sure(share: float, runs: int) -> float:
    """A lower bound of a probability, from a share of so many runs."""
    if share >= 1.0:
        return 1.0 - RULE_OF_THREE / runs
    return share - SURE_ERRORS * math.sqrt(share * (1.0 - share) / runs)


def choose_offer(rows: Sequence[OfferResult], objective: Objective, runs: int) -> tuple[Choice | None, str]:
    """The chosen row, or the reason why there is none."""
    rule, confidence = objective.rule, objective.confidence
    answers = [at for at, row in enumerate(rows) if row.completion is not None]
    if not answers:
        return None, "no offer could be answered" if rows else ""
    suitable = [at for at in answers if _meets(rows[at], objective, runs)]
    limit = _limit_of(objective)
    if not suitable:
        best = max(answers, key=lambda at: _closeness(rows[at], objective))
        return (
            None,
            f"none of {len(answers)} offers {limit or NEVER}; the closest is {_describe(rows[best], objective)}",
        )
    if isinstance(rule, LeastTime):
        best, name, what = min(suitable, key=lambda at: _time(rows[at], confidence)), "least_time", "fastest"
    elif isinstance(rule, FewestDevices):
        best = min(suitable, key=lambda at: (_workers(rows[at]), _cost(rows[at])))
        name, what = "fewest_devices", "one with the fewest devices"
    else:
        best, name, what = (
            min(suitable, key=lambda at: (_cost(rows[at]), _time(rows[at], None))),
            "least_cost",
            "cheapest",
        )
    among = f"{len(answers)} offers"
    if limit:
        among = f"{among}, of which {len(suitable)} {limit if len(suitable) == 1 else _plural(limit)}"
    why = f"{_describe(rows[best], objective)}: the {what} of {among}"
    return Choice(row=best, rule=name, why=why), ""


def _deadline_s(objective: Objective) -> float | None:
    rule = objective.rule
    return rule.deadline_s if isinstance(rule, LeastCost | FewestDevices) else None


def _limit_of(objective: Objective) -> str:
    """The condition that an offer must meet, as text; empty = to finish."""
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
    """The condition in the plural."""
    for one, many in (("finishes ", "finish "), ("costs ", "cost "), ("has ", "have ")):
        limit = limit.replace(one, many)
    return limit


def _meets(row: OfferResult, objective: Objective, runs: int) -> bool:
    completion = row.completion
    assert completion is not None
    if completion.cost.mean is None or completion.time_s.mean is None:
        return False
    rule, confidence, deadline_s = objective.rule, objective.confidence, _deadline_s(objective)
    if isinstance(rule, LeastTime):
        assert row.offer is not None
        if rule.max_nodes is not None and row.offer.nodes > rule.max_nodes:
            return False
        if rule.max_cost is not None and _quantile(completion.cost, confidence) > rule.max_cost:
            return False
    if confidence is None:
        return deadline_s is None or completion.time_s.mean <= deadline_s
    if completion.failure_probability is None:  # closed forms give a mean alone, or all is certain
        return deadline_s is None or completion.time_s.mean <= deadline_s
    share = 1.0 - completion.failure_probability if deadline_s is None else completion.deadline_probability or 0.0
    if completion.time_s.standard_error is None:  # nothing is random: one run is exact
        return share >= confidence
    return least_sure(share, runs) >= confidence


def _quantile(spread: CompletionSpread, confidence: float | None) -> float:
    """A bound that holds with a confidence, at the next larger quantile that is given; without one the mean."""
    if confidence is None:
        return _or_never(spread.mean)
    quantiles = ((0.5, spread.p50), (0.9, spread.p90), (0.99, spread.p99))
    return next((_or_never(value) for share, value in quantiles if confidence <= share), math.inf)


def _time(row: OfferResult, confidence: float | None) -> float:
    assert row.completion is not None
    spread = row.completion.time_s
    return _quantile(spread, confidence) if spread.p50 is not None else _or_never(spread.mean)


def _cost(row: OfferResult) -> float:
    assert row.completion is not None
    return _or_never(row.completion.cost.mean)


def _workers(row: OfferResult) -> int:
    assert row.offer is not None
    return row.offer.workers


def _closeness(row: OfferResult, objective: Objective) -> tuple[float, float]:
    """How close a row that violates the limit comes to it; larger is closer."""
    outcome = row.completion
    assert outcome is not None
    chance = (
        outcome.deadline_probability if _deadline_s(objective) is not None else 1.0 - (outcome.failure_probability or 0)
    )
    return chance or 0.0, -_or_never(outcome.time_s.mean)


def _describe(row: OfferResult, objective: Objective) -> str:
    """The name and the numbers of a row, as text."""
    outcome = row.completion
    assert outcome is not None
    if outcome.time_s.mean is None or outcome.cost.mean is None:
        return f"{row.name!r}, which never finishes"
    parts = [f"{outcome.time_s.mean / 3600.0:.4g} h for {outcome.cost.mean:.6g} on average"]
    deadline_s = _deadline_s(objective)
    if deadline_s is not None and outcome.deadline_probability is not None:
        parts.append(f"{100.0 * outcome.deadline_probability:.2f} % of the runs finish by {deadline_s / 3600.0:.4g} h")
    elif outcome.failure_probability:
        parts.append(f"{100.0 * outcome.failure_probability:.2f} % of the runs never finish")
    return f"{row.name!r} ({', '.join(parts)})"
