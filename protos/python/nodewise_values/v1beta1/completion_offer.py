"""What can be had: groups of nodes that may be taken away, and how a job reacts to that.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
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
    """What the loss of a node does to those that are left."""

    CONTINUE = "continue"
    """Nothing: a loss costs its share of the speed."""
    RESTART = "restart"
    """Stop, go back to the last checkpoint, wait until all are there again, restart."""
    ELASTIC = "elastic"
    """A rendezvous, then those that are left go on, and after another the one that joins."""
    ELASTIC_FROM_CHECKPOINT = "elastic_from_checkpoint"
    """The same from the last checkpoint."""


class ChiefLoss(Word):
    """What the loss of the chief does, the first node of the first group."""

    FAIL = "fail"
    """The job dies."""
    ROLLBACK = "rollback"
    """Back to the last checkpoint, and setting up."""
    REELECT = "reelect"
    """Another takes the role after setting up; nothing is lost."""


class LifetimeFamily(Word):
    """A law that is made of observed lifetimes."""

    EMPIRICAL = "empirical"
    """As observed; who was still alive counts as such."""
    WEIBULL = "weibull"
    """Weibull's."""
    EXPONENTIAL = "exponential"
    """Losses at a constant rate."""
    NEAREST = "nearest"
    """Of Weibull's and the exponential the nearer one, where it is near enough; else as observed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionOffer(Value):
    """A cluster that can be had."""

    name: str = ""
    """Name, unique in the request. Empty = its place, from 1."""
    groups: tuple[CompletionGroup, ...] = ()
    """Nodes by kind and place, 1 to 8 groups."""
    sync_mode: SyncMode | None = None
    """How workers exchange gradients. Absent = as the job did."""
    batch_per_worker_samples: int | None = None
    """Samples per worker and step. Absent = as the job's evidence has it."""
    global_batch_samples: int | None = None
    """Samples of one step of all workers, however many are alive. Absent = by worker."""
    parameter_servers_count: int | None = None
    """Parameter servers, on nodes that stay. Absent = as the job's evidence has it."""
    kept_price_per_hour: float = 0.0
    """Price per hour of all that is kept to the end, such as parameter servers and storage."""
    link_bytes_per_second: float | None = None
    """Network of one node, bytes per second and direction. Absent = the job's own."""
    reaction: LossReaction | None = None
    """What a loss does to the others."""
    restart_seconds: float | None = None
    """Seconds without progress: RESTART, after all are there again; ELASTIC, of a rendezvous."""
    chief_loss: ChiefLoss | None = None
    """What the loss of the chief does."""
    chief_setup_seconds: float | None = None
    """Seconds without progress after its loss, where that is stated."""
    burst_probability: float | None = None
    """Probability that a loss takes neighbours of its group along."""
    burst_others_count: int | None = None
    """How many at most."""
    checkpoints: CompletionCheckpoints | None = None
    """How work becomes durable. Absent = nothing is saved."""
    speeds: CompletionSpeeds | None = None
    """Speeds that are stated instead of predicted."""
    horizon_seconds: float | None = None
    """When a run counts as never done. Absent = after 100 times its length without losses."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionGroup(Value):
    """Nodes that are alike: device, place, tier. A node is lost as a whole."""

    name: str = ""
    """Name, unique in the offer. Needed only where another group's losses are replaced here."""
    device_name: str = ""
    """Accelerator."""
    nodes: int = 0
    """Nodes at the start; 0 where only losses of other groups are replaced here."""
    workers_per_node: int | None = None
    """Devices on each. Absent = 1."""
    tier: CapacityTier | None = None
    """How firmly nodes are held."""
    region: str = ""
    """Where, e.g. "us-east1-c". Empty = not known."""
    price_per_node_hour: float = 0.0
    """Price of one node for one hour."""
    prices: NodePrices | None = None
    """Prices that change, in the place of the one above."""
    ages_seconds: tuple[float, ...] = ()
    """How long each node has run already, seconds; the last holds for all that follow. Empty = all are new."""
    lifetime: LifetimeLaw | None = None
    """How long nodes live. Must be given for SPOT; of other tiers they live for ever without."""
    cap_seconds: float | None = None
    """Age at which the provider ends a node, e.g. 86400. Absent = as the data set says, else never."""
    replacement: NodeReplacement | None = None
    """What follows a loss. Absent = nothing is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodePrices(Value):
    """Prices over time, from the start of the job."""

    since_seconds: tuple[float, ...] = ()
    """Seconds from which each holds, ascending, the first 0."""
    prices_per_node_hour: tuple[float, ...] = ()
    """Price of one node for one hour from then on."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodeReplacement(Value):
    """A node that takes the place of one that was lost."""

    delays_seconds: tuple[float, ...] = ()
    """Seconds from the loss until it works (provisioning, start-up, joining), samples that are drawn with equal chance.

    Seconds from the loss until it works (provisioning, start-up, joining), samples that are drawn with equal chance; at
    least one.
    """
    group_name: str = ""
    """Group that it belongs to from then on: another zone, tier or device.

    Empty = the group of the one that was lost.
    """
    bills_startup: bool = False
    """Whether it is paid for from when it is asked for, not only from when it works."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeLaw(Value):
    """How long nodes of a group live."""

    data_set: str | None = None
    """Name of lifetimes in the request or of those that are shipped, e.g. "cm-dare/K80/us-central1"."""
    empirical: EmpiricalLifetimes | None = None
    """Shares of machines that were revoked up to some ages."""
    observed: ObservedLifetimes | None = None
    """Single machines."""
    weibull: WeibullLifetimes | None = None
    """A stated law."""
    exponential: ExponentialLifetimes | None = None
    """A stated rate."""
    fleet: FleetRecord | None = None
    """A recorded fleet, whose lifetimes are taken."""
    availability: AvailabilityRecord | None = None
    """When how many nodes could be had: the group has them then, at most all of its own."""
    revocations: KnownRevocations | None = None
    """Losses that are known."""
    family: LifetimeFamily | None = None
    """What is made of observed lifetimes."""
    origin: LifetimeOrigin | None = None
    """Where and when they were observed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeDataSet(Value):
    """A law under a name that groups may use."""

    name: str = ""
    """Its name."""
    law: LifetimeLaw | None = None
    """The law, which names no data set itself."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeOrigin(Value):
    """Where lifetimes were observed."""

    name: str = ""
    """Name of the observations."""
    device_name: str = ""
    """Accelerator."""
    region: str = ""
    """Region or zone."""
    measured_time: datetime | None = None
    """When observing ended. Absent = not known."""
    machines_count: int = 0
    """Machines observed. 0 = as many as there are lives, else not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EmpiricalLifetimes(Value):
    """Shares revoked, linear between the ages; what is left after the last lives on to the cap."""

    ages_seconds: tuple[float, ...] = ()
    """Ages in seconds, ascending."""
    revoked_shares: tuple[float, ...] = ()
    """Share of the machines that was revoked by then, not descending."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObservedLifetimes(Value):
    """Machines that were watched."""

    lives_seconds: tuple[float, ...] = ()
    """Seconds that each was there."""
    revoked: tuple[bool, ...] = ()
    """Whether it was revoked then, instead of still there at the end. Empty = all were revoked."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WeibullLifetimes(Value):
    """Share alive at age t: exp(-(t / scale)^shape)."""

    scale_seconds: float = 0.0
    """Scale."""
    shape: float = 0.0
    """Shape; below 1, the young are lost first."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExponentialLifetimes(Value):
    """Losses at a constant rate."""

    mean_seconds: float = 0.0
    """Mean life."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FleetRecord(Value):
    """Nodes of a fleet that came and went; columns of one entry per event."""

    times_seconds: tuple[float, ...] = ()
    """When, in seconds; not descending."""
    added: tuple[bool, ...] = ()
    """Whether a node was added, else it was removed."""
    nodes: tuple[str, ...] = ()
    """Which."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AvailabilityRecord(Value):
    """How many nodes could be had over time."""

    since_seconds: tuple[float, ...] = ()
    """Seconds from which each number holds, ascending, the first 0."""
    nodes_counts: tuple[int, ...] = ()
    """Nodes that could be had from then on."""
    length_seconds: float = 0.0
    """Length of the record; after it nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KnownRevocations(Value):
    """Losses that are known, such as those of a recorded run."""

    times_seconds: tuple[float, ...] = ()
    """Seconds from the start, one for each node that is lost; the others live."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionCheckpoints(Value):
    """Saves after every so much work, and after the last."""

    seconds: float | None = None
    """Seconds."""
    saved: SavedBytes | None = None
    """What is written, and how fast."""
    interval_seconds: float | None = None
    """Seconds of work with everybody alive."""
    interval_samples: float | None = None
    """Samples."""
    stopped_ratio: float | None = None
    """Share of the job's speed that a save costs while it lasts: 1 where everybody waits. Absent = 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SavedBytes(Value):
    """A save as a law of what is written: constant + seconds per byte of weights and of the graph's description."""

    weights_bytes: float = 0.0
    """Weights with the optimizer's state."""
    graph_bytes: float = 0.0
    """Description of the graph."""
    measured_seconds: tuple[float, ...] = ()
    """Seconds of each of some measured saves to the same store, at least two; the law is fitted to them."""
    measured_weights_bytes: tuple[float, ...] = ()
    """Weights of each."""
    measured_graph_bytes: tuple[float, ...] = ()
    """Graphs of each. Empty = not told apart."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionSpeeds(Value):
    """Speeds of every set of nodes that may be alive."""

    samples_per_second: tuple[float, ...] = ()
    """Samples per second with so many nodes of each group alive.

    Samples per second with so many nodes of each group alive, the last group's number running fastest, from none to all
    that the group may come to hold: of one group of 4 nodes, five numbers, the first with nobody alive and 0.
    """
