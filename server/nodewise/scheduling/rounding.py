"""Shares of time, rounded to devices that jobs get now: round after round, so that the shares come true over time.

A policy that answers with shares says: job i is due the share X_ij of time on pool j with the devices it requested. A
job runs in one pool at a time, so rounds take turns (the mechanism of Narayanan et al., OSDI'20, section 5). Within a
pool jobs are served by

    priority_ij = X_ij / (seconds received on j since the shares were made + half a round),

then by what they are behind from earlier shares (their deficit), then by X_ij, then by submission and id. A job that no
longer fits is skipped, and nothing stays free that a job could use: jobs without a share are served last, unless the
shares say that they get nothing. A job runs on its requested worker devices, or on the next larger count of its curve.
Placement keeps jobs where they are if it can.

Shares hold for a while: they are made anew when a job has come, gone or changed, but not within ``hold_s`` of the last
time, and at once when the cluster, its quotas or the policy change or when nobody would run. When they are made anew,
what a job was due and did not receive is added to its deficit. All that this needs to remember is in ``Rounds``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_floats
from nodewise.domain.schedule import ClusterState, Curves, Grant, Requests, Shares

__all__ = ["Offer", "Rounds", "credit_time", "first_round", "held_round", "make_offer", "renew_rounds", "rounded_round"]

KEY_BYTES: Final = 8
"""Of a job's name: among 4,096 jobs two share a key once in 10^12."""
_DIGITS: Final = 9
"""Significant digits that tell priorities apart: solvers do not agree on more."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rounds:
    """What rounds remember. Arrays are of shape (jobs, pools) as of the last decision.

    Attributes
    ----------
    asked : str
        Name and version of the policy that made the shares.
    pools : tuple of str
        Names.
    cluster, work : bytes
        Digests of what the shares depend on: the cluster and its rules; the jobs.
    made_s, decided_s : float
        When the shares were made, and when the last round was decided (seconds since 1970).
    number : int
        Rounds so far.
    jobs : tuple of bytes
        Keys of the jobs.
    running : (jobs,) int
        Pool that each job was given in the last round; -1 = none.
    shares, received_s, deficit_s : float
        What is due, and received since ``made_s``; what was due before that and not received.
    """

    asked: str
    pools: tuple[str, ...]
    cluster: bytes
    work: bytes
    made_s: float
    decided_s: float
    round_s: float
    hold_s: float
    shuffle_seed: int | None
    leftovers: bool
    number: int
    jobs: tuple[bytes, ...]
    running: Ints
    shares: Floats
    received_s: Floats
    deficit_s: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Offer:
    """Where jobs run at their request, and digests of what shares depend on."""

    requests: Requests
    jobs: tuple[bytes, ...]
    pools: tuple[str, ...]
    cluster: bytes
    work: bytes


@lru_cache(maxsize=65_536)
def job_key(job_id: str) -> bytes:
    """A job's name in the memory of rounds."""
    return blake2b(job_id.encode(), digest_size=KEY_BYTES).digest()


def make_offer(state: ClusterState, curves: Curves) -> Offer:
    """What every job would get in every pool, and what shares depend on."""
    requests = curves.at_requests(state)
    keys = tuple(job_key(job.job_id) for job in state.jobs)
    pools = tuple(pool.name for pool in state.pools)
    sizes = [pool.total_devices for pool in state.pools]
    rules = (pools, sizes, sorted(state.quotas.items()), sorted(state.parameters.items()))
    claims = repr([(job.weight, job.queue) for job in state.jobs])
    work = _digest(b"".join(keys), claims.encode(), requests.devices.tobytes(), requests.samples_per_s.tobytes())
    return Offer(requests=requests, jobs=keys, pools=pools, cluster=_digest(repr(rules).encode()), work=work)


def _digest(*parts: bytes) -> bytes:
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.digest()


def _carries(rounds: Rounds, offer: Offer, state: ClusterState, asked: str) -> bool:
    """Whether what is remembered is of the same policy and pools, and of the past."""
    return (rounds.asked, rounds.pools) == (asked, offer.pools) and rounds.decided_s <= state.now_s


def held_round(
    rounds: Rounds, offer: Offer, state: ClusterState, asked: str
) -> tuple[tuple[Grant, ...], Rounds] | None:
    """The next round of the shares that are remembered; None where they hold no longer: then the policy is asked."""
    if not _carries(rounds, offer, state, asked) or rounds.cluster != offer.cluster:
        return None
    if rounds.work != offer.work and state.now_s - rounds.made_s >= rounds.hold_s:
        return None
    grants, after = rounded_round(credit_time(rounds, offer, state), offer, state)
    return (grants, after) if any(grant.devices for grant in grants) else None


def first_round(
    shares: Shares, rounds: Rounds | None, state: ClusterState, curves: Curves, asked: str
) -> tuple[tuple[Grant, ...], Rounds]:
    """The first round of new shares; what is remembered of the same policy passes on what it owes."""
    offer = make_offer(state, curves)
    before = None
    if rounds is not None and _carries(rounds, offer, state, asked):
        before = credit_time(rounds, offer, state)
    return rounded_round(renew_rounds(shares, before, offer, state, asked), offer, state)


def credit_time(rounds: Rounds, offer: Offer, state: ClusterState) -> Rounds:
    """The memory brought to the present jobs and time: what ran since the last round has received it."""
    places = {key: index for index, key in enumerate(rounds.jobs)}
    before = np.array([places.get(key, -1) for key in offer.jobs], dtype=np.int64)
    known = before >= 0

    def align(values: Floats) -> Floats:
        result = np.zeros(offer.requests.devices.shape)
        result[known] = values[before[known]]
        return result

    received, running = align(rounds.received_s), np.full(len(offer.jobs), -1)
    running[known] = rounds.running[before[known]]
    elapsed = state.now_s - rounds.decided_s
    for index, job in enumerate(state.jobs):
        if job.current is not None:
            whole = running[index] == job.current.pool
            received[index, job.current.pool] += elapsed if whole else min(elapsed, job.current.age_s)
    return replace(
        rounds,
        jobs=offer.jobs,
        running=running,
        shares=align(rounds.shares),
        received_s=received,
        deficit_s=align(rounds.deficit_s),
    )


def renew_rounds(shares: Shares, rounds: Rounds | None, offer: Offer, state: ClusterState, asked: str) -> Rounds:
    """Memory for new shares; ``rounds``, accounted, passes on its deficits."""
    deficit = np.zeros(offer.requests.devices.shape)
    number = 0
    if rounds is not None:
        deficit = rounds.deficit_s + rounds.shares * (state.now_s - rounds.made_s) - rounds.received_s
        number = rounds.number
    return Rounds(
        asked=asked,
        pools=offer.pools,
        cluster=offer.cluster,
        work=offer.work,
        made_s=state.now_s,
        decided_s=state.now_s,
        round_s=shares.round_s,
        hold_s=shares.hold_s,
        shuffle_seed=shares.shuffle_seed,
        leftovers=shares.leftovers,
        number=number,
        jobs=offer.jobs,
        running=np.full(len(offer.jobs), -1),
        shares=as_floats(shares.shares),
        received_s=np.zeros(offer.requests.devices.shape),
        deficit_s=deficit,
    )


def rounded_round(
    rounds: Rounds, offer: Offer, state: ClusterState, pool_order: Sequence[int] | None = None
) -> tuple[tuple[Grant, ...], Rounds]:
    """One round: grants for the jobs of the state, and the memory after it.

    Parameters
    ----------
    rounds : Rounds
        Of exactly these jobs: accounted, or renewed.
    pool_order : sequence of int
        In which pools are served; without it that of the state, or drawn where the shares say so.
    """
    order = _pool_order(rounds, len(state.pools)) if pool_order is None else pool_order
    quotas = dict(state.quotas)
    grants = [Grant(0)] * len(state.jobs)
    running = np.full(len(state.jobs), -1)
    priorities = np.where(offer.requests.devices > 0, rounds.shares / (rounds.received_s + rounds.round_s / 2), 0.0)
    priorities, deficits = _comparable(priorities), _comparable(rounds.deficit_s)
    submitted = np.array([job.submit_time_s for job in state.jobs])
    names = np.argsort(np.argsort([job.job_id for job in state.jobs], kind="stable"))
    for pool in order:
        free = state.pools[pool].total_devices
        taken = offer.requests.devices[:, pool]
        wanting = (taken > 0) & (running < 0)
        if not rounds.leftovers:
            wanting &= rounds.shares[:, pool] > 0
        rows = np.flatnonzero(wanting)
        keys = (names, submitted, -rounds.shares[:, pool], -deficits[:, pool], -priorities[:, pool])
        for job in rows[np.lexsort(tuple(key[rows] for key in keys))].tolist():
            if free < 1:
                break
            need, queue = int(taken[job]), state.jobs[job].queue
            if need > free or need > quotas.get(queue, need):
                continue
            free -= need
            if queue in quotas:
                quotas[queue] -= need
            running[job] = pool
            grants[job] = Grant(int(offer.requests.workers[job, pool]), pool, _why(rounds, job, pool))
    return tuple(grants), replace(rounds, decided_s=state.now_s, number=rounds.number + 1, running=running)


def _pool_order(rounds: Rounds, pools: int) -> list[int]:
    order = list(range(pools))
    if rounds.shuffle_seed is not None:
        random.Random(f"{rounds.shuffle_seed}:{rounds.number}").shuffle(order)  # noqa: S311 - fairness, no secret
    return order


def _comparable(values: Floats) -> Floats:
    """Rounded to a fixed number of binary digits, so that what is equal but for the solver's last digits ties."""
    mantissa, exponent = np.frexp(values)
    scale = 2.0 ** int(_DIGITS / np.log10(2))
    return np.ldexp(np.round(mantissa * scale) / scale, exponent)


def _why(rounds: Rounds, job: int, pool: int) -> str:
    share = rounds.shares[job, pool]
    if share <= 0:
        return "devices left over by those with a share of this pool's time"
    return f"due {share:.3g} of the time here, received {rounds.received_s[job, pool]:.4g} s since the shares were made"
