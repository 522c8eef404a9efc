"""Asynchronous curves from phases: workers circulate through download, compute, upload and update."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints
from nodewise_queueing.network import Network, NetworkSolution
from nodewise_queueing.regularity import ORDER_NOISE, between, coherence_of, expected_order, lock_order, order_swing
from nodewise_queueing.rows import MAX_WORKERS
from nodewise_queueing.situation import Situation, extrapolation_of, staleness_of, swing
from nodewise_queueing.tables import Columns, combined_spread, tabulate
from nodewise_queueing.unsaid import Unsaid, unsaid_of
from nodewise_queueing.variation import COMPUTE_CV

__all__ = ["BRACKET", "Rates", "asynchronous_table", "by_phase", "network_of", "rates_of", "usual_order"]

_PARTS = ("download", "compute", "upload", "update")

BRACKET: Final = ("in_step_steps_per_s", "processor_sharing_steps_per_s", "first_come_first_served_steps_per_s")
"""Extra columns: the three curves that the answer lies between. Regular workers served in the order in which they come
are next to the asymptotic bound, which is used for them."""

UPDATE_RESIDUAL: Final = 0.5
"""An update is served in order of arrival, under a lock, and is the same arithmetic on the same bytes every time: a
worker that finds the lock taken waits for half an update more on average (uniform residual of a constant)."""


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Logarithms of the rates of 1 to n workers by three curves, and where between these they are expected."""

    in_step: Floats
    fair_share: Floats
    orderly: Floats
    usual: Floats
    solution: NetworkSolution

    def shift(self, by: Floats | float, at: Ints | slice = slice(None)) -> Floats:
        """Logarithms of the rates of workers whose place differs from the expected one, at all numbers or some."""
        return between(self.in_step[at], self.fair_share[at], self.orderly[at], self.usual[at] + by)


def network_of(situation: Situation, log_load: float) -> Network:
    """The closed network: downlink, uplink and the server's update, compute as think time.

    A full-duplex link is two stations, a half-duplex one a single station. What a transfer costs under load beyond its
    time alone is saved when alone, so that one worker's cycle is exactly the measured one; what was hidden is saved
    always, download and upload in proportion.
    """
    phases = situation.phases
    residual = UPDATE_RESIDUAL if situation.link_known else 1.0
    download, upload = situation.transfers(log_load)
    saved_download = download.saved_s + phases.hidden_s * phases.download_share
    saved_upload = upload.saved_s + phases.hidden_s * (1.0 - phases.download_share)
    if situation.facts.half_duplex:
        both = download.demand_s + upload.demand_s
        alone = download.demand_s * download.flows + upload.demand_s * upload.flows
        return Network(
            think_s=situation.compute_s,
            demands_s=(both, phases.update_s),
            saved_s=(saved_download + saved_upload, 0.0),
            flows=(alone / both if both > 0.0 else 1.0, 1.0),
            residual_share=(1.0, residual),
        )
    return Network(
        think_s=situation.compute_s,
        demands_s=(download.demand_s, upload.demand_s, phases.update_s),
        saved_s=(saved_download, saved_upload, 0.0),
        flows=(download.flows, upload.flows, 1.0),
        residual_share=(1.0, 1.0, residual),
    )


def rates_of(situation: Situation, network: Network, population: int, solved: NetworkSolution | None = None) -> Rates:
    """Rates of 1 to `population` workers; ``solved``: the network's, where they are known."""
    solved = solved or network.solve_fair_sharing(population)
    orderly = network.orderly_rate(population)
    in_step, shared, orderly = np.log([network.in_step_rate(orderly), solved.rate_per_s, orderly])
    return Rates(in_step, shared, orderly, usual_order(situation, network, solved), solved)


def usual_order(
    situation: Situation, network: Network, solved: NetworkSolution, *, compute_std_s: float | None = None
) -> Floats:
    """(n,) expected place of the workers: their coherence, and the pace of the server's lock.

    ``compute_std_s``: deviation of the workers' compute; None = that of one worker's mini-batches.

    Nothing of it where the link is not known: the stations may then be anything, and are taken as mean value analysis
    takes them, shared or served for exponential times.
    """
    population = len(solved.rate_per_s)
    if not situation.link_known:
        return np.zeros(population)
    transfer_s = 0.5 * sum(network.demands_s[:-1])
    own_std_s = situation.compute_cv * situation.compute_s
    coherence = coherence_of(network, transfer_s, own_std_s if compute_std_s is None else compute_std_s)
    order = expected_order(network, coherence, population)
    return lock_order(order, np.minimum(solved.rate_per_s * network.demands_s[-1], 1.0))


def asynchronous_table(situation: Situation, population: int) -> Columns:
    """Step times for 1 to `population` workers."""
    load = situation.load
    network = network_of(situation, load.log_factor)
    rates = rates_of(situation, network, population)
    workers, devices = np.arange(1, population + 1), situation.exchange.devices

    def log_step(changed: Network) -> Floats:
        return -rates_of(situation, changed, population).shift(load.order_shift)

    spread = combined_spread(
        situation.measured_variance,
        order_swing(rates.in_step, rates.orderly, math.hypot(load.order_spread, ORDER_NOISE)),
        swing(lambda by: log_step(network_of(situation, load.log_factor + by)), load.log_spread),
        swing(lambda by: log_step(network.dearer(math.exp(by))), situation.demand_log_spread),
        swing(lambda by: log_step(network.slower(math.exp(by))), situation.compute_log_spread),
    )
    log_rate = rates.shift(load.order_shift)
    unsaid: tuple[Unsaid, ...] = ()
    # Without a known link workers are taken to keep no order, which is all that variation would change.
    if situation.variation.others and (situation.link_known or situation.exchange.devices > 1):
        effects = []
        for cv, weight in situation.variation.others:
            varied = situation.with_variation(cv)
            changed = network_of(varied, load.log_factor)
            other = rates_of(varied, changed, population, rates.solution if changed == network else None)
            effects.append((log_rate - other.shift(load.order_shift), weight))
        unsaid = (unsaid_of(COMPUTE_CV, situation.variation.words, effects, spread),)
    step_s = workers / np.exp(log_rate)
    parts = _parts(situation, network, rates.solution.exposed_s, step_s)
    busy = np.minimum((workers / step_s)[:, np.newaxis] * np.array(network.demands_s), 1.0)
    return tabulate(
        step_s=np.sum(list(parts.values()), axis=0),
        log_spread=spread,
        extrapolation=extrapolation_of(workers, network.knee, situation.largest_workers),
        staleness=staleness_of(workers, step_s, situation.compute_s, situation.compute_cv),
        parts=parts,
        utilisation=dict(zip(situation.facts.stations, busy.T, strict=True)),
        extra={
            **dict(zip(BRACKET, devices * np.exp([rates.in_step, rates.fair_share, rates.orderly]), strict=True)),
            "knee_workers": np.full(population, min(devices * network.knee, float(MAX_WORKERS))),
        },
        bottleneck=_bottleneck(situation, network, workers),
        notices=situation.notices,
        unsaid=unsaid,
    )


def _parts(situation: Situation, network: Network, exposed_s: Floats, step_s: Floats) -> dict[str, Floats]:
    """The cycle by phase: what is no compute, in the proportions of fair sharing."""
    total = exposed_s.sum(axis=1)
    exchange = np.maximum(step_s - network.think_s, 0.0)
    shares = np.divide(exposed_s, total[:, np.newaxis], out=np.zeros_like(exposed_s), where=total[:, np.newaxis] > 0.0)
    download, upload, update = by_phase(situation, (shares * exchange[:, np.newaxis]).T)
    compute = np.full(len(step_s), network.think_s)
    return dict(zip(_PARTS, (download, compute, upload, update), strict=True))


def by_phase(situation: Situation, spent_s: Floats) -> Floats:
    """Download, upload and update, from the time spent at each station; a half-duplex link's has part in both."""
    if not situation.facts.half_duplex:
        return spent_s
    share = situation.phases.download_share
    return np.stack([spent_s[0] * share, spent_s[0] * (1.0 - share), spent_s[1]])


def _bottleneck(situation: Situation, network: Network, workers: Ints) -> Ints:
    """Index of the phase that limits: from the knee on the busiest station's, before it one worker's longest."""
    phases = situation.phases
    download, upload = (transfer.demand_s for transfer in situation.transfers(situation.load.log_factor))
    alone = (phases.download_s, situation.compute_s, phases.upload_s, phases.update_s)
    longest = max(range(4), key=alone.__getitem__)
    if situation.facts.half_duplex and download + upload >= phases.update_s:
        busiest = 0 if download >= upload else 2
    else:
        busiest = max((0, 2, 3), key=(download, 0.0, upload, phases.update_s).__getitem__)
    return np.where(workers >= network.knee, busiest, longest)
