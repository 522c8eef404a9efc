"""Workers that are not alike: other devices, or slower ones of the same, on one set of servers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from nodewise.plugin import Floats, Notice, SyncMode
from nodewise_laws import (
    MAX_COEFFICIENT_OF_VARIATION,
    MixedRound,
    barrier_round_mixed,
    multiclass,
    private_cycle_cv,
    staleness_p95,
)
from nodewise_queueing.asynchronous import by_phase, network_of, usual_order
from nodewise_queueing.network import Network
from nodewise_queueing.regularity import ORDER_NOISE, between, order_swing
from nodewise_queueing.situation import Situation, Transfer, extrapolation_of, swing
from nodewise_queueing.synchronous import busy_s, rounds_by_part, sampling_of, seconds_of
from nodewise_queueing.tables import BASIC, Columns, combined_spread
from nodewise_queueing.unsaid import Unsaid, unsaid_of
from nodewise_queueing.variation import COMPUTE_CV

__all__ = ["mixed_columns"]


def mixed_columns(mode: SyncMode, situations: list[Situation], counts: list[int], backup_workers: int) -> Columns:
    """Answer for one composition of workers; one situation per class, with its own compute time.

    The one row is for one number of workers of each class.
    """
    if mode == SyncMode.ASYNC:
        return _asynchronous(situations, counts)
    return _synchronous(situations, counts, backup_workers)


def _asynchronous(situations: list[Situation], counts: list[int]) -> Columns:
    """Classes of a closed network (multiclass mean value analysis), out of step with each other.

    The step is the mean over all updates: W / X, with X that of all classes together.
    """
    networks = [network_of(situation, situation.load.log_factor) for situation in situations]
    demands, think = (np.concatenate(parts) for parts in zip(*map(_single, networks), strict=True))
    compute = np.array([network.think_s for network in networks])
    solved = multiclass(demands, think, counts)
    rate, total = solved.throughput_per_s, sum(counts)
    lengthened, doubt = _order_effect(situations, networks, counts, float(rate.sum()))
    step_s = total / float(rate.sum()) * lengthened
    rate = rate / lengthened
    weight = rate / rate.sum()
    compute_s = min(float(weight @ compute), step_s)
    # A lone worker spends `flows` times the demand at a station, less what is saved.
    flows, saved = (np.array([getattr(network, name) for network in networks]) for name in ("flows", "saved_s"))
    spent = weight @ np.maximum(solved.residence_s + demands * (flows - 1.0) - saved, 0.0)
    exchange = step_s - compute_s
    first = situations[0]
    # Where nothing is spent at any station, what is left of the cycle is transfers that load none.
    shares = spent / spent.sum() if spent.sum() > 0.0 else np.eye(len(spent))[0]
    download, upload, update = by_phase(first, shares * exchange).tolist()
    busy = np.minimum((rate[:, np.newaxis] * demands).sum(axis=0), 1.0)
    return _row(
        situations,
        step_s=step_s,
        parts={"download": download, "compute": compute_s, "upload": upload, "update": update},
        utilisation=dict(zip(first.facts.stations, busy.tolist(), strict=True)),
        doubt=doubt,
        workers=total,
        # Updates by others in a cycle of each class, averaged over updates: W - 1, whatever the classes are.
        staleness=(total - 1.0, float(staleness_p95(total, private_cycle_cv(step_s, compute_s, first.compute_cv)))),
        notice=Notice(
            "MIXED_WORKERS", (f"the cluster has workers of {len(counts)} classes: solved by {_METHODS[solved.method]}")
        ),
    )


_METHODS = {
    "exact": "exact multiclass mean value analysis",
    "linearizer": "Linearizer, an approximation, as exact analysis of so many workers takes too long",
}


def _order_effect(
    situations: list[Situation], networks: list[Network], counts: list[int], out_of_step_per_s: float
) -> tuple[float, float]:
    """Factor of the step by the order of workers, and the deviation of ln(step) from uncertainty about it.

    As for workers that are alike, about their mean: classes that compute for different times are that much less
    coherent.
    """
    share = np.array(counts) / sum(counts)
    compute = np.array([situation.phases.compute_s for situation in situations])
    own = np.array([situation.compute_cv for situation in situations]) * compute
    mean_s = float(share @ compute)
    std_s = math.sqrt(float(share @ (own**2 + (compute - mean_s) ** 2)))
    first = situations[int(share.argmax())]
    mean = first.slow_compute(mean_s / first.phases.compute_s) if first.phases.compute_s > 0.0 else first
    network, total = network_of(mean, mean.load.log_factor), sum(counts)
    solved = network.solve_fair_sharing(total)
    order = usual_order(mean, network, solved, compute_std_s=std_s)[-1] + mean.load.order_shift
    # What multiclass analysis leaves out (the lock's order, shared links of slow workers) is as for alike ones.
    alone = multiclass(*_single(network), [total]).throughput_per_s.sum()
    shared_per_s = out_of_step_per_s * float(solved.rate_per_s[-1] / alone)
    free = sum(count / each.alone_s for count, each in zip(counts, networks, strict=True))
    demand = max(max(each.demands_s) for each in networks)
    orderly = min(free, 1.0 / demand if demand > 0.0 else math.inf)
    in_step = total / (total / free + (total - 1) * max(sum(each.demands_s) for each in networks))
    rates = np.log(np.array([[min(in_step, orderly)], [shared_per_s], [orderly]]))
    answer = float(between(rates[0], rates[1], rates[2], np.array([order]))[0])
    doubt = order_swing(rates[0], rates[2], math.hypot(mean.load.order_spread, ORDER_NOISE))
    return out_of_step_per_s / math.exp(answer), float(doubt[0])


def _single(network: Network) -> tuple[Floats, Floats]:
    """Demands and think time of a network of one class: what is no queueing is time of the worker's own."""
    demands = np.array([network.demands_s])
    beyond = demands * (np.array([network.flows]) - 1.0) - np.array([network.saved_s])
    return demands, np.maximum(network.think_s + beyond.sum(axis=1), 0.0)


def _synchronous(situations: list[Situation], counts: list[int], backup_workers: int) -> Columns:
    """A round of classes: expected maximum over all workers, exchanges as they finish."""
    total = sum(counts)
    share = np.array(counts) / total
    transfers = [situation.transfers(situation.load.log_factor) for situation in situations]
    download = _mean_transfer([each for each, _ in transfers], share)
    upload = _mean_transfer([each for _, each in transfers], share)
    update = float(share @ [situation.phases.update_s for situation in situations])
    compute = np.array([situation.phases.compute_s for situation in situations])
    variation = np.array([situation.compute_cv for situation in situations])

    def law_with(compute_cv: Floats) -> MixedRound:
        return barrier_round_mixed(
            counts,
            compute_s=compute,
            compute_cv=np.clip(compute_cv, 0.0, MAX_COEFFICIENT_OF_VARIATION),
            download_s=download.demand_s,
            exchange_s=max(upload.demand_s, update),
            backup_workers=backup_workers,
        )

    law = law_with(variation)
    unsure = np.array([sampling_of(situation) for situation in situations])
    doubt = (
        swing(lambda by: np.log(np.array([law_with(variation + by * unsure).round_s])), 1.0) if unsure.any() else 0.0
    )
    rounds = rounds_by_part(
        np.array([total]),
        np.array([law.round_s]),
        np.array([law.slowest_compute_s]),
        download=download,
        upload=upload,
        compute_s=float(share @ compute),
        update_s=update,
        hidden_s=float(share @ [situation.phases.hidden_s for situation in situations]),
    )
    step_s = float(seconds_of(rounds)[0])
    busy = busy_s(situations[0].facts, np.array(total), download.demand_s, upload.demand_s, update)
    return _row(
        situations,
        step_s=step_s,
        parts={name: float(part[0]) for name, part in rounds.items()},
        utilisation={name: min(float(seconds) / step_s, 1.0) for name, seconds in busy.items()},
        doubt=float(np.max(doubt)),
        workers=total,
        staleness=(0.0, 0.0),
        notice=Notice(
            "MIXED_WORKERS",
            (f"the cluster has workers of {len(counts)} classes: a synchronous round waits for the slowest of all"),
        ),
        effects=[
            (np.array([math.log(law_with(values).round_s / law.round_s)]), weight)
            for values, weight in _other_variations(situations, variation)
        ],
    )


def _other_variations(situations: list[Situation], values: Floats) -> Iterator[tuple[Floats, float]]:
    """Other likely variations of compute, from the least on, with the mean of their weights.

    One cause moves all classes. Those with fewer values, or a known variation, keep their last.
    """
    others = [sorted(situation.variation.others) for situation in situations]
    most = max(map(len, others))
    for place in range(most):
        variations = [
            each[min(place, len(each) - 1)] if each else (cv, 0.0) for each, cv in zip(others, values.tolist())
        ]
        weights = [weight for (_, weight), each in zip(variations, others) if place < len(each)]
        yield np.array([cv for cv, _ in variations]), sum(weights) / len(weights)


def _mean_transfer(transfers: list[Transfer], share: Floats) -> Transfer:
    """Demands of the classes add up; a lone transfer lasts as long as the longest of any."""
    return Transfer(
        alone_s=max(each.alone_s for each in transfers),
        demand_s=float(share @ [each.demand_s for each in transfers]),
        flows=max(each.flows for each in transfers),
    )


def _row(
    situations: list[Situation],
    *,
    step_s: float,
    parts: dict[str, float],
    utilisation: dict[str, float],
    doubt: float,
    workers: int,
    staleness: tuple[float, float],
    notice: Notice,
    effects: Sequence[tuple[Floats, float]] = (),
) -> Columns:
    """One row; doubts are those of the class that has most of each."""
    exchange = 1.0 - parts["compute"] / step_s
    spread = combined_spread(
        max(situation.measured_variance for situation in situations),
        doubt,
        exchange * max(situation.load.log_spread for situation in situations),
        exchange * max(situation.demand_log_spread for situation in situations),
        max(situation.compute_log_spread for situation in situations),
    )
    extrapolation = extrapolation_of(
        np.array(workers),
        min(network_of(situation, situation.load.log_factor).knee for situation in situations),
        max(situation.largest_workers for situation in situations),
    )
    unsaid: tuple[Unsaid, ...] = ()
    if effects and parts["compute"] > 0.0:
        words = " and ".join(dict.fromkeys(each.variation.words for each in situations if each.variation.others))
        unsaid = (unsaid_of(COMPUTE_CV, words, effects, np.array([float(spread)])),)
        spread = combined_spread(0.0, spread, unsaid[0].deviation[0])
    basic = dict(zip(BASIC, (step_s, float(spread), float(extrapolation), *staleness), strict=True))
    notices = (
        notice,
        *dict.fromkeys(notice_of_class for situation in situations for notice_of_class in situation.notices),
    )
    return Columns.row(basic, parts=parts, utilisation=utilisation, notices=notices, unsaid=unsaid)
