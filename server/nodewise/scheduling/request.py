"""Schedule questions as values: a cluster, its jobs, and how to decide and predict.

Values are as in the request: 0 or empty means "not stated" wherever the contract says so. ``checks.check_question``
turns them into a cluster's state, or reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.domain.schedule import JobFacts, NodePool
from nodewise.estimation.question import Terms

__all__ = ["CurrentDevices", "JobQuestion", "PairQuestion", "QueueQuota", "ScheduleLimits", "ScheduleQuestion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentDevices:
    """Devices of a running job: the pool's name, (node index, devices) with servers' included, and its age (s).

    ``shares_with`` is the id of the job that runs on the same devices.
    """

    pool: str
    placement: tuple[tuple[int, int], ...]
    age_s: float = 0.0
    shares_with: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairQuestion:
    """Two jobs, by id, that may share a device of a pool (empty = of any), and the share of solo speed of each."""

    first_job_id: str
    second_job_id: str
    pool: str = ""
    first_share: float
    second_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueQuota:
    """Most devices, servers included, that the jobs of a queue may hold at once."""

    queue: str
    max_devices: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobQuestion(JobFacts):
    """A job of the question.

    Attributes
    ----------
    profile : Profile or NodewiseError
        Its facts, or why its profile could not be loaded; such a job stays as it is, and the others are scheduled.
    allowed_devices, min_devices, max_devices : int
        Numbers of worker devices. Empty = every number from min (0 = 1) to max (0 = as many as the cluster has).
    allowed_pools : tuple of str
        Names; empty = all.
    requested_devices : int
        0 = the fewest allowed.
    weight : float
        0 = 1.
    settings : Configurations or None
        One row: sync mode, servers, batch and the like. Nodes, workers and devices are the scheduler's.
    """

    profile: Profile | NodewiseError
    allowed_devices: tuple[int, ...] = ()
    min_devices: int = 0
    max_devices: int = 0
    allowed_pools: tuple[str, ...] = ()
    requested_devices: int = 0
    current: CurrentDevices | None = None
    weight: float = 0.0
    settings: Configurations | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScheduleQuestion:
    """A cluster, its jobs, and how to decide and predict.

    Attributes
    ----------
    pools : tuple of NodePool
        Devices that may be granted, including those that the jobs hold.
    parameters : mapping of str to float
        Of the policy; parameters that are not stated have their defaults.
    memory : bytes
        The memory that the previous call returned.
    terms : Terms
        How to predict.
    """

    now_s: float
    pools: tuple[NodePool, ...]
    jobs: tuple[JobQuestion, ...]
    parameters: Mapping[str, float] = field(default_factory=dict)
    memory: bytes = b""
    quotas: tuple[QueueQuota, ...] = ()
    shared_pairs: tuple[PairQuestion, ...] = ()
    terms: Terms = field(default_factory=Terms)

    @property
    def counts_failures(self) -> bool:
        """Whether a pool states failures."""
        return any(pool.device_hours is not None for pool in self.pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleLimits:
    """Caps of one call.

    Attributes
    ----------
    jobs, pools, nodes, devices : int
        Jobs; pools; nodes, and devices, of all pools together.
    devices_per_node : int
        Devices on one node.
    sharing_jobs : int
        Jobs that pairs name; tables have that number squared of entries.
    candidate_rows : int
        Configurations to predict for all jobs together: 512 jobs on each of 384 counts stay below it, and the columns
        of that many rows take about 50 MB. It is also the most counts of all jobs together that state no
        ``allowed_devices``.
    placed_nodes : int
        Nodes that all distinct candidates together are spread over where nodes of a pool are uneven; each takes
        16 bytes.
    """

    jobs: int = 4_096
    pools: int = 256
    nodes: int = 65_536
    devices: int = 524_288
    devices_per_node: int = 4_096
    sharing_jobs: int = 1_024
    candidate_rows: int = 262_144
    placed_nodes: int = 8_388_608
