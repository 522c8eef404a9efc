"""Offers for a job: groups of nodes that may be revoked, and the job's reaction to losses."""

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
    """Effect of the loss of a node on the other nodes.

    CONTINUE: none. RESTART: back to the last checkpoint, wait for all nodes, restart. ELASTIC: a rendezvous, then the
    others continue, after another rendezvous with the replacement; or all restart from the last checkpoint.
    """

    UNSPECIFIED = 0
    CONTINUE = 1
    RESTART = 2
    ELASTIC = 3
    ELASTIC_FROM_CHECKPOINT = 4


class ChiefLoss(IntEnum):
    """Effect of the loss of the chief, the first node of the first group; NONE: the same as of any node."""

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
    """The replacement of a lost node.

    Attributes
    ----------
    delays_s : tuple of float
        Seconds from the loss until it works: samples of equal probability.
    joins : str
        Name of the group that it belongs to; ``""`` = the lost node's group.
    bills_startup : bool
        Whether it is paid for from the time of its request.
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
        Nodes at the start; 0 = the group has only replacements of other groups' losses.
    spot : bool
        Whether they may be revoked.
    price_per_h : float
        Price of one node; ``prices`` are used instead where they are given.
    ages_s : tuple of float
        Age of each node at the start; the last value holds for all further nodes; empty = all are new.
    lifetime : LifetimeLaw
        Names no lifetimes, so that the estimator uses its own.
    cap_s : float or None
        Age at which the provider ends a node; None = only the lifetimes end it.
    replacement : NodeReplacement or None
        None = losses are not replaced.
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
    """Bytes of a checkpoint, and measured checkpoints of other sizes to the same storage."""

    weights_bytes: float = 0.0
    graph_bytes: float = 0.0
    measured_s: tuple[float, ...] = ()
    measured_weights_bytes: tuple[float, ...] = ()
    measured_graph_bytes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCheckpoints:
    """Checkpoints at intervals of work, and after the last work.

    Attributes
    ----------
    seconds : float or SavedBytes
        Duration of one checkpoint.
    interval_s, interval_samples : float or None
        Work between two checkpoints: seconds with all nodes alive, or samples; neither = the best for the objective.
    stopped : float
        Share of the job's speed that is lost during a checkpoint.
    """

    seconds: float | SavedBytes = 0.0
    interval_s: float | None = None
    interval_samples: float | None = None
    stopped: float = 1.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompletionOffer:
    """A cluster on offer, and the job's reaction to losses there.

    Attributes
    ----------
    sync_mode, batch_per_worker, global_batch, parameter_servers, link_bytes_per_s
        As in Configurations; not stated = from the job's evidence.
    kept_per_h : float
        Price per hour of resources that are kept until the end.
    restart_s : float
        Seconds without progress: RESTART, once all nodes are back; ELASTIC, of a rendezvous.
    burst_probability, burst_others : float, int
        Probability that a loss includes up to so many other nodes of its group.
    speeds : tuple of float
        Samples/s by nodes of each group alive, the last group's running fastest, from none to its capacity; empty = to
        be predicted.
    horizon_s : float or None
        Time after which the job is given up.
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
        """Most nodes that each group can hold: its own, and replacements of other groups' losses."""
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
