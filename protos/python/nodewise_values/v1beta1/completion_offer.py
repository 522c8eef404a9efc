"""Offers for completion estimates: groups of nodes that may be revoked, and how a job reacts to losses.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.configuration import SyncMode
from nodewise_values.v1.objective import CapacityTier
from nodewise_values.value import Value, Word

__all__ = [
    "AvailabilityRecord",
    "ChiefLoss",
    "CompletionCheckpoints",
    "CompletionGroup",
    "CompletionOffer",
    "CompletionSpeeds",
    "EmpiricalLifetimes",
    "ExponentialLifetimes",
    "FleetRecord",
    "KnownRevocations",
    "LifetimeDataSet",
    "LifetimeFamily",
    "LifetimeLaw",
    "LifetimeOrigin",
    "LossReaction",
    "NodePrices",
    "NodeReplacement",
    "ObservedLifetimes",
    "SavedBytes",
    "WeibullLifetimes",
]


class LossReaction(Word):
    """How the job reacts to the loss of a node."""

    CONTINUE = "continue"
    """The other nodes continue; the loss costs only its share of the speed."""
    RESTART = "restart"
    """The job stops, returns to the last checkpoint, waits until all nodes are available again, and restarts."""
    ELASTIC = "elastic"
    """The other nodes continue after a rendezvous. When a node joins, there is another rendezvous."""
    ELASTIC_FROM_CHECKPOINT = "elastic_from_checkpoint"
    """As ELASTIC, but the job continues from the last checkpoint."""


class ChiefLoss(Word):
    """How the job reacts to the loss of the chief, which is the first node of the first group."""

    FAIL = "fail"
    """The job fails."""
    ROLLBACK = "rollback"
    """The job returns to the last checkpoint and sets up a new chief."""
    REELECT = "reelect"
    """Another node becomes the chief after a set-up time; no work is lost."""


class LifetimeFamily(Word):
    """Kind of law that is fitted to observed lifetimes."""

    EMPIRICAL = "empirical"
    """The observed distribution. Machines that were still running at the end are treated as censored."""
    WEIBULL = "weibull"
    """Weibull distribution."""
    EXPONENTIAL = "exponential"
    """Exponential distribution: losses at a constant rate."""
    NEAREST = "nearest"
    """WEIBULL or EXPONENTIAL, the one that fits better, if it fits well enough; else EMPIRICAL."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionOffer(Value):
    """A cluster that is available."""

    name: str = ""
    """Name, unique in the request. Empty = the offer's position, from 1."""
    groups: tuple[CompletionGroup, ...] = ()
    """Nodes by device, region and tier; 1 to 8 groups."""
    sync_mode: SyncMode | None = None
    """How workers exchange gradients. Absent = as in the job's evidence."""
    batch_per_worker_samples: int | None = None
    """Samples per worker and step. Absent = as in the job's evidence."""
    global_batch_samples: int | None = None
    """Samples of one step of all workers, independent of the number of running workers.

    Absent = the batch per worker is fixed.
    """
    parameter_servers_count: int | None = None
    """Parameter servers, on nodes that are not revoked. Absent = as in the job's evidence."""
    kept_price_per_hour: float = 0.0
    """Price per hour of all that is paid for until the end, such as parameter servers and storage."""
    link_bytes_per_second: float | None = None
    """Network of one node, bytes per second in each direction. Absent = the job's own."""
    reaction: LossReaction | None = None
    """How the job reacts to the loss of a node."""
    restart_seconds: float | None = None
    """Seconds without progress: for RESTART, after all nodes are available again; for ELASTIC, during a rendezvous."""
    chief_loss: ChiefLoss | None = None
    """How the job reacts to the loss of the chief."""
    chief_setup_seconds: float | None = None
    """Seconds without progress after the loss of the chief, if chief_loss is stated."""
    burst_probability: float | None = None
    """Probability that a loss also takes neighbouring nodes of its group."""
    burst_others_count: int | None = None
    """Most neighbouring nodes that are lost with it."""
    checkpoints: CompletionCheckpoints | None = None
    """How the job saves checkpoints. Absent = it saves none."""
    speeds: CompletionSpeeds | None = None
    """Speeds that are stated rather than predicted."""
    horizon_seconds: float | None = None
    """Seconds after which a simulated run counts as never done. Absent = 100 times its duration without losses."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionGroup(Value):
    """Identical nodes: one device, region and tier. A node is lost as a whole."""

    name: str = ""
    """Name, unique in the offer. Needed only if nodes of this group replace losses of another group."""
    device_name: str = ""
    """Accelerator."""
    nodes: int = 0
    """Nodes at the start; 0 if nodes of this group only replace losses of other groups."""
    workers_per_node: int | None = None
    """Devices on each node. Absent = 1."""
    tier: CapacityTier | None = None
    """Whether the nodes can be revoked."""
    region: str = ""
    """Region or zone, e.g. "us-east1-c". Empty = not known."""
    price_per_node_hour: float = 0.0
    """Price of one node for one hour."""
    prices: NodePrices | None = None
    """Prices that change over time; they replace price_per_node_hour."""
    ages_seconds: tuple[float, ...] = ()
    """Seconds that each node has already run; the last entry holds for all further nodes. Empty = all nodes are new."""
    lifetime: LifetimeLaw | None = None
    """Law of the nodes' lifetimes. Must be given for SPOT. Nodes of other tiers without a law are never lost."""
    cap_seconds: float | None = None
    """Age at which the provider ends a node, seconds, e.g. 86400.

    Absent = the limit that the data set states, else none.
    """
    replacement: NodeReplacement | None = None
    """How a lost node is replaced. Absent = it is not replaced."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodePrices(Value):
    """Prices over time, from the start of the job."""

    since_seconds: tuple[float, ...] = ()
    """Seconds from which each price holds, ascending; the first is 0."""
    prices_per_node_hour: tuple[float, ...] = ()
    """Price of one node for one hour from that time on."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodeReplacement(Value):
    """A node that replaces a lost one."""

    delays_seconds: tuple[float, ...] = ()
    """Samples of the seconds from the loss until the new node works (provisioning, start-up, joining).

    Each is equally likely; at least one must be given.
    """
    group_name: str = ""
    """Group that the new node belongs to, if it has another zone, tier or device.

    Empty = the group of the lost node.
    """
    bills_startup: bool = False
    """Whether the node is paid for from the request on, rather than only from when it works."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeLaw(Value):
    """Law of the lifetimes of a group's nodes."""

    data_set: str | None = None
    """Name of lifetimes in the request, or of shipped ones, e.g. "cm-dare/K80/us-central1"."""
    empirical: EmpiricalLifetimes | None = None
    """Shares of machines that were revoked by given ages."""
    observed: ObservedLifetimes | None = None
    """Lifetimes of single machines."""
    weibull: WeibullLifetimes | None = None
    """A stated Weibull distribution."""
    exponential: ExponentialLifetimes | None = None
    """A stated constant rate."""
    fleet: FleetRecord | None = None
    """A recorded fleet, from which lifetimes are computed."""
    availability: AvailabilityRecord | None = None
    """A record of how many nodes were available over time.

    The group then has that many nodes, at most all of its own.
    """
    revocations: KnownRevocations | None = None
    """Losses at known times."""
    family: LifetimeFamily | None = None
    """Kind of law that is fitted to observed lifetimes."""
    origin: LifetimeOrigin | None = None
    """Where and when the lifetimes were observed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeDataSet(Value):
    """A law with a name that groups may refer to."""

    name: str = ""
    """Name of the law."""
    law: LifetimeLaw | None = None
    """The law. It must not refer to a data set."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeOrigin(Value):
    """Where and when lifetimes were observed."""

    name: str = ""
    """Name of the observations."""
    device_name: str = ""
    """Accelerator."""
    region: str = ""
    """Region or zone."""
    measured_time: datetime | None = None
    """When the observations ended. Absent = not known."""
    machines_count: int = 0
    """Number of machines observed. 0 = the number of lifetimes, if there are any, else not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EmpiricalLifetimes(Value):
    """Shares of revoked machines, linear between the ages.

    Machines not revoked by the last age live until the provider's limit.
    """

    ages_seconds: tuple[float, ...] = ()
    """Ages in seconds, ascending."""
    revoked_shares: tuple[float, ...] = ()
    """Share of the machines that was revoked by each age, not descending."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObservedLifetimes(Value):
    """Lifetimes of observed machines."""

    lives_seconds: tuple[float, ...] = ()
    """Seconds for which each machine was observed."""
    revoked: tuple[bool, ...] = ()
    """Whether the machine was revoked at that age; otherwise it was still running at the end.

    Empty = all were revoked.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WeibullLifetimes(Value):
    """Weibull distribution: the share that is alive at age t is exp(-(t / scale)^shape)."""

    scale_seconds: float = 0.0
    """Scale, seconds."""
    shape: float = 0.0
    """Shape; below 1, young machines are lost more often."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExponentialLifetimes(Value):
    """Losses at a constant rate."""

    mean_seconds: float = 0.0
    """Mean lifetime, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FleetRecord(Value):
    """Nodes that were added to and removed from a fleet, as columns with one entry per event."""

    times_seconds: tuple[float, ...] = ()
    """Time of each event, seconds; not descending."""
    added: tuple[bool, ...] = ()
    """Whether the node was added; otherwise it was removed."""
    nodes: tuple[str, ...] = ()
    """Name of the node."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AvailabilityRecord(Value):
    """How many nodes were available over time."""

    since_seconds: tuple[float, ...] = ()
    """Seconds from which each number holds, ascending; the first is 0."""
    nodes_counts: tuple[int, ...] = ()
    """Number of nodes that were available from that time on."""
    length_seconds: float = 0.0
    """Length of the record, seconds; later availability is not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KnownRevocations(Value):
    """Losses at known times, such as those of a recorded run."""

    times_seconds: tuple[float, ...] = ()
    """Seconds from the start, one entry for each lost node; the other nodes are not lost."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionCheckpoints(Value):
    """Checkpoints at equal amounts of work, and one at the end."""

    seconds: float | None = None
    """Stated seconds."""
    saved: SavedBytes | None = None
    """The bytes that are written, and measured speeds."""
    interval_seconds: float | None = None
    """Seconds of work with all nodes running."""
    interval_samples: float | None = None
    """Samples of work."""
    stopped_ratio: float | None = None
    """Share of the job's speed that is lost while a checkpoint is saved; 1 = all workers wait. Absent = 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SavedBytes(Value):
    """Duration of a checkpoint as a law.

    Duration of a checkpoint as a law: a constant, plus seconds per byte of the weights and of the graph's description.
    """

    weights_bytes: float = 0.0
    """Bytes of the weights, including the optimizer's state."""
    graph_bytes: float = 0.0
    """Bytes of the graph's description."""
    measured_seconds: tuple[float, ...] = ()
    """Seconds of measured checkpoints to the same store, at least two. The law is fitted to them."""
    measured_weights_bytes: tuple[float, ...] = ()
    """Bytes of weights in each measured checkpoint."""
    measured_graph_bytes: tuple[float, ...] = ()
    """Bytes of graph description in each measured checkpoint. Empty = the law has no separate term for graphs."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionSpeeds(Value):
    """Speed with every possible set of running nodes."""

    samples_per_second: tuple[float, ...] = ()
    """Samples per second for each number of running nodes in each group.

    The number of the last group varies fastest. Each group counts from 0 to all nodes that it may have. For example,
    one group of 4 nodes has five entries, of which the first, with no node running, is 0.
    """
