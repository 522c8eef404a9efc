"""What bounds a job, in one word and in one paragraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Bottleneck, Floats, Ints, RankShares
from nodewise_diagnosis.candidates import AVOIDABLE
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.stopwatch import NS, Edit, whole_ns
from nodewise_diagnosis.stragglers import LateRank

__all__ = ["Gains", "bound_by", "gains", "verdict"]

_LOADING_IN_SKEW: Final = 0.8
"""Where most of what ranks wait for each other is loading, the job is bound by loading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """How much shorter the replayed step is, seconds, without each in turn.

    ``skew`` is replayed with all ranks alike in their own work and in their begin.
    """

    step: float
    skew: float
    loading: float
    network: float
    host: float
    device: float


def gains(case: Case) -> Gains:
    """Replay the steps without each of the things that may bound them."""
    graph, role, beyond_ns = case.graph, case.roles.role, case.likeness.beyond_ranks_ns
    duration = graph.duration_ns.astype(np.float64)

    def gained(edited: Floats, begin_shift_ns: Ints | None = None) -> float:
        edit = Edit(duration_ns=whole_ns(edited), begin_shift_ns=begin_shift_ns)
        return (case.base_ns - case.watch.step_ns(edit)) * NS

    def without(one: Role) -> float:
        return gained(np.where(role == one, 0.0, duration))

    # Only ranks that are slower than the others in sum: two ranks would otherwise change places.
    alike = duration.copy()
    for rank in graph.ranks:
        of_rank = np.flatnonzero((role != Role.COMMUNICATION) & (graph.rank == rank))
        if beyond_ns[of_rank].sum() > 0:
            alike[of_rank] -= beyond_ns[of_rank]
    shift = None
    if case.watch.steps[0] == 0:
        begins = graph.steps.begin_ns[0]
        shift = np.rint(np.median(begins) - begins).astype(np.int64)
    return Gains(
        step=case.base_ns * NS,
        skew=gained(alike, shift) if len(graph.ranks) > 1 else 0.0,
        loading=without(Role.LOADING),
        network=without(Role.COMMUNICATION),
        host=without(Role.HOST) if case.roles.device else 0.0,
        device=without(Role.COMPUTE),
    )


def bound_by(found: Gains, noise_s: float) -> str:
    """What the job is bound by: ``host``, ``device``, ``network``, ``skew`` or ``loading``."""
    least = max(AVOIDABLE * found.step, noise_s)
    if found.loading >= least and found.loading >= _LOADING_IN_SKEW * found.skew:
        return "loading"
    if found.skew >= least:
        return "skew"
    rest = {"device": found.device, "host": found.host, "network": found.network}
    return max(rest, key=lambda name: rest[name])


def verdict(
    bound: str,
    found: Gains,
    shares: Sequence[RankShares],
    late: Sequence[LateRank],
    bottlenecks: Sequence[Bottleneck],
    noise_s: float,
    transfer_s: float,
    exchanges: int,
) -> str:
    """The job in a few sentences, each with its numbers."""
    step = f"{found.step * 1e3:.2f} ms"
    waiting = float(np.mean([one.waiting_s for one in shares])) if shares else 0.0
    words, changed, gain = {
        "skew": (
            "skew between the ranks' hosts, not by the network" if found.host > found.network else "skew of the ranks",
            "were the ranks alike,",
            found.skew,
        ),
        "loading": ("the loading of batches", "without waiting for batches", found.loading),
        "network": ("the network", "with transfers that take no time", found.network),
        "host": ("the host", "without the host's work between launches", found.host),
        "device": ("computation", "without computing", found.device),
    }[bound]
    gained = f"{changed} a step of {step} would be {gain * 1e3:.2f} ms shorter"
    gained += ", more than without anything else" if bound == "device" else ""
    sentences = [f"Bound by {words}: {gained}."]
    if exchanges:
        sentences.append(
            f"The {exchanges} exchanges of a step transfer for {transfer_s * 1e3:.3f} ms; a rank waits "
            f"{waiting * 1e3:.3f} ms in them for others."
        )
    told = [one for one in late if one.imposed_wait_s > noise_s]
    if told and bound in {"skew", "loading"}:
        parts = [
            f"rank {one.rank} at {one.times} ({one.imposed_wait_s * 1e3:.3f} ms of waiting in sum"
            + (f"; {one.cause})" if one.cause else ")")
            for one in told[:4]
        ]
        sentences.append("Last to arrive: " + ", ".join(parts) + ".")
    faults = [one for one in bottlenecks if one.matters]
    if faults:
        first = faults[0]
        sentences.append(
            f"First to look at: {first.what} ({first.gain_if_removed_s * 1e3:.2f} ms of the step; "
            f"{first.why.split(';')[0]})."
        )
    else:
        sentences.append(
            f"Nothing that was tried gains more than the {noise_s * 1e3:.2f} ms by which steps differ anyway."
        )
    return " ".join(sentences)
