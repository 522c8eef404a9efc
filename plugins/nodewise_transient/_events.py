"""The event loop of one job's runs, compiled: losses, arrivals, saves, rollbacks."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws.kernels import kernel
from nodewise_transient._state import Cluster, Rules, Run

__all__ = ["COLUMNS", "LIVES", "simulate_runs"]

COLUMNS: Final = ("end_s", "finished", "dollars", "losses", "running_s", "saving_s", "lost_s", "stalled_s")
"""What a run leaves behind; its four times add up to its end."""
LIVES: Final = 2
"""Lives of each worker that are drawn ahead, so that runs of two variants of a job see the same random numbers."""
MOST_CHANGES: Final = 1_000_000
"""Losses and arrivals after which a run counts as never done: at such a rate waiting gains nothing, and a run must end
for its caller to be heard."""
FAIL: Final = 1
ROLLBACK: Final = 2


@kernel
def _life_s(cluster: Cluster, group: int, gone_before: float, age_s: float, chance: float, thinning: float) -> float:
    """Remaining life at a chance of outliving; the own hazard thinned where bursts bring the rest."""
    left = chance if thinning == 1.0 else chance**thinning
    share = 1.0 - left * (1.0 - gone_before)
    low, high = cluster.first_knot[group], cluster.first_knot[group + 1] - 1
    if share > cluster.shares[high]:
        return float(cluster.cap_s[group] - age_s)
    while high - low > 1:
        middle = (low + high) // 2
        if cluster.shares[middle] < share:
            low = middle
        else:
            high = middle
    rise = cluster.shares[high] - cluster.shares[low]
    part = (share - cluster.shares[low]) / rise if rise > 0.0 else 0.0
    life_s: float = cluster.knots_s[low] + part * (cluster.knots_s[high] - cluster.knots_s[low]) - age_s
    return max(life_s, 0.0)


@kernel
def _advance(run: Run, rules: Rules, speed: float, seconds: float) -> float:
    """Work for some seconds at a speed: seconds that are left over when the job is done, else -1."""
    work = run.work
    left: float = seconds
    while True:
        if work[5] < 0.0:
            rest = rules.steps - work[0]
            segment = rest if rest < rules.interval + 1e-9 * rules.steps else rules.interval
            needed = (segment - work[1]) / speed
            if left < needed:
                work[1] += left * speed
                work[3] += left
                return -1.0
            left -= needed
            work[3] += needed
            work[1] = segment
            work[5] = 0.0
        save = rules.save_s if rules.interval < math.inf else 0.0
        needed = save - work[5]
        if left < needed:
            work[5] += left
            return -1.0
        left -= needed
        work[0] += work[1]
        work[2] += work[3]
        work[4] += save
        work[1], work[3], work[5] = 0.0, 0.0, -1.0
        if work[0] >= rules.steps * (1.0 - 1e-9):
            return float(left)
        cycle_s = rules.interval / speed + save
        whole = math.floor(min(left / cycle_s, (rules.steps - work[0]) / rules.interval - 1.0))
        if whole > 0:
            work[0] += whole * rules.interval
            work[2] += whole * rules.interval / speed
            work[4] += whole * save
            left = max(left - whole * cycle_s, 0.0)


@kernel
def _roll_back(work: Floats) -> None:
    """Lose what no save holds."""
    work[6] += work[3] + max(work[5], 0.0)
    work[1], work[3], work[5] = 0.0, 0.0, -1.0


@kernel
def _next_change(run: Run) -> int:
    """The worker that changes next."""
    first = 0
    for worker in range(1, len(run.next_s)):
        if run.next_s[worker] < run.next_s[first]:
            first = worker
    return first


@kernel
def _take_neighbours(rules: Rules, run: Run, worker: int, now_s: float, rng: np.random.Generator) -> None:
    """Up to so many others of the worker's group go at the same time, chosen with equal chance."""
    group = run.group[worker]
    candidates = 0
    for other in range(len(run.alive)):
        if run.alive[other] and not run.taken[other] and run.group[other] == group:
            candidates += 1
    count = min(rules.burst_others, candidates)
    for other in range(len(run.alive)):
        if count and run.alive[other] and not run.taken[other] and run.group[other] == group:
            if rng.random() * candidates < count:
                run.taken[other] = 1
                run.next_s[other] = now_s
                count -= 1
            candidates -= 1


@kernel
def _interrupt(rules: Rules, run: Run) -> None:
    """What a loss does to those that are left."""
    if rules.rolls_back:
        _roll_back(run.work)
    if rules.stall_on_loss_s > 0.0:
        run.clock[1] = run.clock[0] + rules.stall_on_loss_s


@kernel
def _paid_until(cluster: Cluster, group: int, time_s: float) -> float:
    """Dollars of a machine of a group from the start on, where its price changes."""
    low, high = cluster.first_price[group], cluster.first_price[group + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if cluster.price_since_s[middle] <= time_s:
            low = middle
        else:
            high = middle
    paid: float = cluster.paid_before[low] + cluster.price_per_s[low] * (time_s - cluster.price_since_s[low])
    return paid


@kernel
def _dollars(cluster: Cluster, group: int, start_s: float, end_s: float) -> float:
    """What a machine of a group costs from a start to an end."""
    first = cluster.first_price[group]
    if cluster.first_price[group + 1] == first + 1:
        paid: float = cluster.price_per_s[first] * (end_s - start_s)
        return paid
    return _paid_until(cluster, group, end_s) - _paid_until(cluster, group, start_s)


@kernel
def _next_recorded_s(cluster: Cluster, run: Run, worker: int) -> float:
    """When a recorded worker changes next; never after the last time."""
    at = cluster.first_change[worker] + run.lives_drawn[worker]
    run.lives_drawn[worker] += 1
    changes_s: float = cluster.changes_s[at] if at < cluster.first_change[worker + 1] else math.inf
    return changes_s


@kernel
def _lose(cluster: Cluster, rules: Rules, run: Run, worker: int, rng: np.random.Generator) -> None:
    """Take a worker away, and ask for another."""
    now_s, group = run.clock[0], run.group[worker]
    run.clock[3] += _dollars(cluster, group, run.since_s[worker], now_s)
    run.alive[worker], run.since_s[worker] = 0, now_s
    run.counts[0] -= 1
    run.counts[3] -= cluster.stride[group]
    if cluster.first_change[worker + 1] > cluster.first_change[worker]:
        run.next_s[worker] = _next_recorded_s(cluster, run, worker)
        if now_s == 0.0:
            # It was not there when the job began: nothing is lost.
            return
        run.counts[1] += 1
        _interrupt(rules, run)
        return
    run.counts[1] += 1
    first, last = cluster.first_delay[group], cluster.first_delay[group + 1]
    if last > first:
        drawn = first if last == first + 1 else first + int(rng.random() * (last - first))
        run.next_s[worker] = now_s + cluster.delays_s[drawn]
    else:
        run.next_s[worker] = math.inf
    if run.taken[worker]:
        run.taken[worker] = 0
    elif rules.burst_others > 0 and rng.random() < rules.burst_chance:
        _take_neighbours(rules, run, worker, now_s, rng)
    _interrupt(rules, run)


@kernel
def _lose_chief(rules: Rules, run: Run) -> None:
    """Handle the chief's loss; another worker takes the role where it is elected, or no worker replaces it."""
    chief = run.counts[2]
    if rules.chief == ROLLBACK:
        _roll_back(run.work)
    if rules.chief > 0 and rules.chief_setup_s > 0.0:
        run.clock[1] = max(run.clock[1], run.clock[0] + rules.chief_setup_s)
    if rules.chief > ROLLBACK or run.next_s[chief] == math.inf:
        for worker in range(len(run.alive) - 1, -1, -1):
            if run.alive[worker]:
                run.counts[2] = worker


@kernel
def _join(cluster: Cluster, rules: Rules, run: Run, worker: int, chances: Floats, rng: np.random.Generator) -> None:
    """A replacement works from now on; its life starts."""
    now_s, before = run.clock[0], run.group[worker]
    group = cluster.joins[before]
    if cluster.bills_startup[before]:
        run.clock[3] += _dollars(cluster, group, run.since_s[worker], now_s)
    run.alive[worker], run.since_s[worker], run.group[worker] = 1, now_s, group
    if cluster.first_change[worker + 1] > cluster.first_change[worker]:
        run.next_s[worker] = _next_recorded_s(cluster, run, worker)
    else:
        run.next_s[worker] = now_s + _draw_life(cluster, rules, run, worker, chances, rng)
    run.counts[0] += 1
    run.counts[3] += cluster.stride[group]
    if rules.stall_on_join_s > 0.0:
        run.clock[1] = now_s + rules.stall_on_join_s


@kernel
def _draw_life(
    cluster: Cluster, rules: Rules, run: Run, worker: int, chances: Floats, rng: np.random.Generator
) -> float:
    """Remaining life of a worker: its first as old as it is, every further one new."""
    drawn = run.lives_drawn[worker]
    run.lives_drawn[worker] = drawn + 1
    chance = chances[worker * LIVES + drawn] if drawn < LIVES else rng.random()
    before = cluster.gone_before[worker] if drawn == 0 else 0.0
    age_s = cluster.age_s[worker] if drawn == 0 else 0.0
    thinning = 1.0 + rules.burst_chance * rules.burst_others
    return _life_s(cluster, run.group[worker], before, age_s, chance, thinning)


@kernel
def _start(cluster: Cluster, rules: Rules, run: Run, chances: Floats, rng: np.random.Generator) -> None:
    """Start: all workers run, no step is done."""
    run.work[:] = 0.0
    run.work[5] = -1.0
    run.clock[:4] = 0.0
    run.counts[0], run.counts[1], run.counts[2], run.counts[3] = len(run.alive), 0, 0, 0
    for worker in range(len(run.alive)):
        run.alive[worker], run.since_s[worker], run.taken[worker], run.lives_drawn[worker] = 1, 0.0, 0, 0
        run.group[worker] = cluster.group[worker]
        run.counts[3] += cluster.stride[cluster.group[worker]]
        if cluster.first_change[worker + 1] > cluster.first_change[worker]:
            run.next_s[worker] = _next_recorded_s(cluster, run, worker)
        else:
            run.next_s[worker] = _draw_life(cluster, rules, run, worker, chances, rng)


@kernel
def _work_until(cluster: Cluster, rules: Rules, run: Run, change_s: float) -> bool:
    """Stall and work up to the next change; whether the job was done before it."""
    clock = run.clock
    if clock[1] > clock[0]:
        stop_s = min(clock[1], change_s)
        clock[2] += stop_s - clock[0]
        clock[0] = stop_s
    waiting = rules.waits_for_all and run.counts[0] < len(run.alive)
    speed = 0.0 if waiting else cluster.speeds[run.counts[3]] * run.clock[4]
    if clock[0] < change_s and speed > 0.0:
        seconds = change_s - clock[0]
        if seconds == math.inf:
            # Nothing will change any more: long enough for all that is left.
            saves = rules.steps / rules.interval + 2.0 if rules.interval < math.inf else 0.0
            seconds = 1.001 * rules.steps / speed + saves * rules.save_s + 1.0
        left = _advance(run, rules, speed, seconds)
        clock[0] += seconds
        if left >= 0.0:
            clock[0] -= left
            return True
    elif change_s < math.inf:
        clock[2] += change_s - clock[0]
        clock[0] = change_s
    return False


@kernel
def _runs_to_the_end(cluster: Cluster, rules: Rules, run: Run, chances: Floats, rng: np.random.Generator) -> bool:
    """Walk from change to change; whether the work was done before there were too many of them."""
    for _ in range(MOST_CHANGES):
        worker = _next_change(run)
        change_s = min(run.next_s[worker], rules.horizon_s)
        if _work_until(cluster, rules, run, change_s):
            return True
        if change_s == math.inf or change_s >= rules.horizon_s:
            return False
        run.clock[0] = change_s
        if run.alive[worker]:
            _lose(cluster, rules, run, worker, rng)
            if worker == run.counts[2] and change_s > 0.0:
                if rules.chief == FAIL:
                    return False
                _lose_chief(rules, run)
        else:
            _join(cluster, rules, run, worker, chances, rng)
    return False


@kernel
def simulate_runs(
    cluster: Cluster, rules: Rules, run: Run, chances: Floats, paces: Floats, rng: np.random.Generator, out: Floats
) -> None:
    """Fill in one row of ``out`` per row of ``chances`` and entry of ``paces``."""
    for row in range(len(out)):
        run.clock[4] = paces[row]
        _start(cluster, rules, run, chances[row], rng)
        finished = _runs_to_the_end(cluster, rules, run, chances[row], rng)
        now_s, work = run.clock[0], run.work
        for worker in range(len(run.alive)):
            group = run.group[worker]
            if run.alive[worker]:
                run.clock[3] += _dollars(cluster, group, run.since_s[worker], now_s)
            elif cluster.bills_startup[group] and run.next_s[worker] < math.inf:
                run.clock[3] += _dollars(cluster, cluster.joins[group], run.since_s[worker], now_s)
        if not finished:
            _roll_back(work)
        out[row, 0], out[row, 1], out[row, 3] = now_s, 1.0 if finished else 0.0, run.counts[1]
        out[row, 2] = run.clock[3] + rules.servers_per_s * now_s
        out[row, 4], out[row, 5], out[row, 6], out[row, 7] = work[2], work[4], work[6], run.clock[2]
