"""Errors on published tables of spot machines, which `score_transient.py` prints and tests hold."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Literal

import numpy as np

from nodewise.plugin import Floats
from nodewise_transient.deadlines import AGES_S, Deadline, Rule, availability_states, learn_chain, plan, play_rule
from nodewise_transient.prices import cluster_dollars
from nodewise_transient.saving import fit_saves
from nodewise_transient.servers import fit_shared, fit_worker, shared_speed
from nodewise_transient.walk import finish_s, losses_to_changes
from transient_tables import ICAC_STEPS, PER_H, SERVER_PER_H, SpotRun, availability, rows_of, saves

JOBS_H = ((48, 72, 600.0), (48, 55, 600.0), (24, 36, 360.0), (12, 18, 1200.0))
"""Hours of work, hours to the deadline, seconds of a switch-over."""
SPOT_SHARE = 0.3
Learned = Literal["past", "others", "both"]
"""What the plan knows of availability: the first quarter of the record, all other records, or both."""


def icac_errors(runs: list[SpotRun]) -> tuple[Floats, Floats, Floats]:
    """Signed relative errors of the revoked runs: losses known, ignored; and of the costs of all runs.

    The speed is that of the runs without losses; training starts so long after the machines, too.
    """
    clean = [run for run in runs if not run.revoked.any()]
    clean_s = float(np.mean([run.duration_s for run in clean]))
    offset_s = float(np.mean([run.uptimes_s.max() - run.duration_s for run in clean]))
    speeds = np.arange(5) * ICAC_STEPS / clean_s / 4.0
    known, ignored = [], []
    for run in runs:
        if run.revoked.any():
            lost_s = np.where(run.revoked > 0.0, run.uptimes_s - offset_s, math.inf)
            found = float(finish_s(*losses_to_changes(lost_s, speeds), ICAC_STEPS))
            known.append(found / run.duration_s - 1.0)
            ignored.append(clean_s / run.duration_s - 1.0)
    rate = PER_H["K80 spot"]
    dollars = [
        cluster_dollars(run.uptimes_s, rate, time_s=run.duration_s, servers_per_h=SERVER_PER_H) - run.dollars
        for run in runs
    ]
    return np.array(known), np.array(ignored), np.array(dollars)


def left_out_saves(folder: Path) -> tuple[Floats, Floats]:
    """Relative errors of each model's saves from the other nineteen: by weights and graph, and by their sum."""
    table = saves(folder)
    split, total = [], []
    for at in range(len(table.models)):
        others = np.arange(len(table.models)) != at
        seconds, weights, graph = table.seconds[others], table.weights_mb[others], table.graph_mb[others]
        both = fit_saves(seconds, weights, graph).seconds(table.weights_mb[at], table.graph_mb[at])
        one = fit_saves(seconds, weights + graph).seconds(table.weights_mb[at] + table.graph_mb[at])
        split.append(float(both) / table.seconds[at] - 1.0)
        total.append(float(one) / table.seconds[at] - 1.0)
    return np.array(split), np.array(total)


def policy_ratios(folder: Path, starts: int, *, learned: Learned) -> list[tuple[str, str, dict[str, float], float]]:
    """Mean cost by rule over that of on demand alone, and the share of late jobs, of each record and job.

    Starts are drawn from the last three quarters of a record. The plan's chain is learned from its first quarter,
    from all other records, or from both.
    """
    records = []
    for kind, name, grain, record in availability(folder):
        tick_s = grain * max(1, round(600.0 / grain))
        needed = max(1, int(record.instances.max()) // 2)
        records.append((kind, name, tick_s, availability_states(record.ticks(tick_s, needed=needed), tick_s)))
    found = []
    for kind, name, tick_s, states in records:
        # Another grain changes what a tick's chances are: chains are told at the record's own.
        others = [
            availability_states(np.repeat(each >= len(AGES_S) + 1, max(1, round(other_s / tick_s))), tick_s)
            for _, other, other_s, each in records
            if other != name
        ]
        seen = {"past": [states[: len(states) // 4]], "others": others, "both": [*others, states[: len(states) // 4]]}
        chain = learn_chain(np.concatenate(seen[learned]), tick_s)
        for work_h, deadline_h, switch_s in JOBS_H:
            job = Deadline(
                work_s=work_h * 3600.0,
                deadline_s=deadline_h * 3600.0,
                switch_s=switch_s,
                spot_share=SPOT_SHARE,
                tick_s=tick_s,
            )
            first, last = len(states) // 4, len(states) - job.span
            at = np.random.default_rng(0).integers(first, last, starts)
            rules: tuple[Rule, ...] = ("on-demand", "greedy", "uniform-progress")
            played = {str(rule): play_rule(job, states, at, rule) for rule in rules}
            for share in (0.25, 0.5, 0.75):
                until_s = share * job.deadline_s
                played[f"timed {share}"] = play_rule(job, states, at, "timed", until_s=until_s)
            played["planned"] = play_rule(job, states, at, "planned", table=plan(job, chain))
            cost = {rule: float(each.cost.mean()) for rule, each in played.items()}
            late = max(float(np.mean(each.end_s > job.deadline_s + 1e-6)) for each in played.values())
            found.append((f"{kind} {name}", f"{work_h} h in {deadline_h} h, {switch_s:.0f} s", cost, late))
    return found


def left_out_speeds(table: Path) -> dict[str, float]:
    """Mean absolute errors of speeds of asynchronous clusters.

    From runs on one and on four workers; and on K80 with the capacity of the servers taken from all runs on P100.
    """
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows_of(table):
        curves[row["job"]].append((float(row["workers"]), float(row["steps_per_s"])))
    found = {job: np.array(points).T for job, points in curves.items()}
    errors = {}

    def error(job: str, capacity: float | None) -> float:
        workers, seen = found[job]
        known = (workers == 1) | (workers == 4)
        if capacity is None:
            own, capacity = fit_shared(workers[known], seen[known])
        else:
            own, _ = fit_worker(workers[known], seen[known], capacity=capacity)
        return float(np.abs(shared_speed(own * workers, capacity)[~known] / seen[~known] - 1.0).mean())

    for job in found:
        errors[job] = error(job, None)
    for model in ("ResNet-15", "Shake-Shake-Big"):
        errors[f"{model}/K80/1ps, capacity of P100"] = error(
            f"{model}/K80/1ps", fit_shared(*found[f"{model}/P100/1ps"])[1]
        )
    return errors
