"""What is simulated: workers that circulate between their own compute and the links and locks of parameter servers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from nodewise_queueing.simulator.laws import Law

__all__ = ["Discipline", "Link", "SimulationSpec"]


class Discipline(Enum):
    """In which order a link serves its transfers."""

    PROCESSOR_SHARING = "processor sharing"
    FIRST_COME_FIRST_SERVED = "first come, first served"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How the links of all servers behave.

    Attributes
    ----------
    discipline : Discipline
        All active transfers share the link equally, or one has it at a time.
    half_duplex : bool
        Both directions share one station.
    rate_factor : tuple of float
        Rate of the whole link with 1, 2, ... transfers present, relative to the rate that demands refer to; the last
        one holds for any more.
    flow_cap : float
        Largest relative rate of one transfer: the worker's own link, or a window per round trip. A lone transfer of
        demand D takes D / min(flow_cap, rate_factor[0]) seconds.
    """

    discipline: Discipline = Discipline.PROCESSOR_SHARING
    half_duplex: bool = False
    rate_factor: tuple[float, ...] = (1.0,)
    flow_cap: float = math.inf

    def __post_init__(self) -> None:
        """Refuse rates that would leave a transfer for ever."""
        if not self.rate_factor or not all(0.0 < factor < math.inf for factor in self.rate_factor):
            message = f"rate_factor must hold finite rates above 0, got {self.rate_factor!r}"
            raise ValueError(message)
        if not self.flow_cap > 0.0:
            message = f"flow_cap must be above 0, got {self.flow_cap!r}"
            raise ValueError(message)

    def flow_rate(self, present: int) -> float:
        """Relative rate at which a transfer in service is served while so many (at least 1) are present."""
        total = self.rate_factor[min(present, len(self.rate_factor)) - 1]
        sharing = present if self.discipline is Discipline.PROCESSOR_SHARING else 1
        return min(self.flow_cap, total / sharing)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSpec:
    """A job of parameter-server training, without its number of workers.

    One cycle of a worker: download a shard from each of P servers at once; compute when all are there; upload a shard
    to each server at once; each server applies its shard under a lock, first come, first served, as soon as it has
    arrived. When all are applied the next cycle begins: at once, or with a barrier when enough workers are done.

    Attributes
    ----------
    compute_s : float or tuple of float
        Mean seconds of one mini-batch, of every worker or of each.
    download_s, upload_s, update_s : tuple of float, (P,)
        Mean seconds of service that a shard asks of each server's downlink, uplink and lock; 0 = no such station.
    compute_law, transfer_law, update_law : Law
        Shapes of these times.
    link : Link
        How links serve.
    download_hidden_s : float
        Seconds of the longest shard's service during which the worker computes already: it begins when the same share
        of every shard is still to come, and does not finish before all of it is there.
    upload_hidden_s : float
        Seconds before the end of a compute phase (at most its length) at which the upload begins.
    barrier : bool
        Synchronous rounds instead of asynchronous cycles.
    backup_workers : int
        Workers that a round does not wait for. A late one's gradient is uploaded and dropped; then it begins anew, in
        the round that is under way.
    start : {"staggered", "simultaneous"}
        Whether workers begin at random points of a cycle, or all of them with a download at time 0.
    """

    compute_s: float | tuple[float, ...]
    download_s: tuple[float, ...]
    upload_s: tuple[float, ...]
    update_s: tuple[float, ...]
    compute_law: Law = field(default_factory=lambda: Law.gamma(0.3))
    transfer_law: Law = field(default_factory=Law.constant)
    update_law: Law = field(default_factory=Law.constant)
    link: Link = field(default_factory=Link)
    download_hidden_s: float = 0.0
    upload_hidden_s: float = 0.0
    barrier: bool = False
    backup_workers: int = 0
    start: Literal["staggered", "simultaneous"] = "staggered"

    def __post_init__(self) -> None:
        """Refuse what is no network, naming the field."""
        for name in ("download_s", "upload_s", "update_s"):
            times: tuple[float, ...] = getattr(self, name)
            _require(len(times) == self.servers >= 1, name, f"hold one time per server, {self.servers}", times)
            _require(_are_times(times), name, "be finite and at least 0", times)
        compute = self.compute_s if isinstance(self.compute_s, tuple) else (self.compute_s,)
        _require(bool(compute) and _are_times(compute), "compute_s", "be finite and at least 0", self.compute_s)
        hidden, longest_s = self.download_hidden_s, max(self.download_s)
        _require(0.0 <= hidden <= longest_s, "download_hidden_s", f"be from 0 to {longest_s:g}", hidden)
        _require(0.0 <= self.upload_hidden_s < math.inf, "upload_hidden_s", "be at least 0", self.upload_hidden_s)
        _require(self.backup_workers >= 0, "backup_workers", "be at least 0", self.backup_workers)
        _require(
            self.barrier or not self.backup_workers,
            "backup_workers",
            ("be 0 where barrier is false"),
            self.backup_workers,
        )
        _require(self.start in ("staggered", "simultaneous"), "start", "be staggered or simultaneous", self.start)
        stations = self.download_s + self.upload_s + self.update_s
        _require(
            min(compute) + max(stations) > 0.0,
            "compute_s",
            ("be above 0 where no transfer or update takes time"),
            self.compute_s,
        )

    @property
    def servers(self) -> int:
        """Number P of parameter servers."""
        return len(self.download_s)

    def compute_means_s(self, workers: int) -> tuple[float, ...]:
        """Mean compute seconds of each of so many workers; ValueError where they are given for another number."""
        if not isinstance(self.compute_s, tuple):
            return (self.compute_s,) * workers
        _require(len(self.compute_s) == workers, "compute_s", f"hold one time per worker, {workers}", self.compute_s)
        return self.compute_s


def _are_times(times: tuple[float, ...]) -> bool:
    return all(0.0 <= time < math.inf for time in times)


def _require(holds: bool, name: str, requirement: str, value: object) -> None:  # noqa: FBT001 - a condition
    if not holds:
        message = f"{name} must {requirement}, got {value!r}"
        raise ValueError(message)
