"""Asynchronous curves from phases: workers circulate through download, compute, upload and update."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nodewise.plugin import Floats, Ints, as_floats
from nodewise_queueing.overlap import Stations, cycles_of, optimistic_rate
from nodewise_queueing.situation import Situation, combined_spread, extrapolation_of, swing
from nodewise_queueing.tables import Table, tabulated

__all__ = ["asynchronous_table", "bracket_of", "stations_of"]

_PARTS = ("download", "compute", "upload", "update")


def stations_of(situation: Situation, log_load: float) -> Stations:
    """The closed network: downlink, uplink and the server's update, compute as think time.

    A full-duplex link is two stations, a half-duplex one a single station. What a transfer costs under load beyond its
    time alone is saved when alone, so that one worker's cycle is exactly the measured one; what was hidden is saved
    always, download and upload in proportion.
    """
    phases = situation.phases
    download, upload = situation.under_load_s(log_load)
    transfers = phases.download_s + phases.upload_s
    share = phases.download_s / transfers if transfers > 0.0 else 0.0
    saved_download = download - phases.download_s + phases.hidden_s * share
    saved_upload = upload - phases.upload_s + phases.hidden_s * (1.0 - share if transfers > 0.0 else 0.0)
    if situation.facts.half_duplex:
        demands: tuple[float, ...] = (download + upload, phases.update_s)
        saved: tuple[float, ...] = (saved_download + saved_upload, 0.0)
    else:
        demands = (download, upload, phases.update_s)
        saved = (saved_download, saved_upload, 0.0)
    return Stations(think_s=phases.compute_s, demands_s=demands, saved_s=saved)


def asynchronous_table(situation: Situation, population: int) -> Table:
    """Step times for 1 to `population` workers."""
    load = situation.load
    network = stations_of(situation, load.log_factor)
    cycles = cycles_of(network, population)
    rate = cycles.rate_per_s
    workers = np.arange(1, population + 1)

    def log_step(changed: Stations) -> Floats:
        return np.asarray(-np.log(cycles_of(changed, population).rate_per_s))

    bracket = bracket_of(network, rate)
    spread = combined_spread(
        situation.measured_variance,
        bracket,
        swing(lambda by: log_step(stations_of(situation, load.log_factor + by)), load.log_spread),
        swing(lambda by: log_step(_dearer(network, math.exp(by))), situation.demand_log_spread),
        swing(lambda by: log_step(_slower(network, math.exp(by))), situation.compute_log_spread),
    )
    parts = _parts(situation, network, cycles.exposed_s)
    busy = np.minimum(rate[:, np.newaxis] * np.array(network.demands_s), 1.0)
    names = ("link", "update") if situation.facts.half_duplex else ("downlink", "uplink", "update")
    return tabulated(
        step_s=np.sum(list(parts.values()), axis=0),
        log_spread=spread,
        extrapolation=extrapolation_of(workers, network.knee, situation.largest_workers),
        staleness=as_floats(workers - 1),
        parts=parts,
        utilisation={name: busy[:, column] for column, name in enumerate(names)},
        bottleneck=_bottleneck(situation, network, workers),
        notices=situation.notices,
    )


def bracket_of(network: Stations, rate: Floats) -> Floats:
    """Half the logarithmic width from mean value analysis, at populations 1..n, to the asymptotic bound: one deviation.

    Real systems lie between: the more regular the phases and the more orderly the service, the nearer to the bound.
    """
    return np.asarray(0.5 * np.maximum(np.log(optimistic_rate(network, len(rate)) / rate), 0.0))


def _parts(situation: Situation, network: Stations, exposed_s: Floats) -> dict[str, Floats]:
    """The cycle by phase; the residence at a half-duplex link is shared in proportion to the two transfers."""
    if situation.facts.half_duplex:
        phases = situation.phases
        both = phases.download_s + phases.upload_s
        share = phases.download_s / both if both > 0.0 else 0.0
        download, upload, update = exposed_s[:, 0] * share, exposed_s[:, 0] * (1.0 - share), exposed_s[:, 1]
    else:
        download, upload, update = exposed_s.T
    compute = np.full(len(exposed_s), network.think_s)
    return dict(zip(_PARTS, (download, compute, upload, update), strict=True))


def _bottleneck(situation: Situation, network: Stations, workers: Ints) -> Ints:
    """Index of the phase that limits: from the knee on the busiest station's, before it one worker's longest."""
    phases = situation.phases
    download, upload = situation.under_load_s(situation.load.log_factor)
    alone = (phases.download_s, phases.compute_s, phases.upload_s, phases.update_s)
    longest = max(range(4), key=alone.__getitem__)
    if situation.facts.half_duplex and download + upload >= phases.update_s:
        busiest = 0 if download >= upload else 2
    else:
        busiest = max((0, 2, 3), key=(download, 0.0, upload, phases.update_s).__getitem__)
    return np.where(workers >= network.knee, busiest, longest)


def _dearer(network: Stations, factor: float) -> Stations:
    """All demands multiplied, alone as under load."""
    return replace(
        network,
        demands_s=tuple(demand * factor for demand in network.demands_s),
        saved_s=tuple(saved * factor for saved in network.saved_s),
    )


def _slower(network: Stations, factor: float) -> Stations:
    """Compute multiplied."""
    return replace(network, think_s=network.think_s * factor)
