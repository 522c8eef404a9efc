"""Speeds of the sets of nodes that may be alive: stated, or predicted like any other question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, as_ints, freeze
from nodewise.domain.completion_offers import CompletionGroup, CompletionOffer, LossReaction
from nodewise.domain.configurations import UNSTATED, Configurations, SyncMode, WorkerGroup, WorkerGroups
from nodewise.domain.errors import NodewiseError, Reason, Refusal, invalid_field
from nodewise.domain.predictions import Notice, RowStatus
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Basis, Question, Terms

__all__ = ["MOST_SETS", "Speeds", "log_spread_of", "predicted_rates", "speeds_of"]

MOST_SETS: Final = 8192
"""Sets of nodes of one offer that may be alive: predictions of so many rows take tens of milliseconds."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Speeds:
    """Samples/s of every set of nodes that may be alive, one axis per group, and their basis.

    ``sync_mode`` is the job's resolved mode.
    """

    table: Floats
    sync_mode: SyncMode
    log_spread: float = 0.0
    basis: Basis | None = None
    warnings: tuple[Notice, ...] = ()


def speeds_of(answers: Answers, profile: Profile | None, offer: CompletionOffer, terms: Terms) -> Speeds:
    """The speeds of an offer.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, LIMIT_EXCEEDED, EVIDENCE_MISSING; errors and refusals of the prediction.
    """
    shape = tuple(capacity + 1 for capacity in offer.capacities)
    if offer.speeds:
        return _stated_speeds(offer, shape)
    if profile is None:
        text = "speeds must be stated where the request has no profile"
        raise NodewiseError.refused(Refusal.missing(text, "profile", "speeds"))
    sets = math.prod(shape)
    if sets > MOST_SETS:
        message = f"{sets} sets of nodes can be alive, at most {MOST_SETS} are allowed; use fewer groups or nodes"
        raise NodewiseError(Reason.LIMIT_EXCEEDED, message, {"limit": "alive_sets_per_offer", "most": str(MOST_SETS)})
    alive = _possible(offer, shape)
    answer = predicted_rates(answers, profile, _configurations(offer, alive), terms)
    table = np.zeros(shape)
    table[tuple(np.array(alive).T)] = answer.samples_per_s
    full = alive.index(tuple(group.nodes for group in offer.groups))
    warnings = tuple(dict.fromkeys(Notice(each.reason, each.message) for each in answer.notices))
    mode = SyncMode(int(answer.configurations.sync_mode[full]))
    return Speeds(
        table=table, sync_mode=mode, log_spread=log_spread_of(answer, full), basis=answer.basis, warnings=warnings
    )


def predicted_rates(answers: Answers, profile: Profile, rows: Configurations, terms: Terms) -> Answer:
    """Predictions that all have a rate in samples.

    Raises
    ------
    NodewiseError
        The refusal of a row without a rate.
    """
    answer = answers.answer(Question(profile=profile, configurations=rows, terms=terms))
    predictions = answer.predictions
    for row in np.flatnonzero(~predictions.answered)[:1].tolist():
        raise _no_speed_error(answer, row)
    if not np.all(answer.samples_per_s > 0.0):
        text = "the samples of a step are not known; state the batch"
        raise NodewiseError.refused(Refusal.missing(text, "batch_per_worker_samples", "global_batch_samples"))
    return answer


def _no_speed_error(answer: Answer, row: int) -> NodewiseError:
    """The error for a set of nodes without a speed."""
    predictions, rows = answer.predictions, answer.configurations
    where = f"with {rows.nodes[row]} nodes and {rows.workers[row]} workers alive"
    if predictions.status[row] == RowStatus.INFEASIBLE_MEMORY:
        text = f"{where} the model does not fit into memory"
        return NodewiseError.refused(Refusal.unsupported(text, "groups"))
    refusal = next(each.refusal for each in predictions.refusals if row in each.rows)
    text = f"{where}: {refusal.message}; or state the speeds"
    return NodewiseError.refused(Refusal(refusal.reason, text, (*refusal.missing_fields, "speeds")))


def _stated_speeds(offer: CompletionOffer, shape: tuple[int, ...]) -> Speeds:
    if len(offer.speeds) != math.prod(shape):
        groups = " x ".join(map(str, shape))
        text = f"must hold {math.prod(shape)} numbers ({groups}: from none to all nodes of each group)"
        raise invalid_field("speeds.samples_per_second", f"{text}, found {len(offer.speeds)}")
    table = freeze(np.array(offer.speeds, dtype=np.float64).reshape(shape))
    if not float(table[tuple(group.nodes for group in offer.groups)]) > 0.0:
        raise invalid_field("speeds.samples_per_second", "must be above 0 where all nodes of the start are alive")
    if offer.sync_mode == SyncMode.UNSPECIFIED and offer.reaction == LossReaction.UNSPECIFIED:
        text = "must be stated, or sync_mode, where speeds are stated: it says how a loss affects the other nodes"
        raise invalid_field("reaction", text)
    return Speeds(table=table, sync_mode=offer.sync_mode)


def _possible(offer: CompletionOffer, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Sets that can occur and make progress: at most as many nodes as at the start; all where a loss stops all."""
    nodes = offer.nodes
    least = nodes if offer.reaction == LossReaction.RESTART else 1
    return [alive for alive in product(*(range(count) for count in shape)) if least <= sum(alive) <= nodes]


def _configurations(offer: CompletionOffer, alive: Sequence[tuple[int, ...]]) -> Configurations:
    """One row per set; groups of workers only where devices differ within one."""
    devices = tuple(dict.fromkeys(group.device for group in offer.groups))
    device_counts = [_by_device(offer.groups, each) for each in alive]
    has_mixed = any(len(each) > 1 for each in device_counts)
    groups = [
        tuple(WorkerGroup(device, workers) for device, workers in each.items()) if len(each) > 1 else ()
        for each in device_counts
    ]
    rows = Configurations.of(
        len(alive),
        nodes=[sum(each) for each in alive],
        workers=[sum(each.values()) for each in device_counts],
        sync_mode=offer.sync_mode,
        parameter_servers=UNSTATED if offer.parameter_servers is None else offer.parameter_servers,
        batch_per_worker=offer.batch_per_worker,
        global_batch=offer.global_batch,
        link_bytes_per_s=offer.link_bytes_per_s,
    )
    return rows.replaced(
        devices=devices,
        device_index=as_ints([devices.index(next(iter(each))) for each in device_counts]),
        worker_groups=WorkerGroups.of(groups, devices) if has_mixed else None,
    )


def _by_device(groups: Sequence[CompletionGroup], alive: Sequence[int]) -> dict[str, int]:
    """Live workers by device, in the groups' order."""
    counts: dict[str, int] = {}
    for group, nodes in zip(groups, alive, strict=True):
        if nodes:
            counts[group.device] = counts.get(group.device, 0) + nodes * group.workers_per_node
    return counts


def log_spread_of(answer: Answer, row: int) -> float:
    """Standard deviation of ln(speed), from the interval of a row; 0 = the row has none."""
    interval = answer.interval
    if interval is None:
        return 0.0
    lower, upper = float(interval.lower_steps_per_s[row]), float(interval.upper_steps_per_s[row])
    if not 0.0 < lower < upper:
        return 0.0
    return math.log(upper / lower) / (2.0 * NormalDist().inv_cdf(0.5 + 0.5 * interval.coverage))
