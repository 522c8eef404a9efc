"""Answers by simulation: fair sharing, any variation of compute, shards in parallel, barriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import NodewiseError, Notice, Options, Reason, Refusal, SyncMode, as_ints, counted_steps
from nodewise_laws import MAX_COEFFICIENT_OF_VARIATION
from nodewise_queueing.asynchronous import network_of
from nodewise_queueing.simulator import Law, Link, SimulationResult, SimulationSpec, simulate
from nodewise_queueing.situation import Situation, extrapolation_of
from nodewise_queueing.support import RefusalError
from nodewise_queueing.tables import Columns
from nodewise_queueing.variation import COMPUTE_CV

__all__ = ["SimulationRow", "simulated_columns"]

WARM_UP_CYCLES: Final = 5
"""Cycles of each worker that are dropped at least: workers begin at random points of a cycle and find their order."""

WARM_UP_SHARE: Final = 0.1

MAX_UPDATES: Final = 20_000_000
"""Updates in one row's simulation, all workers and the warm-up together: some twenty seconds."""


@dataclass(frozen=True, slots=True)
class SimulationRow:
    """One row to simulate: workers by class, each with its own situation."""

    mode: SyncMode
    situations: tuple[Situation, ...]
    counts: tuple[int, ...]
    backup_workers: int

    @property
    def workers(self) -> int:
        """Workers of all classes."""
        return sum(self.counts)


def specification_of(row: SimulationRow) -> SimulationSpec:
    """Input of the simulator. Transfers are those of the class with most workers."""
    situation = row.situations[max(range(len(row.counts)), key=row.counts.__getitem__)]
    phases, facts = situation.phases, situation.facts
    download, upload = situation.transfers(situation.load.log_factor)
    shares = _shares(situation)
    hidden = phases.hidden_s * phases.download_share
    # A lone transfer that is quicker than under load, or that waits besides, changes the cycle and not the load: time
    # of the worker's own, less or more of it, as in the laws. What compute cannot give is hidden.
    quicker = _quicker_s(situation)
    compute = [max(each.compute_s - quicker, 0.0) for each in row.situations]
    # What is hidden is seconds of a worker's time, in which it asks 1 / flows of the link.
    flows = max(download.flows, upload.flows)
    lacking = max(quicker - max(each.compute_s for each in row.situations), 0.0)
    slowest = max(range(len(compute)), key=compute.__getitem__)
    std_s = situation.compute_cv * row.situations[slowest].compute_s
    cv = std_s / compute[slowest] if compute[slowest] > 0.0 else 0.0
    hidden_download = min((hidden + lacking) / flows, download.demand_s)
    hidden_upload = phases.hidden_s - hidden + max(hidden + lacking - hidden_download * flows, 0.0)
    return SimulationSpec(
        compute_s=tuple(mean for mean, count in zip(compute, row.counts, strict=True) for _ in range(count)),
        download_s=tuple(download.demand_s * share for share in shares),
        upload_s=tuple(upload.demand_s * share for share in shares),
        update_s=tuple(phases.update_s * share for share in shares),
        compute_law=Law.gamma(min(cv, MAX_COEFFICIENT_OF_VARIATION)) if cv > 0.0 else Law.constant(),
        link=Link(half_duplex=facts.half_duplex, flow_cap=1.0 / flows),
        download_hidden_s=hidden_download,
        upload_hidden_s=hidden_upload,
        barrier=row.mode == SyncMode.SYNC,
        backup_workers=row.backup_workers,
    )


def _check(row: SimulationRow, options: Options) -> None:
    """Refuse a row that is not simulated."""
    alike = {
        (phases.download_s, phases.upload_s, phases.update_s, phases.hidden_s, each.compute_cv)
        for each in row.situations
        for phases in (each.phases,)
    }
    if len(alike) > 1:
        text = (
            "the simulator needs equal transfers, updates and variation of compute for all workers: use the "
            "analytical model instead"
        )
        raise RefusalError(Refusal.unsupported(text))
    updates = sum(_length(row, options)) * (row.workers if row.mode == SyncMode.SYNC else 1)
    if updates > MAX_UPDATES:
        text = (
            f"the simulation would need {updates:,} updates, and at most {MAX_UPDATES:,} are allowed: ask for fewer "
            "workers or steps, or use the analytical model"
        )
        raise RefusalError(Refusal.unsupported(text))


def simulated_columns(row: SimulationRow, options: Options) -> Columns:
    """The answer to one row; its number of workers tells its random numbers from those of other rows.

    Raises
    ------
    RefusalError
        Why it is not simulated.
    NodewiseError
        DEADLINE_EXCEEDED: the call's time is over before the row is simulated.
    """
    _check(row, options)

    def look() -> None:
        if options.budget is not None and options.budget.remaining_s() <= 0.0:
            message = (
                "the deadline passed before every row was simulated: ask for fewer rows or steps, or allow more time"
            )
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, message)

    look()
    warm_up, counted = _length(row, options)
    result = simulate(
        specification_of(row),
        row.workers,
        seed=(options.seed * 1_000_003 + row.workers) % 2**63,
        cycles=warm_up + counted,
        warm_up_share=warm_up / (warm_up + counted),
        look=look,
    )
    return _columns(row, result)


def _length(row: SimulationRow, options: Options) -> tuple[int, int]:
    """Rounds, or updates of all workers, to drop and to count."""
    synchronous = row.mode == SyncMode.SYNC
    counted = int(counted_steps(as_ints([row.mode]), as_ints([row.workers]), options.simulated_steps)[0])
    return max(round(counted * WARM_UP_SHARE), WARM_UP_CYCLES * (1 if synchronous else row.workers)), counted


def _columns(row: SimulationRow, result: SimulationResult) -> Columns:
    synchronous = row.mode == SyncMode.SYNC
    step_s = (1.0 if synchronous else row.workers) / result.throughput_per_s
    means = {
        "download": result.download_s,
        "compute": result.compute_s,
        "barrier": result.barrier_s,
        "upload": result.upload_s,
        "update": result.update_s,
    }
    if not synchronous:
        del means["barrier"]
    _restore_measured(means, row)
    # The parts are means over finished cycles, the step over the simulated time: equal except for the edges.
    total = sum(means.values())
    situation = row.situations[0]
    links = {"downlink": result.download_utilisation, "uplink": result.upload_utilisation}
    if situation.facts.half_duplex:
        links = {"link": np.maximum(result.download_utilisation, result.upload_utilisation)}
    stations = {**links, "update": result.update_utilisation}
    network = network_of(situation, situation.load.log_factor)
    return Columns.row(
        {
            "step_s": step_s,
            "log_spread": result.ln_throughput_error,
            "extrapolation": float(extrapolation_of(np.array(row.workers), network.knee, situation.largest_workers)),
            "staleness_mean": result.staleness_mean,
            "staleness_p95": float(result.staleness_p95),
        },
        parts={name: seconds * step_s / total for name, seconds in means.items()},
        utilisation={name: min(float(busy.max()), 1.0) for name, busy in stations.items()},
        notices=(*dict.fromkeys(told for each in row.situations for told in _notices(each)), _SIMULATED),
    )


def _notices(situation: Situation) -> tuple[Notice, ...]:
    """Those of the situation, and what is taken where variation is not stated: the interval is the simulation's own."""
    variation = situation.variation
    if not variation.others or not situation.compute_s > 0.0:
        return situation.notices
    text = f"not stated, and not covered by the interval of a simulation: {COMPUTE_CV} ({variation.words})"
    return (*situation.notices, Notice("UNSAID", text))


def _restore_measured(means: dict[str, float], row: SimulationRow) -> None:
    """Give compute and transfers back what the specification moved between them."""
    moved = sum(
        (each.compute_s - max(each.compute_s - _quicker_s(each), 0.0)) * count / row.workers
        for each, count in zip(row.situations, row.counts, strict=True)
    )
    transfers = means["download"] + means["upload"]
    moved = min(max(moved, -means["compute"]), transfers)
    share = means["download"] / transfers if transfers > 0.0 else row.situations[0].phases.download_share
    means["compute"] += moved
    means["download"] -= moved * share
    means["upload"] -= moved * (1.0 - share)


def _quicker_s(situation: Situation) -> float:
    """Seconds by which lone transfers take less than their demand on the link; below 0 = they wait in addition."""
    return sum(transfer.saved_s for transfer in situation.transfers(situation.load.log_factor))


_SIMULATED: Final = Notice(
    "SIMULATED",
    (
        "each link is shared fairly by the workers; the interval covers the simulation's sampling error only, not "
        "uncertain inputs"
    ),
)


def _shares(situation: Situation) -> tuple[float, ...]:
    """What each server serves of a transfer, relative to the busiest; one server where shards are unknown."""
    shards, servers = situation.facts.shard_bytes, situation.phases.setting.servers
    if len(shards) != servers or not max(shards, default=0.0) > 0.0:
        return (1.0,)
    return tuple(shard / max(shards) for shard in shards)
