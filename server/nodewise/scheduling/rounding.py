"""Rounds the time shares of a policy to grants of devices, round by round, so that over time jobs receive their shares.

A policy that answers with shares says: job i is due the share X_ij of the time on pool j, with the devices that it
requests. A job runs in one pool at a time, so jobs take turns in rounds (the mechanism of Narayanan et al., OSDI'20,
section 5). Within a pool jobs are sorted by

    priority_ij = X_ij / (seconds received on j since the policy made the shares + half a round),

then by their deficit (the time that earlier shares still owe them), then by X_ij, then by submission and id. A job that
no longer fits is skipped. No device that a job could use stays free: jobs without a share come last, unless the shares
exclude them. A job runs on its requested worker devices, or on the next larger count of its curve. Placement keeps jobs
where they are if possible.

The policy makes new shares when a job has arrived, ended or changed, but not within ``hold_s`` of the last time, and at
once when the cluster, its quotas or the policy change or when no job would run. Then the time that a job was due and
did not receive is added to its deficit. ``Rounds`` is the state between calls.
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

__all__ = ["Offer", "Rounds", "credit_time", "first_round", "make_offer", "make_round", "next_round", "renew_rounds"]

KEY_BYTES: Final = 8
"""Bytes of a job's key: among 4,096 jobs two have the same key with a probability of 10^-12."""
_DIGITS: Final = 9
"""Significant digits of priorities that are compared: solvers do not agree on more."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rounds:
    """The state of rounds between calls. Arrays have the shape (jobs, pools) of the last decision.

    Attributes
    ----------
    policy : str
        Name and version of the policy that made the shares.
    pools : tuple of str
        Names.
    cluster, work : bytes
        Digests of the inputs of the shares: the cluster and its rules; the jobs.
    made_s, decided_s : float
        When the shares were made, and when the last round was decided (seconds since 1970).
    number : int
        Rounds so far.
    jobs : tuple of bytes
        Keys of the jobs.
    running : (jobs,) int
        Pool that each job ran in during the last round; -1 = none.
    shares, received_s, deficit_s : float
        Shares of time due; seconds received since ``made_s``; seconds due before that and not received.
    """

    policy: str
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
    """The devices that jobs request in each pool, and digests of the inputs of shares."""

    requests: Requests
    jobs: tuple[bytes, ...]
    pools: tuple[str, ...]
    cluster: bytes
    work: bytes


@lru_cache(maxsize=65_536)
def job_key(job_id: str) -> bytes:
    """A job's key in ``Rounds``."""
    return blake2b(job_id.encode(), digest_size=KEY_BYTES).digest()


def make_offer(state: ClusterState, curves: Curves) -> Offer:
    """The devices that every job would get in every pool, and digests of the inputs of shares."""
    requests = curves.at_requests(state)
    keys = tuple(job_key(job.job_id) for job in state.jobs)
    pools = tuple(pool.name for pool in state.pools)
    sizes = [pool.total_devices for pool in state.pools]
    rules = (pools, sizes, sorted(state.quotas.items()), sorted(state.parameters.items()))
    claims = repr([(job.weight, job.queue) for job in state.jobs])
    work = _digest(b"".join(keys), claims.encode(), requests.devices.tobytes(), requests.samples_per_s.tobytes())
    return Offer(requests=requests, jobs=keys, pools=pools, cluster=_digest(repr(rules).encode()), work=work)


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _carries(rounds: Rounds, offer: Offer, state: ClusterState, policy: str) -> bool:
    """Whether the remembered rounds are of the same policy and pools, and not of the future."""
    return (rounds.policy, rounds.pools) == (policy, offer.pools) and rounds.decided_s <= state.now_s


def next_round(
    rounds: Rounds, offer: Offer, state: ClusterState, policy: str
) -> tuple[tuple[Grant, ...], Rounds] | None:
    """The next round of the remembered shares; None where they are no longer valid: then the policy makes new ones."""
    if not _carries(rounds, offer, state, policy) or rounds.cluster != offer.cluster:
        return None
    if rounds.work != offer.work and state.now_s - rounds.made_s >= rounds.hold_s:
        return None
    grants, after = make_round(credit_time(rounds, offer, state), offer, state)
    return (grants, after) if any(grant.devices for grant in grants) else None


def first_round(
    shares: Shares, rounds: Rounds | None, state: ClusterState, curves: Curves, policy: str
) -> tuple[tuple[Grant, ...], Rounds]:
    """The first round of new shares; deficits of remembered rounds of the same policy are carried over."""
    offer = make_offer(state, curves)
    before = None
    if rounds is not None and _carries(rounds, offer, state, policy):
        before = credit_time(rounds, offer, state)
    return make_round(renew_rounds(shares, before, offer, state, policy), offer, state)


def credit_time(rounds: Rounds, offer: Offer, state: ClusterState) -> Rounds:
    """The rounds for the present jobs and time: running jobs are credited the time since the last round."""
    places = {key: index for index, key in enumerate(rounds.jobs)}
    before = np.array([places.get(key, -1) for key in offer.jobs], dtype=np.int64)
    is_known = before >= 0

    def align(values: Floats) -> Floats:
        result = np.zeros(offer.requests.devices.shape)
        result[is_known] = values[before[is_known]]
        return result

    received_s, running = align(rounds.received_s), np.full(len(offer.jobs), -1)
    running[is_known] = rounds.running[before[is_known]]
    elapsed_s = state.now_s - rounds.decided_s
    for index, job in enumerate(state.jobs):
        if job.current is not None:
            whole = running[index] == job.current.pool
            received_s[index, job.current.pool] += elapsed_s if whole else min(elapsed_s, job.current.age_s)
    return replace(
        rounds,
        jobs=offer.jobs,
        running=running,
        shares=align(rounds.shares),
        received_s=received_s,
        deficit_s=align(rounds.deficit_s),
    )


def renew_rounds(shares: Shares, rounds: Rounds | None, offer: Offer, state: ClusterState, policy: str) -> Rounds:
    """Rounds for new shares, with the deficits of ``rounds``, which is of ``credit_time``."""
    deficit = np.zeros(offer.requests.devices.shape)
    number = 0
    if rounds is not None:
        deficit = rounds.deficit_s + rounds.shares * (state.now_s - rounds.made_s) - rounds.received_s
        number = rounds.number
    return Rounds(
        policy=policy,
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


def make_round(
    rounds: Rounds, offer: Offer, state: ClusterState, pool_order: Sequence[int] | None = None
) -> tuple[tuple[Grant, ...], Rounds]:
    """One round: grants for the jobs of the state, and the rounds after it.

    Parameters
    ----------
    rounds : Rounds
        Of exactly these jobs: from ``credit_time`` or ``renew_rounds``.
    pool_order : sequence of int
        The order in which pools are filled; by default that of the state, or a random one where the shares state a
        ``shuffle_seed``.
    """
    order = _pool_order(rounds, len(state.pools)) if pool_order is None else pool_order
    quotas = dict(state.quotas)
    grants = [Grant(0)] * len(state.jobs)
    running = np.full(len(state.jobs), -1)
    priorities = np.where(offer.requests.devices > 0, rounds.shares / (rounds.received_s + rounds.round_s / 2), 0.0)
    priorities, deficits = _comparable(priorities), _comparable(rounds.deficit_s)
    submit_time_s = np.array([job.submit_time_s for job in state.jobs])
    names = np.argsort(np.argsort([job.job_id for job in state.jobs], kind="stable"))
    for pool in order:
        free = state.pools[pool].total_devices
        needs = offer.requests.devices[:, pool]
        wanting = (needs > 0) & (running < 0)
        if not rounds.leftovers:
            wanting &= rounds.shares[:, pool] > 0
        rows = np.flatnonzero(wanting)
        keys = (names, submit_time_s, -rounds.shares[:, pool], -deficits[:, pool], -priorities[:, pool])
        for job in rows[np.lexsort(tuple(key[rows] for key in keys))].tolist():
            if free < 1:
                break
            need, queue = int(needs[job]), state.jobs[job].queue
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
    """Values rounded to a fixed number of binary digits, so that differences in a solver's last digits do not count."""
    mantissa, exponent = np.frexp(values)
    scale = 2.0 ** int(_DIGITS / np.log10(2))
    return np.ldexp(np.round(mantissa * scale) / scale, exponent)


def _why(rounds: Rounds, job: int, pool: int) -> str:
    share = rounds.shares[job, pool]
    if share <= 0:
        return "gets devices that jobs with a share of this pool's time leave free"
    received_s = rounds.received_s[job, pool]
    return f"is due {share:.3g} of this pool's time and has received {received_s:.4g} s since the shares were made"
