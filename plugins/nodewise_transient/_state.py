"""What the event loop works on: workers and their groups, rules of a job, and where a run stands."""

from __future__ import annotations

from typing import NamedTuple

from nodewise.plugin import Floats, Ints

__all__ = ["Cluster", "Rules", "Run"]


class Cluster(NamedTuple):
    """Workers and their groups, as arrays."""

    group: Ints  # at the start
    joins: Ints  # the group that replacements of a group's losses belong to
    stride: Ints  # of a group in the table of speeds
    gone_before: Floats  # share of the law that lies before a worker's age
    age_s: Floats
    knots_s: Floats  # of all groups, one after another, as `shares`
    shares: Floats
    first_knot: Ints  # (groups + 1,)
    cap_s: Floats
    delays_s: Floats
    first_delay: Ints  # (groups + 1,)
    bills_startup: Ints
    price_per_s: Floats  # of all groups, one after another, as the two that follow
    price_since_s: Floats
    paid_before: Floats  # dollars of a machine from the start to each
    first_price: Ints  # (groups + 1,)
    changes_s: Floats  # when recorded workers are lost and there again, by turns; of all, one after another
    first_change: Ints  # (workers + 1,)
    speeds: Floats


class Rules(NamedTuple):
    """Everything else about a job."""

    steps: float
    interval: float
    save_s: float
    rolls_back: bool
    waits_for_all: bool
    stall_on_loss_s: float
    stall_on_join_s: float
    chief: int
    chief_setup_s: float
    burst_chance: float
    burst_others: int
    servers_per_s: float
    horizon_s: float


class Run(NamedTuple):
    """The state of one run: arrays that every run of a call uses again.

    Attributes
    ----------
    alive, lives_drawn : of each worker; of a recorded one, changes seen.
    group : that it belongs to now.
    taken : by a neighbour's burst, so that it starts none of its own.
    next_s : when a worker that is alive goes, or one that is gone is replaced.
    since_s : when it started to run, or was requested.
    work : steps saved, steps since; seconds of running saved, since; of saving saved; of the save under way, else -1;
        seconds lost.
    clock : now, end of the present stall, seconds stalled, dollars, pace (speeds are those of the table times it).
    counts : workers alive, losses, the chief, the alive set's place in the table of speeds.
    """

    alive: Ints
    lives_drawn: Ints
    group: Ints
    taken: Ints
    next_s: Floats
    since_s: Floats
    work: Floats
    clock: Floats
    counts: Ints
