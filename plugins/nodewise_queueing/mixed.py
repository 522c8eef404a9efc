"""Workers that are not alike: other devices, or slower ones of the same, on one set of servers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nodewise.plugin import Floats, Notice, SyncMode
from nodewise_laws import barrier_round_mixed, multiclass, private_cycle_cv, staleness_p95
from nodewise_queueing.asynchronous import network_of
from nodewise_queueing.network import Network
from nodewise_queueing.regularity import ORDER_NOISE, order_swing
from nodewise_queueing.situation import Situation, combined_spread, extrapolation_of
from nodewise_queueing.tables import Columns

__all__ = ["mixed_columns", "slowed"]


def mixed_columns(mode: SyncMode, situations: list[Situation], counts: list[int], backup_workers: int) -> Columns:
    """Answer for one composition of workers; one situation per class, with its own compute time.

    The one row stands for one number of workers of each class.
    """
    if mode == SyncMode.ASYNC:
        return _asynchronous(situations, counts)
    return _synchronous(situations, counts, backup_workers)


def slowed(situation: Situation, factor: float) -> Situation:
    """The situation of workers that compute slower by a factor."""
    phases = situation.phases
    return replace(situation, phases=replace(phases, compute_s=phases.compute_s * factor))


def _asynchronous(situations: list[Situation], counts: list[int]) -> Columns:
    """Classes of a closed network (multiclass mean value analysis), out of step with each other.

    The step is the mean over all updates: W / X, with X that of all classes together.
    """
    networks = [network_of(situation, situation.load.log_factor) for situation in situations]
    demands = np.array([network.demands_s for network in networks])
    # A lone worker spends `flows` times the demand at a station; what is beyond the demand is no queueing.
    beyond = np.array([sum(d * (f - 1.0) for d, f in zip(n.demands_s, n.flows, strict=True)) for n in networks])
    saved = np.array([sum(network.saved_s) for network in networks])
    compute = np.array([network.think_s for network in networks])
    solved = multiclass(demands, np.maximum(compute + beyond - saved, 0.0), counts)
    rate, total = solved.throughput_per_s, sum(counts)
    step_s = total / float(rate.sum())
    weight = rate / rate.sum()
    compute_s = float(weight @ compute)
    spent = weight @ solved.residence_s
    exchange = max(step_s - compute_s, 0.0)
    shares = spent / spent.sum() if spent.sum() > 0.0 else np.zeros(len(spent))
    first = situations[0]
    if first.facts.half_duplex:
        both = first.phases.download_s + first.phases.upload_s
        part = first.phases.download_s / both if both > 0.0 else 0.0
        link, update = (shares * exchange).tolist()
        download, upload = link * part, link * (1.0 - part)
    else:
        download, upload, update = (shares * exchange).tolist()
    names = ("link", "update") if first.facts.half_duplex else ("downlink", "uplink", "update")
    busy = np.minimum((rate[:, np.newaxis] * demands).sum(axis=0), 1.0)
    return _row(
        situations,
        networks,
        step_s=step_s,
        parts={"download": download, "compute": compute_s, "upload": upload, "update": update},
        utilisation=dict(zip(names, busy.tolist(), strict=True)),
        bracket=_bracket(networks, counts),
        workers=total,
        # Updates by others in a cycle of each class, averaged over updates: W - 1, whatever the classes are.
        staleness=(total - 1.0, float(staleness_p95(total, private_cycle_cv(step_s, compute_s, first.compute_cv)))),
        notice=Notice("MIXED_WORKERS", f"workers of {len(counts)} classes: solved by {_METHODS[solved.method]}"),
    )


_METHODS = {
    "exact": "exact multiclass mean value analysis",
    "linearizer": "Linearizer, an approximation: exact analysis of so many workers is too dear",
}


def _bracket(networks: list[Network], counts: list[int]) -> float:
    """Deviation of ln(rate) from the order of service, which lies between two asymptotic bounds."""
    total = sum(counts)
    free = sum(count / network.alone_s for count, network in zip(counts, networks, strict=True))
    demand = max(max(network.demands_s) for network in networks)
    orderly = min(free, 1.0 / demand if demand > 0.0 else math.inf)
    alone = total / free
    in_step = total / (alone + (total - 1) * max(sum(network.demands_s) for network in networks))
    return float(order_swing(np.log(np.array([min(in_step, orderly)])), np.log(np.array([orderly])), ORDER_NOISE)[0])


def _synchronous(situations: list[Situation], counts: list[int], backup_workers: int) -> Columns:
    """A round of classes: expected maximum over all workers, exchanges as they finish."""
    total = sum(counts)
    share = np.array(counts) / total
    transfers = [situation.transfers(situation.load.log_factor) for situation in situations]
    download = float(share @ [each.demand_s for each, _ in transfers])
    upload = float(share @ [each.demand_s for _, each in transfers])
    update = float(share @ [situation.phases.update_s for situation in situations])
    compute = np.array([situation.phases.compute_s for situation in situations])
    law = barrier_round_mixed(
        counts,
        compute_s=compute,
        compute_cv=np.array([situation.compute_cv for situation in situations]),
        download_s=download,
        exchange_s=max(upload, update),
        backup_workers=backup_workers,
    )
    hidden = float(share @ [situation.phases.hidden_s for situation in situations])
    downloads = total * download
    mean = min(float(share @ compute), law.slowest_compute_s)
    barrier = law.slowest_compute_s - mean
    finish = max(law.round_s - downloads - mean - barrier + min(upload, update), 0.0)
    uploads = finish * (upload / (upload + update) if upload + update > 0.0 else 0.0)
    kept = max(1.0 - hidden / (downloads + uploads), 0.0) if downloads + uploads > 0.0 else 1.0
    parts = {
        "download": downloads * kept,
        "compute": mean,
        "barrier": barrier,
        "upload": uploads * kept,
        "update": finish - uploads,
    }
    step_s = sum(parts.values())
    busy = {"downlink": downloads, "uplink": total * upload, "update": total * update}
    if situations[0].facts.half_duplex:
        busy = {"link": busy["downlink"] + busy["uplink"], "update": busy["update"]}
    networks = [network_of(situation, situation.load.log_factor) for situation in situations]
    return _row(
        situations,
        networks,
        step_s=step_s,
        parts=parts,
        utilisation={name: min(seconds / step_s, 1.0) for name, seconds in busy.items()},
        bracket=0.0,
        workers=total,
        staleness=(0.0, 0.0),
        notice=Notice("MIXED_WORKERS", f"workers of {len(counts)} classes: a round waits for the slowest of all"),
    )


def _row(
    situations: list[Situation],
    networks: list[Network],
    *,
    step_s: float,
    parts: dict[str, float],
    utilisation: dict[str, float],
    bracket: float,
    workers: int,
    staleness: tuple[float, float],
    notice: Notice,
) -> Columns:
    """One row; doubts are those of the class that has most of each."""
    exchange = 1.0 - parts["compute"] / step_s
    spread = combined_spread(
        max(situation.measured_variance for situation in situations),
        bracket,
        exchange * max(situation.load.log_spread for situation in situations),
        exchange * max(situation.demand_log_spread for situation in situations),
        max(situation.compute_log_spread for situation in situations),
    )
    extrapolation = extrapolation_of(
        np.array([workers]),
        min(network.knee for network in networks),
        max(situation.largest_workers for situation in situations),
    )
    basic: dict[str, Floats] = {
        "step_s": np.array([step_s]),
        "log_spread": np.reshape(spread, 1),
        "extrapolation": extrapolation,
        "staleness_mean": np.array([staleness[0]]),
        "staleness_p95": np.array([staleness[1]]),
    }
    notices = (notice, *dict.fromkeys(told for situation in situations for told in situation.notices))
    return Columns.of(
        basic,
        parts={name: np.array([seconds]) for name, seconds in parts.items()},
        utilisation={name: np.array([share]) for name, share in utilisation.items()},
        extra={},
        bottleneck=[list(parts.values()).index(max(parts.values()))],
        notices=notices,
    )
