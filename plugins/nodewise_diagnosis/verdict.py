"""What bounds a job, in one word and in one paragraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Bottleneck, Floats, RankShares
from nodewise_diagnosis.candidates import AVOIDABLE
from nodewise_diagnosis.likeness import Likeness
from nodewise_diagnosis.roles import Role, Roles
from nodewise_diagnosis.stopwatch import NS, Edit, Stopwatch
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


def gains(watch: Stopwatch, roles: Roles, likeness: Likeness, base_ns: float) -> Gains:
    """Replay the steps without each of the things that may bound them."""
    graph = watch.graph
    duration = graph.duration_ns.astype(np.float64)

    def without(role: Role) -> float:
        edited = np.where(roles.role == role, 0.0, duration)
        return _gain(watch, edited, base_ns)

    # Only ranks that are slower than the others in sum: two ranks would otherwise change places.
    own = roles.role != Role.COMMUNICATION
    alike = duration.copy()
    for rank in graph.ranks:
        of_rank = np.flatnonzero(own & (graph.rank == rank))
        if likeness.beyond_ranks_ns[of_rank].sum() > 0:
            alike[of_rank] -= likeness.beyond_ranks_ns[of_rank]
    shift = None
    if len(graph.ranks) > 1 and watch.steps[0] == 0:
        begins = graph.steps.begin_ns[0]
        shift = np.rint(np.median(begins) - begins).astype(np.int64)
    skew = 0.0
    if len(graph.ranks) > 1:
        edit = Edit(duration_ns=np.maximum(np.rint(alike), 0).astype(np.int64), begin_shift_ns=shift)
        skew = (base_ns - watch.step_ns(edit)) * NS
    host = without(Role.HOST) if roles.device else 0.0
    return Gains(
        step=base_ns * NS,
        skew=skew,
        loading=without(Role.LOADING),
        network=without(Role.COMMUNICATION),
        host=host,
        device=without(Role.COMPUTE),
    )


def _gain(watch: Stopwatch, edited: Floats, base_ns: float) -> float:
    return (base_ns - watch.step_ns(Edit(duration_ns=np.rint(edited).astype(np.int64)))) * NS


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
    gained = {
        "skew": f"were the ranks alike, a step of {step} would be {found.skew * 1e3:.2f} ms shorter",
        "loading": f"without waiting for batches a step of {step} would be {found.loading * 1e3:.2f} ms shorter",
        "network": f"with transfers that take no time a step of {step} would be {found.network * 1e3:.2f} ms shorter",
        "host": f"without the host's work between launches a step of {step} would be {found.host * 1e3:.2f} ms shorter",
        "device": f"without computing a step of {step} would be {found.device * 1e3:.2f} ms shorter, more than without "
        "anything else",
    }[bound]
    words = {
        "skew": "skew between the ranks' hosts, not by the network"
        if found.host > found.network
        else "skew of the ranks",
        "loading": "the loading of batches",
        "network": "the network",
        "host": "the host",
        "device": "computation",
    }[bound]
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
