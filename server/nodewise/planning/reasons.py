"""Why configurations are rejected, by constraint, with the numbers of the configuration that comes closest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import HighestThroughput, LeastCost, Rule
from nodewise.domain.planning import Exclusion
from nodewise.planning.checked_model import BoundedSpace, Values
from nodewise.planning.planner import Planner
from nodewise.planning.search import SearchResult
from nodewise.planning.words import describe, gib

__all__ = ["largest_term", "missing_memory", "rejections_of"]

_LIMITS: Final = ("max_nodes", "max_cost", "deadline_seconds")


def rejections_of(planner: Planner, space: BoundedSpace, result: SearchResult) -> tuple[Exclusion, ...]:
    """Configurations that the constraints allow and no model has, and evaluated configurations that cannot be used.

    Where nothing is feasible, the rejections also state which configuration comes closest and by how much it misses.
    """
    rejections = list(space.exclusions)
    if not space.total:
        if not rejections:
            rejections.append(Exclusion(constraint="space", message="no configuration satisfies all constraints"))
        return tuple(rejections)
    nothing = not len(result.winners) and result.complete
    unfit = result.over.get("memory", 0)
    if nothing and not result.over:
        # Bounds excluded every prefix: those that cannot fit, and those that cannot be within a limit.
        unfit = int(space.sizes[~space.bounds.fits()].sum())
    if unfit or (nothing and not space.bounds.fits().any()):
        rejections.append(_unfit(planner, unfit, closest=nothing))
    if nothing:
        rejections.extend(_over_limits(planner, result))
    else:
        for name in _LIMITS:
            if result.over.get(name):
                text = f"{result.over[name]} evaluated configurations exceed {name}"
                rejections.append(Exclusion(constraint=name, message=text, count=result.over[name]))
    return tuple(rejections)


def _unfit(planner: Planner, count: int, *, closest: bool) -> Exclusion:
    plain = Exclusion(
        constraint="memory", message=f"{count} evaluated configurations do not fit into memory", count=count
    )
    if not closest:
        return plain
    nearest = planner.search(by_excess=True)
    if not len(nearest.winners):
        return Exclusion(constraint="memory", message="nothing fits into memory", count=count)
    if nearest.values.excess_bytes[0] <= 0.0:
        # Some configurations fit, but exceed a limit of the objective, which has a rejection of its own.
        return plain
    text, numbers = missing_memory(planner, nearest.winners, nearest.values)
    what = "nothing fits into memory"
    if (nearest.values.memory_bytes <= nearest.values.capacity_bytes).all():
        what += " at the upper bound of its interval (set memory_headroom_bytes to 0 to ignore that bound)"
    text = f"{what}; the closest, {describe(nearest.winners, 0)}, {text}"
    return Exclusion(constraint="memory", message=text, count=count, numbers=numbers)


def missing_memory(planner: Planner, row: Configurations, values: Values) -> tuple[str, Mapping[str, float]]:
    """How much memory one row lacks, and which part of it is the largest."""
    memory, there = float(values.memory_bytes[0]), float(values.capacity_bytes[0])
    upper, missing = float(values.upper_bytes[0]), float(values.excess_bytes[0])
    name, amount = largest_term(planner, row)
    headroom = planner.constraints.memory_headroom_bytes
    left = f"{gib(headroom)} of headroom leave" if headroom else "there are"
    bound = f", and up to {gib(upper)} by its interval," if upper > memory else ""
    text = f"needs {gib(memory)} on each device{bound} {gib(missing)} more than the {gib(there)} that {left}"
    text = text if bound else text.replace(" on each device ", " on each device, ")
    numbers = {"memory_bytes": memory, "memory_capacity_bytes": there, "excess_memory_bytes": missing}
    numbers |= {"memory_upper_bytes": upper} if bound else {}
    if name:
        text += f"; the largest part is {name.removesuffix('_bytes').replace('_', ' ')} with {gib(amount)}"
        numbers[name] = amount
    return text, numbers


def largest_term(planner: Planner, row: Configurations) -> tuple[str, float]:
    """The largest part of the memory of one row, in bytes; "" = the model states no parts."""
    terms = {name: float(column[0]) for name, column in planner.model.memory_terms(row).items()}
    if not terms:
        return "", 0.0
    name = max(terms, key=lambda each: terms[each])
    return name, terms[name]


def _over_limits(planner: Planner, result: SearchResult) -> list[Exclusion]:
    """The limit of the objective that every configuration exceeds, and the configuration that comes closest to it."""
    objective = planner.question.objective
    rule = objective.rule
    free: Rule
    if rule.deadline_s is not None:
        name, what, free = "deadline_seconds", "the fastest", HighestThroughput()
    elif rule.max_cost is not None:
        name, what, free = "max_cost", "the cheapest", LeastCost()
    elif rule.max_nodes is not None:
        least = int(planner.space().prefixes.nodes.min(initial=0))
        text = (
            f"every configuration exceeds max_nodes = {rule.max_nodes}; the space has none on fewer than {least} nodes"
        )
        return [Exclusion(constraint="max_nodes", message=text, count=result.over.get("max_nodes", 0))]
    else:
        return []
    nearest = planner.search(objective=replace(objective, rule=free))
    if not len(nearest.winners):
        return []
    need, most = planner.goal().requirement(name, nearest.winners, nearest.values)
    best = describe(nearest.winners, 0)
    text = f"every configuration exceeds {name} = {most:.4g}; {what}, {best}, needs {need:.4g}"
    numbers = {name: most, name.removeprefix("max_").replace("deadline", "finish"): need}
    return [Exclusion(constraint=name, message=text, count=result.over.get(name, 0), numbers=numbers)]
