"""Options of sbatch that a prediction fills in, and the reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodewise_client import (
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastTime,
    Objective,
    Prediction,
    Work,
    objective,
)
from nodewise_integrations.advice import Advice, Adviser, NoAnswer, question
from nodewise_integrations.slurm.requests import Requests
from nodewise_integrations.slurm.wishes import AUTO, Wishes

__all__ = ["Filling", "filled", "table"]

_LONGEST_MINUTES: Final = 366 * 24 * 60


@dataclass(frozen=True, slots=True)
class Filling:
    """Options to submit with, and messages about them."""

    options: tuple[str, ...]
    lines: tuple[str, ...]
    """What was chosen and why, for people."""
    advice: Advice
    last: tuple[str, ...] = ()
    """Options that replace typed ones."""


def filled(wishes: Wishes, requests: Requests) -> Filling | NoAnswer:
    """Ask for a prediction, and derive options from the answer. Options that the owner stated are not filled in."""
    adviser = Adviser.of_command(wishes.server or None, timeout_seconds=wishes.timeout_s, user_agent="nodewise-sbatch")
    try:
        answer = adviser.advise(
            question(
                wishes.profile,
                nodes=requests.counts,
                workers_per_node=requests.gpus_per_node,
                columns=wishes.columns,
                objective=_objective(wishes, requests.counts),
                work=None if wishes.samples is None else Work(samples=wishes.samples),
            )
        )
    finally:
        adviser.close()
    return answer if isinstance(answer, NoAnswer) else _filling(answer, wishes, requests)


def _objective(wishes: Wishes, counts: Sequence[int]) -> Objective:
    """The objective. A number of nodes that the owner sets may lie at any distance from the evidence."""
    rules: dict[str, Any] = {
        "knee": lambda: Knee(share=wishes.share),
        "highest-throughput": HighestThroughput,
        "least-time": lambda: LeastTime(max_nodes=wishes.max_nodes),
        "fewest-devices": lambda: FewestDevices(deadline_seconds=wishes.deadline_s or 0.0),
    }
    rule = rules[wishes.objective]()
    return objective(rule, confidence=wishes.confidence, max_extrapolation_ratio=None if len(counts) > 1 else 0.0)


def _filling(advice: Advice, wishes: Wishes, requests: Requests) -> Filling:
    row = advice.chosen
    options: list[str] = []
    lines: list[str] = []
    nodes = f"--nodes={row.nodes}"
    if requests.nodes_from:
        lines.append(f"{_nodes(row.nodes)}, {requests.nodes_from}")
    else:
        if not requests.narrows:
            options.append(nodes)
        why = advice.why.removeprefix(f"{_nodes(row.nodes)}: ")
        lines.append(f"{nodes}, of {_list_counts(requests.counts)}: {why}")
    lines.append(
        f"predicted {_throughput(row)}, by {advice.estimator}{_revision(advice)}; {_memory(row)}{_far(advice)}"
    )
    if requests.tasks_per_node is not None:
        options.append(f"--ntasks={row.nodes * requests.tasks_per_node}")
        lines.append(f"{options[-1]}: {requests.tasks_per_node} on each node, as stated")
    if requests.gpus_kind is not None and requests.gpus_per_node is not None:
        options.append(f"--gpus={requests.gpus_kind}{row.nodes * requests.gpus_per_node}")
        lines.append(f"{options[-1]}: {requests.gpus_per_node} on each node, as stated")
    if requests.fills_gpus:
        per_node, left = divmod(row.workers, row.nodes)
        if left:
            lines.append(
                f"--gpus-per-node is not changed: {row.workers} workers do not divide evenly among {row.nodes} nodes"
            )
        else:
            options.append(f"--gpus-per-node={per_node}")
            where = ", as in the job's evidence" if wishes.gpus_per_node == AUTO else ""
            lines.append(f"--gpus-per-node={per_node}{where}")
    elif wishes.gpus_per_node and requests.gpus_per_node is not None:
        lines.append(f"{requests.gpus_per_node} GPUs on each node, as the job states")
    if not requests.gpus_placed:
        lines.append(
            f"note: {requests.gpus_per_node} GPUs on each node are assumed; without --gpus-per-node, "
            "Slurm may place them differently"
        )
    if wishes.works:
        options += _limit(advice, wishes, requests, lines)
    lines += [f"note: {message}" for message in advice.notes]
    return Filling(tuple(options), tuple(lines), advice, (nodes,) if requests.narrows else ())


def _limit(advice: Advice, wishes: Wishes, requests: Requests, lines: list[str]) -> list[str]:
    """A time limit, if it is safe to set one: a limit ends jobs."""
    if requests.time_from:
        lines.append(f"the time limit is the one of {requests.time_from}")
        return []
    seconds = advice.longest_seconds(steps=wishes.steps, samples=wishes.samples)
    if seconds is None:
        lines.append("--time is not changed: the throughput is not known with an interval")
        return []
    if advice.extrapolates:
        lines.append("--time is not changed: a limit ends jobs, and this count lies far beyond the measured runs")
        return []
    minutes = math.ceil(seconds * (1.0 + wishes.margin) / 60.0)
    if minutes > _LONGEST_MINUTES:
        lines.append("--time is not changed: at the lower bound of the throughput the work takes more than a year")
        return []
    work = f"{wishes.samples:,.0f} samples" if wishes.steps is None else f"{wishes.steps:,.0f} steps"
    lines.append(
        f"--time={minutes} (minutes): {work} at the lower bound of the throughput, plus {100 * wishes.margin:.3g} %"
    )
    return [f"--time={minutes}"]


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


_SHOWN: Final = 6


def _list_counts(counts: tuple[int, ...]) -> str:
    if len(counts) > 1 and counts == tuple(range(counts[0], counts[-1] + 1)):
        return f"{counts[0]} to {counts[-1]}"
    shown = [str(count) for count in counts]
    return ", ".join(shown if len(shown) <= _SHOWN else [*shown[: _SHOWN - 1], "...", shown[-1]])


def _throughput(row: Prediction) -> str:
    text = f"{row.steps_per_second:.4g} steps/s"
    if row.lower_steps_per_second is None:
        return text
    share = f"{100 * (row.interval_coverage or 0.0):.3g} %"
    return f"{text} ({share}: {row.lower_steps_per_second:.4g} to {row.upper_steps_per_second:.4g})"


def _revision(advice: Advice) -> str:
    revision = advice.answer.basis.profile_revision
    return "" if revision is None else f" from revision {revision}"


def _memory(row: Prediction) -> str:
    if row.memory_bytes is None:
        return "whether it fits into memory is not known"
    return f"it fits into memory with {row.memory_bytes / 2**30:.3g} GiB on each device"


def _far(advice: Advice) -> str:
    return "; far beyond the measured runs" if advice.extrapolates else ""


def table(advice: Advice) -> list[str]:
    """All requested counts, one line each, for people."""
    lines = ["   nodes  workers    steps/s            interval  memory GiB  "]
    for row in advice.answer:
        mark = "->" if row.nodes == advice.chosen.nodes else "  "
        if not row.answered:
            missing = row.excess_memory_bytes
            why = f"{missing / 2**30:.3g} GiB too large" if missing else _refusal(row)
            lines.append(f"{mark} {row.nodes:5}  {row.workers:7}  {why}")
            continue
        low, high = row.lower_steps_per_second, row.upper_steps_per_second
        interval = "-" if low is None else f"{low:.4g} to {high:.4g}"
        memory = "-" if row.memory_bytes is None else f"{row.memory_bytes / 2**30:.3g}"
        lines.append(
            f"{mark} {row.nodes:5}  {row.workers:7}  {row.steps_per_second:9.4g}  {interval:>18}  {memory:>10}"
        )
    return [line.rstrip() for line in lines]


def _refusal(row: Prediction) -> str:
    problem = None if row.refusal is None else row.refusal.problem
    return "refused" if problem is None else f"refused: {problem.reason}"
