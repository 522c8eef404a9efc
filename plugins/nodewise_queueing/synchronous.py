"""Synchronous curves from phases: a round of downloads, compute, and exchanges in the order in which workers finish."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints
from nodewise_laws import barrier_round_backup
from nodewise_laws.alternatives import mean_square
from nodewise_queueing.asynchronous import network_of
from nodewise_queueing.evidence import Facts
from nodewise_queueing.situation import Situation, Transfer, extrapolation_of, swing
from nodewise_queueing.tables import Columns, combined_spread, tabulate
from nodewise_queueing.unsaid import Unsaid, unsaid_of
from nodewise_queueing.variation import COMPUTE_CV

__all__ = [
    "Rounds",
    "busy_s",
    "rounds_by_part",
    "rounds_of",
    "sampling_of",
    "seconds_of",
    "synchronous_table",
    "variation_doubt",
]

EVERY_WORKERS: Final = 32
"""Workers up to which every round is computed."""

Rounds = dict[str, Floats]
"""Rounds by part, one entry per number of workers; the parts add up to the round.

``download``: all downloads, which share the link. ``compute``: mean compute of one worker. ``barrier``: what the
slowest is expected to compute beyond the mean. ``upload``, ``update``: from its end on, and what queued before
it: the exposed part of all exchanges.
"""


def seconds_of(rounds: Rounds) -> Floats:
    """Seconds of one global step."""
    return np.asarray(np.sum(list(rounds.values()), axis=0))


def _hiding(rounds: Rounds, hidden_s: float) -> Rounds:
    """The same with so much of the transfers behind compute."""
    transfers = rounds["download"] + rounds["upload"]
    hidden = np.divide(hidden_s, transfers, out=np.zeros(np.shape(transfers)), where=transfers > 0.0)
    # All may be hidden, and a sum be short of itself by rounding.
    exposed_share = np.maximum(1.0 - hidden, 0.0)
    return rounds | {"download": rounds["download"] * exposed_share, "upload": rounds["upload"] * exposed_share}


def rounds_of(situation: Situation, log_load: float, workers: Ints, *, backup_workers: int = 0) -> Rounds:
    """Rounds with a barrier, which the slowest b of W workers may miss.

    ::

        t = W D_d + E[ max_{i <= W - b} ( c_(i) + (W - b - i + 1) max(D_u, U) ) ] + min(D_u, U) - h

    The link takes the next upload while the lock holds an update: the dearer of the two is what exchanges queue for
    (constant times in a flow shop of two machines). Demands are those under load from two workers on, and the
    measured phases for one. Hidden transfer time h is taken off the transfers once a round: with a barrier, what one
    worker hid is all that every worker can hide.
    """
    phases = situation.phases
    download, upload = situation.transfers(log_load)
    compute_s = situation.compute_s
    law = barrier_round_backup(
        workers,
        download_s=download.demand_s,
        exchange_s=max(upload.demand_s, phases.update_s),
        compute_s=compute_s,
        compute_cv=situation.compute_cv,
        backup_workers=np.minimum(backup_workers, workers - 1),
    )
    several = rounds_by_part(
        workers,
        law.round_s,
        law.slowest_compute_s,
        download=download,
        upload=upload,
        compute_s=compute_s,
        update_s=phases.update_s,
        hidden_s=phases.hidden_s,
    )
    one = {"download": phases.download_s, "compute": compute_s, "barrier": 0.0}
    one |= {"upload": phases.upload_s, "update": phases.update_s}
    alone = _hiding({name: np.array(seconds) for name, seconds in one.items()}, phases.hidden_s)
    return {name: np.where(workers == 1, alone[name], part) for name, part in several.items()}


def rounds_by_part(
    workers: Ints,
    round_s: Floats,
    slowest_s: Floats,
    *,
    download: Transfer,
    upload: Transfer,
    compute_s: float,
    update_s: float,
    hidden_s: float,
) -> Rounds:
    """A law's rounds, in which exchanges queue for the dearer of link and lock, with all that lengthens them, by part.

    A round trip, or a worker's own slower link, makes a transfer last as long as alone at least. Of what follows the
    slowest worker's compute, its own upload and update come first; the rest is the queue's, of the dearer of the two.
    """
    downloads = np.maximum(workers * download.demand_s, download.alone_s)
    compute = np.minimum(compute_s, slowest_s)
    own_upload = max(upload.alone_s, upload.demand_s)
    # After the slowest worker's compute the law has its exchange, for which the dearer of the two stands.
    longest = max(upload.demand_s, update_s)
    queued = np.maximum(round_s - workers * download.demand_s - slowest_s - longest, 0.0)
    by_link = upload.demand_s >= update_s
    rounds = {
        "download": downloads,
        "compute": compute,
        "barrier": slowest_s - compute,
        "upload": own_upload + (queued if by_link else 0.0 * queued),
        "update": update_s + (0.0 * queued if by_link else queued),
    }
    return _hiding(rounds, hidden_s)


def busy_s(facts: Facts, workers: Ints, download_s: float, upload_s: float, update_s: float) -> dict[str, Floats]:
    """Seconds of a round during which each station is busy, by what one worker asks of it."""
    downlink, uplink, update = np.multiply.outer((download_s, upload_s, update_s), workers)
    if facts.half_duplex:
        return {"link": downlink + uplink, "update": update}
    return {"downlink": downlink, "uplink": uplink, "update": update}


def synchronous_table(situation: Situation, population: int, backup_workers: int = 0) -> Columns:
    """Rounds of 1 to `population` workers. With no more workers than backups, one is waited for; this is not used."""
    load = situation.load
    workers = np.arange(1, population + 1)
    at = _dense_nodes(population, backup_workers)
    measured = rounds_of(situation, load.log_factor, at, backup_workers=backup_workers)
    rounds = {name: np.interp(workers, at, part) for name, part in measured.items()}
    step_s = seconds_of(rounds)

    # A deviation needs no more than a few points of the curve; each costs what a point of the curve does.
    nodes = _nodes(population)

    def log_step(changed: Situation, log_load: float = load.log_factor) -> Floats:
        return np.asarray(np.log(seconds_of(rounds_of(changed, log_load, nodes, backup_workers=backup_workers))))

    spread = combined_spread(
        situation.measured_variance,
        swing(
            lambda by: log_step(situation.with_variation(max(situation.variation.value + by, 0.0))),
            sampling_of(situation),
        ),
        swing(lambda by: log_step(situation, load.log_factor + by), load.log_spread),
        swing(lambda by: log_step(_dearer(situation, math.exp(by))), situation.demand_log_spread),
        swing(lambda by: log_step(situation.slow_compute(math.exp(by))), situation.compute_log_spread),
    )
    unsaid: tuple[Unsaid, ...] = ()
    if situation.variation.others and situation.compute_s > 0.0:
        base = log_step(situation)
        effects = [(log_step(situation.with_variation(cv)) - base, weight) for cv, weight in situation.variation.others]
        doubt = unsaid_of(COMPUTE_CV, situation.variation.words, effects, np.broadcast_to(spread, nodes.shape))
        unsaid = (doubt.read_between(workers, nodes),)
    network = network_of(situation, load.log_factor)
    download, upload = situation.transfers(load.log_factor)
    busy = busy_s(situation.facts, workers, download.demand_s, upload.demand_s, situation.phases.update_s)
    return tabulate(
        step_s=step_s,
        log_spread=np.interp(workers, nodes, np.broadcast_to(spread, nodes.shape)),
        extrapolation=extrapolation_of(workers, network.knee, situation.largest_workers),
        staleness=(np.zeros(population), np.zeros(population)),
        parts=rounds,
        utilisation={name: np.minimum(seconds / step_s, 1.0) for name, seconds in busy.items()},
        extra={},
        bottleneck=np.argmax(list(rounds.values()), axis=0),
        notices=situation.notices,
        unsaid=unsaid,
    )


def variation_doubt(situation: Situation, log_load: float, workers: Ints) -> Floats | float:
    """Standard deviation of ln(round) from not knowing how much compute varies."""

    def log_round(cv: float) -> Floats:
        return np.asarray(np.log(seconds_of(rounds_of(situation.with_variation(max(cv, 0.0)), log_load, workers))))

    value = situation.variation.value
    if not situation.variation.others:
        return swing(lambda by: log_round(value + by), sampling_of(situation))
    base = log_round(value)
    return np.sqrt(mean_square([(log_round(cv) - base, weight) for cv, weight in situation.variation.others]))


def _nodes(population: int) -> Ints:
    """1, 2, 3, 4, 6, 8, 12, ... to the population or beyond: the same points for every population."""
    doublings = 2 ** np.arange(population.bit_length() + 1, dtype=np.int64)
    nodes = np.union1d(doublings, 3 * doublings // 2)
    return np.asarray(nodes[: int(np.searchsorted(nodes, population)) + 1])


def _dense_nodes(population: int, backup_workers: int) -> Ints:
    """Numbers of workers at which rounds are computed; between them they are read off, for they are smooth there.

    All up to EVERY_WORKERS, and as many from the first that a round with backups waits for; then eight per doubling.
    """
    doublings = max(population.bit_length(), 6) + 1
    far = np.unique(np.round(EVERY_WORKERS * 2.0 ** (np.arange(8 * (doublings - 5) + 1) / 8.0)).astype(np.int64))
    near = np.concatenate((np.arange(1, EVERY_WORKERS + 1), far))
    nodes = np.unique(np.concatenate((near, near + backup_workers)))
    return np.asarray(nodes[: int(np.searchsorted(nodes, population)) + 1])


def sampling_of(situation: Situation) -> float:
    """Standard deviation of a measured variation of compute, which so many steps tell; 0 where these are not known."""
    measured, steps = situation.phases.compute_cv, situation.phases.steps
    return 0.0 if measured is None or steps == 0 else measured / math.sqrt(2.0 * steps)


def _dearer(situation: Situation, factor: float) -> Situation:
    """All demands multiplied, of one worker as under load."""
    phases = situation.phases
    return replace(
        situation,
        floor_s=situation.floor_s * factor,
        phases=replace(
            phases,
            download_s=phases.download_s * factor,
            upload_s=phases.upload_s * factor,
            update_s=phases.update_s * factor,
            hidden_s=phases.hidden_s * factor,
        ),
    )
