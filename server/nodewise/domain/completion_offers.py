"""What can be had for a job: groups of nodes that may be taken away, and how the job reacts to that."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from nodewise.domain.configurations import SyncMode
from nodewise.domain.lifetimes import LifetimeLaw

__all__ = [
    "ChiefLoss",
    "CompletionCheckpoints",
    "CompletionGroup",
    "CompletionOffer",
    "LossReaction",
    "NodePrices",
    "NodeReplacement",
    "SavedBytes",
]


class LossReaction(IntEnum):
    """What the loss of a node does to those that are left.

    CONTINUE: nothing. RESTART: back to the last checkpoint, wait for all, restart. ELASTIC: a rendezvous, then the
    others go on, and after another who joins; or all from the last checkpoint.
    """

    UNSPECIFIED = 0
    CONTINUE = 1
    RESTART = 2
    ELASTIC = 3
    ELASTIC_FROM_CHECKPOINT = 4


class ChiefLoss(IntEnum):
    """What the loss of the chief does, the first node of the first group; NONE: it is a node like any other."""

    NONE = 0
    FAIL = 1
    ROLLBACK = 2
    REELECT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrices:
    """Price of a node and hour from each time on, counted from the start of the job; the first is 0."""

    since_s: tuple[float, ...] = ()
    per_h: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReplacement:
    """A node in the place of one that was lost.

    Attributes
    ----------
    delays_s : tuple of float
        From the loss until it works, samples drawn with equal chance.
    joins : str
        Name of the group that it belongs to from then on; ``""`` = that of the one that was lost.
    bills_startup : bool
        Whether it is paid for from when it is asked for.
    """

    delays_s: tuple[float, ...] = ()
    joins: str = ""
    bills_startup: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionGroup:
    """Nodes that are alike; each is lost as a whole.

    Attributes
    ----------
    nodes : int
        At the start; 0 = only losses of other groups are replaced here.
    spot : bool
        Whether they may be taken away.
    price_per_h : float
        Of one node; ``prices`` stand in its place where they are given.
    ages_s : tuple of float
        How long each has run already; the last holds for all that follow; empty = all are new.
    lifetime : LifetimeLaw
        Names no lifetimes, so that the estimator uses its own.
    cap_s : float or None
        Age at which the provider ends a node; None = as the lifetimes have it.
    replacement : NodeReplacement or None
        None = nothing is replaced.
    """

    name: str = ""
    device: str = ""
    nodes: int = 0
    workers_per_node: int = 1
    spot: bool = False
    region: str = ""
    price_per_h: float = 0.0
    prices: NodePrices | None = None
    ages_s: tuple[float, ...] = ()
    lifetime: LifetimeLaw = field(default_factory=LifetimeLaw)
    cap_s: float | None = None
    replacement: NodeReplacement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedBytes:
    """What a save writes, and saves of other sizes to the same store that were measured."""

    weights_bytes: float = 0.0
    graph_bytes: float = 0.0
    measured_s: tuple[float, ...] = ()
    measured_weights_bytes: tuple[float, ...] = ()
    measured_graph_bytes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCheckpoints:
    """Saves after every so much work, and after the last.

    Attributes
    ----------
    seconds : float or SavedBytes
        How long one takes.
    interval_s, interval_samples : float or None
        Work between two: seconds with everybody alive, or samples; neither = what serves the objective best.
    stopped : float
        Share of the job's speed that a save costs.
    """

    seconds: float | SavedBytes = 0.0
    interval_s: float | None = None
    interval_samples: float | None = None
    stopped: float = 1.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompletionOffer:
    """A cluster that can be had, and how the job reacts to losses there.

    Attributes
    ----------
    sync_mode, batch_per_worker, global_batch, parameter_servers, link_bytes_per_s
        As in Configurations; not stated = as the job's evidence has it.
    kept_per_h : float
        Price per hour of all that is kept to the end.
    restart_s : float
        Seconds without progress: RESTART, once all are there again; ELASTIC, of a rendezvous.
    burst_probability, burst_others : float, int
        Chance that a loss takes up to so many others of its group along.
    speeds : tuple of float
        Samples/s by nodes of each group alive, the last group's running fastest, from none to its capacity; empty = to
        be predicted.
    horizon_s : float or None
        When to give up.
    """

    name: str = ""
    groups: tuple[CompletionGroup, ...] = ()
    sync_mode: SyncMode = SyncMode.UNSPECIFIED
    batch_per_worker: int = 0
    global_batch: int = 0
    parameter_servers: int | None = None
    kept_per_h: float = 0.0
    link_bytes_per_s: float = 0.0
    reaction: LossReaction = LossReaction.UNSPECIFIED
    restart_s: float = 0.0
    chief_loss: ChiefLoss = ChiefLoss.NONE
    chief_setup_s: float = 0.0
    burst_probability: float = 0.0
    burst_others: int = 0
    checkpoints: CompletionCheckpoints | None = None
    speeds: tuple[float, ...] = ()
    horizon_s: float | None = None

    def replacement_group(self, group: int) -> int:
        """The group that replacements of a group's losses belong to."""
        replacement = self.groups[group].replacement
        if replacement is None or not replacement.joins:
            return group
        return next((at for at, each in enumerate(self.groups) if each.name == replacement.joins), group)

    @property
    def capacities(self) -> tuple[int, ...]:
        """Most nodes that each group may come to hold: its own, and those whose losses may end up there."""
        counts = [0] * len(self.groups)
        for start, group in enumerate(self.groups):
            at, visited_groups = start, set[int]()
            while at not in visited_groups:
                visited_groups.add(at)
                counts[at] += group.nodes
                at = self.replacement_group(at)
        return tuple(counts)

    @property
    def nodes(self) -> int:
        """Nodes at the start."""
        return sum(group.nodes for group in self.groups)

    @property
    def workers(self) -> int:
        """Workers at the start."""
        return sum(group.nodes * group.workers_per_node for group in self.groups)
