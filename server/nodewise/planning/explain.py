"""Why the winner wins, which constraints bind, and what would change the winner.

To see whether a constraint binds, the space is searched again without it; to see the effect of a change, with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import FewestDevices, HighestThroughput, Knee, LeastCost, LeastTime, Objective, Rule
from nodewise.domain.planning import Exclusion, PlanConstraints
from nodewise.planning.alternatives import LISTED, alternatives_of
from nodewise.planning.checked_model import BoundedSpace, Values
from nodewise.planning.planner import Planner
from nodewise.planning.reasons import missing_memory
from nodewise.planning.results import named_numbers, rejection
from nodewise.planning.search import SearchResult
from nodewise.planning.words import NAMES, describe, percent
from nodewise_values import PlanExplanation, PlanRejection, PlanSensitivity

__all__ = ["explain_plan"]

UNLIMITED: Final = 1e9
"""Factor on the memory of each device that stands for no limit."""


def explain_plan(planner: Planner, space: BoundedSpace, winner: Configurations, values: Values) -> PlanExplanation:
    """Explain the winner, one row; ``complete`` is False when the time was over before every search was done."""
    budget = planner.question.terms.options.budget
    binding: list[PlanRejection] = []
    sensitivities: list[PlanSensitivity] = []
    alternatives = alternatives_of(planner, space, winner, values)
    complete = True
    for look in _Looks(planner, winner, values).all():
        if budget is not None and budget.remaining_s() <= 0.0:
            complete = False
            break
        finding = look()
        if budget is not None and budget.remaining_s() <= 0.0:  # a search that did not end proves nothing
            complete = False
            break
        if isinstance(finding, Exclusion):
            binding.append(rejection(finding))
        elif isinstance(finding, PlanSensitivity):
            sensitivities.append(finding)
    return PlanExplanation(
        alternatives=alternatives, binding=tuple(binding), sensitivities=tuple(sensitivities), complete=complete
    )


_Look = Callable[[], "Exclusion | PlanSensitivity | None"]


class _Looks:
    """Further searches, after the one whose result is the winner."""

    def __init__(self, planner: Planner, winner: Configurations, values: Values) -> None:
        self._planner, self._winner, self._values = planner, winner, values
        self._objective, self._constraints = planner.question.objective, planner.constraints
        if isinstance(self._objective.rule, Knee):
            # The scale stays that of the knee, where the fastest configuration wins.
            self._objective = replace(self._objective, rule=HighestThroughput())
            nodes = (int(winner.nodes[0]),)
            pools = tuple(replace(pool, nodes=nodes) for pool in self._constraints.pools if nodes[0] in pool.nodes)
            self._constraints = replace(self._constraints, pools=pools)

    def all(self) -> Iterator[_Look]:
        """The searches to do, the most informative first."""
        yield self._without_memory
        yield self._without_limits
        for name in LISTED:
            if getattr(self._constraints, name) is not None and not self._is_needed(name):
                yield lambda name=name: self._without_list(name)  # type: ignore[misc]
        yield self._all_devices
        yield self._most_nodes
        yield self._one_micro_batch
        yield lambda: self._with("link_x2", replace(self._constraints, link_factor=2.0))
        yield lambda: self._with("memory_x2", replace(self._constraints, memory_factor=2.0))
        yield lambda: self._with_more("one_more_node", lambda nodes: nodes + 1)
        yield lambda: self._with_more("nodes_x2", lambda nodes: 2 * nodes)

    def _is_needed(self, name: str) -> bool:
        """Whether a search without this list is impossible."""
        within = self._constraints
        if name == "micro_batches":
            return not within.global_batches
        if name in ("parameter_servers", "sync_modes"):
            return within.max_nodes is None and (name == "parameter_servers" or within.parameter_servers is None)
        return False

    def _search(self, constraints: PlanConstraints | None = None, objective: Objective | None = None) -> SearchResult:
        return self._planner.search(
            constraints=constraints or self._constraints, objective=objective or self._objective
        )

    def _better(self, result: SearchResult) -> bool:
        """Whether the best row of another search is better, by the first key of the objective."""
        if not len(result.winners):
            return False
        goal = self._planner.goal(self._objective)
        ours, theirs = (
            goal.keys(rows, values.step_s, values.memory_bytes, values.excess_bytes)[0, 0]
            for rows, values in ((self._winner, self._values), (result.winners, result.values))
        )
        return bool(theirs < ours)

    def _gain(self, result: SearchResult) -> float:
        """The winner's time per sample divided by that of the best row of another search."""
        ours = float(self._values.step_s[0]) / int(self._winner.global_batch[0])
        theirs = float(result.values.step_s[0]) / int(result.winners.global_batch[0])
        return ours / theirs

    def _without_memory(self) -> Exclusion | None:
        result = self._search(replace(self._constraints, memory_factor=UNLIMITED, memory_headroom_bytes=0.0))
        if not self._better(result):
            return None
        row = self._within_memory(result)
        text, numbers = missing_memory(self._planner, result.winners, row)
        message = f"memory binds: {describe(result.winners, 0)} would be {self._faster(result)}, but {text}"
        return Exclusion(constraint="memory", message=message, numbers={"speedup": self._gain(result), **numbers})

    def _within_memory(self, result: SearchResult) -> Values:
        """The best row's values with the memory that the devices really have."""
        return self._planner.model.evaluate(result.winners, self._constraints)

    def _without_limits(self) -> Exclusion | None:
        rule = self._objective.rule
        if isinstance(rule, FewestDevices):
            return self._fewer_devices(rule.deadline_s)
        free: Rule
        if rule.deadline_s is not None:
            name, free = "deadline_seconds", LeastCost()
        elif rule.max_cost is not None:
            name, free = "max_cost", LeastTime(max_nodes=rule.max_nodes)
        elif rule.max_nodes is not None:
            name, free = "max_nodes", LeastTime()
        else:
            return None
        result = self._search(objective=replace(self._objective, rule=free))
        if not self._better(result):
            return None
        need, most = self._planner.goal(self._objective).requirement(name, result.winners, result.values)
        message = f"{name} binds: {describe(result.winners, 0)} would be better, but needs {need:.4g} of {most:.4g}"
        return Exclusion(constraint=name, message=message, numbers={name: most, "needed": need})

    def _fewer_devices(self, deadline_s: float) -> Exclusion | None:
        """Whether the deadline excludes every configuration on fewer devices."""
        workers = int(self._winner.workers[0])
        pools = tuple(
            replace(pool, nodes=fewer)
            for pool in self._constraints.pools
            if (fewer := tuple(nodes for nodes in pool.nodes if nodes * pool.workers_per_node < workers))
        )
        if not pools:
            return None
        fastest = replace(self._objective, rule=HighestThroughput())
        result = self._search(replace(self._constraints, pools=pools), fastest)
        if not len(result.winners):
            return None
        needed_s, _ = self._planner.goal(self._objective).requirement("deadline_seconds", result.winners, result.values)
        if needed_s <= deadline_s:
            return None
        message = (
            f"deadline_seconds binds: the fastest configuration on fewer devices, {describe(result.winners, 0)}, needs "
            f"{needed_s:.4g} s, and at most {deadline_s:.4g} s is allowed"
        )
        return Exclusion(
            constraint="deadline_seconds", message=message, numbers={"deadline_seconds": deadline_s, "needed": needed_s}
        )

    def _without_list(self, name: str) -> Exclusion | None:
        result = self._search(replace(self._constraints, **{name: None}))  # type: ignore[arg-type]  # each may be None
        if not self._better(result):
            return None
        values = ", ".join(str(value) for value in getattr(self._constraints, name))
        word = NAMES[LISTED[name]]
        message = f"the list of {word} ({values}) binds: {describe(result.winners, 0)} would be {self._faster(result)}"
        return Exclusion(constraint=name, message=message, numbers={"speedup": self._gain(result)})

    def _all_devices(self) -> Exclusion | None:
        device = self._winner.devices[self._winner.device_index[0]]
        most = max((max(pool.nodes) for pool in self._constraints.pools if pool.device == device), default=0)
        if int(self._winner.nodes[0]) < most:
            return None
        message = f"the number of nodes binds: the best configuration uses all {most} nodes of {device}"
        return Exclusion(constraint="nodes", message=message, numbers={"nodes": float(most)})

    def _most_nodes(self) -> Exclusion | None:
        most = self._constraints.max_nodes
        if most is None or int(self._winner.nodes_held()[0]) < most:
            return None
        servers = max(int(self._winner.parameter_servers[0]), 0)
        message = (
            f"max_nodes binds: the best configuration uses all {most} nodes, {int(self._winner.nodes[0])} for workers "
            f"and {servers} for parameter servers"
        )
        return Exclusion(constraint="max_nodes", message=message, numbers={"max_nodes": float(most)})

    def _one_micro_batch(self) -> Exclusion | None:
        if not self._constraints.global_batches:
            return None
        replicas, batch = int(self._winner.data_parallel[0]), int(self._winner.global_batch[0])
        if replicas < 1 or replicas * int(self._winner.batch_per_worker[0]) < batch:
            return None
        message = f"the global batch binds: each of {replicas} replicas takes one micro-batch of its {batch} samples"
        return Exclusion(constraint="global_batches", message=message, numbers={"global_batch": float(batch)})

    def _with_more(self, change: str, more: Callable[[int], int]) -> PlanSensitivity:
        """The effect of more nodes in every pool, or the reason why no configuration uses them."""
        most, pools = self._constraints.max_nodes, self._constraints.pools
        # With parameter servers the largest number of nodes need not be the best, so each number is increased.
        from_each = [pool.nodes if most is not None else pool.nodes[-1:] for pool in pools]
        more_nodes = [tuple(more(nodes) for nodes in counts) for counts in from_each]
        limit = None if most is None else more(most)
        larger_pools = tuple(
            replace(pool, nodes=tuple(sorted({*pool.nodes, *nodes}))) for pool, nodes in zip(pools, more_nodes)
        )
        result = self._with(change, replace(self._constraints, pools=larger_pools, max_nodes=limit))
        alone = tuple(replace(pool, nodes=nodes) for pool, nodes in zip(pools, more_nodes))
        space = self._planner.space(replace(self._constraints, pools=alone, max_nodes=limit))
        if space.total:
            return result
        why = space.exclusions[-1].message if space.exclusions else "no configuration uses the additional nodes"
        return replace(result, obstacle=why)

    def _with(self, change: str, constraints: PlanConstraints) -> PlanSensitivity:
        result = self._search(constraints)
        if not len(result.winners):
            return PlanSensitivity(change=change, best="nothing is feasible")
        step_s = float(result.values.step_s[0])
        numbers = {"step_s": step_s, "samples_per_s": int(result.winners.global_batch[0]) / step_s}
        best = describe(result.winners, 0)
        return PlanSensitivity(
            change=change, best=best, speedup_ratio=self._gain(result), numbers=named_numbers(numbers)
        )

    def _faster(self, result: SearchResult) -> str:
        gain = self._gain(result) - 1.0
        return f"{percent(gain)} faster" if gain > 0.0 else "better by the objective"
