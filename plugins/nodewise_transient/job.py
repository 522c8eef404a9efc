"""A job on machines that can be taken away: what runs, how it reacts to losses, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from nodewise.plugin import Floats
from nodewise_transient.lifetimes import Lifetime, never
from nodewise_transient.loss import ASYNCHRONOUS, NO_BURST, NO_CHIEF, Burst, ChiefLoss, Reaction
from nodewise_transient.prices import PriceSeries

__all__ = ["Checkpoints", "Group", "Job", "speed_table"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Workers that are alike: device, place and tier.

    Attributes
    ----------
    count : workers.
    lifetime : the law of their lives; `never()` for those on demand.
    price_per_h : dollars of one worker and hour; `prices` replace it where they are given.
    ages_s : how long each has run already; the last one's holds for all that follow.
    replacement_s : seconds from a loss until another worker has joined, samples drawn with equal chance (provisioning,
        staging, booting and set-up); empty where nothing is replaced. A new worker's life starts at age 0.
    bills_startup : whether a replacement costs from its request on, not only from its start.
    joins : place of the group that replacements belong to (another zone, tier or device); absent = this one.
    changes_s : of workers whose changes are recorded, one entry each: when it is lost and there again, by turns.
        Empty = lives are drawn; nothing of a law or of replacements holds for recorded ones.
    """

    count: int
    lifetime: Lifetime = field(default_factory=never)
    price_per_h: float = 0.0
    ages_s: tuple[float, ...] = (0.0,)
    replacement_s: tuple[float, ...] = ()
    bills_startup: bool = False
    joins: int | None = None
    prices: PriceSeries | None = None
    changes_s: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.changes_s and len(self.changes_s) != self.count:
            raise ValueError("changes_s needs one entry per worker")

    def age_s(self, worker: int) -> float:
        """Age of one worker at the start."""
        return self.ages_s[min(worker, len(self.ages_s) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """A save after every so many steps, and after the last.

    Attributes
    ----------
    interval_steps : steps between saves; infinite for none at all.
    seconds : of one save.
    share_stopped : of the job's speed that a save costs: 1 where all workers wait, the chief's where only it does.
    """

    interval_steps: float = math.inf
    seconds: float = 0.0
    share_stopped: float = 1.0

    @property
    def stall_s(self) -> float:
        """Seconds that a save delays the job."""
        return self.seconds * self.share_stopped

    def count(self, steps: float) -> int:
        """Saves of a job that loses nothing."""
        return math.ceil(steps / self.interval_steps * (1.0 - 1e-12)) if math.isfinite(self.interval_steps) else 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """Work, the cluster that does it, and what happens when a worker goes.

    Attributes
    ----------
    steps : work, in the unit of `speeds` (steps or samples).
    groups : the workers; a chief is the first worker of the first group.
    speeds : (n_1 + 1, n_2 + 1, ...) steps per second with so many of each group alive, from any throughput model; n the
        `capacities`, which are the counts where no worker joins another group. Measured with saves switched on they
        contain them: then leave `checkpoints` out.
    reaction : what a loss does to the others.
    chief : what the loss of the chief does.
    checkpoints : when work becomes durable.
    burst : losses that come together.
    servers_per_h : dollars per hour of what is kept to the end (parameter servers, storage).
    horizon_s : when to give up.
    """

    steps: float
    groups: tuple[Group, ...]
    speeds: Floats
    reaction: Reaction = ASYNCHRONOUS
    chief: ChiefLoss = NO_CHIEF
    checkpoints: Checkpoints = Checkpoints()
    burst: Burst = NO_BURST
    servers_per_h: float = 0.0
    horizon_s: float = math.inf

    def __post_init__(self) -> None:
        if not (self.steps > 0.0 and math.isfinite(self.steps)):
            raise ValueError(f"steps must be positive and finite, got {self.steps}")
        if self.speeds.shape != tuple(capacity + 1 for capacity in self.capacities):
            raise ValueError("speeds needs one axis per group, from 0 to its capacity")
        if not (np.all(np.isfinite(self.speeds)) and np.all(self.speeds >= 0.0) and self.full_speed > 0.0):
            raise ValueError("speeds must be finite and at least 0, and above 0 where all workers run")

    @property
    def capacities(self) -> tuple[int, ...]:
        """Most workers that each group may come to hold: its own, and those whose replacements join it."""
        held = [0] * len(self.groups)
        for start, group in enumerate(self.groups):
            at, seen = start, set[int]()
            while at not in seen:
                seen.add(at)
                held[at] += group.count
                joins = self.groups[at].joins
                at = at if joins is None else joins
        return tuple(held)

    @property
    def full_speed(self) -> float:
        """Steps per second with all workers running, as at the start."""
        return float(self.speeds[tuple(group.count for group in self.groups)])

    @property
    def ideal_s(self) -> float:
        """Seconds of the job without losses and saves."""
        return self.steps / self.full_speed


def speed_table(counts: Sequence[int], speed_of: Callable[..., float]) -> Floats:
    """Tabulate a throughput model over every alive set: ``speed_of(alive_1, alive_2, ...)`` in steps per second."""
    table = np.empty([count + 1 for count in counts])
    for alive in product(*(range(count + 1) for count in counts)):
        table[alive] = speed_of(*alive) if any(alive) else 0.0
    return table
