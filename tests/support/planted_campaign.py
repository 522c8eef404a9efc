"""A campaign of planted faults: what a diagnosis names of each, compared with the same job without it.

A bottleneck is a named cause where it matters, and the same job without the fault does not have it, or gains less than
a third of the fault from its removal. The first of these in the list is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from planted_faults import Bed
from recorded_jobs import gloo_job
from recorded_traces import NobodyWaits
from simulated_gpu_jobs import Job, Stall

from nodewise.domain.diagnosis import Bottleneck, Diagnosis, DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise_diagnosis.diagnosing import diagnose_traces

FOUND, WRONG, NOTHING = "found", "wrong", "nothing"
SIZES = (0.03, 0.06, 0.12, 0.25)
"""By how much the step is longer, as a share of it."""

GLOO = (
    "ddp_2_ranks_3_buckets", "ddp_4_ranks_1_bucket", "ddp_4_ranks_3_buckets", "ddp_4_ranks_3_buckets_fast_link",
    "ddp_4_ranks_8_buckets",
)  # fmt: skip

JOBS = {
    "gpu_1_rank": Job(ranks=1),
    "gpu_2_ranks": Job(ranks=2, seed=1),
    "gpu_4_ranks": Job(seed=2),
    "gpu_4_ranks_noisy": Job(seed=3, noise=0.02, exchange_us=8000.0),
    "short_steps": Job(ranks=2, seed=41, kernel_us=250.0, exchange_us=700.0, loading_us=200.0, stacks=True),
    "small_kernels": Job(
        ranks=2, seed=42, kernel_us=60.0, operator_us=120.0, exchange_us=900.0, loading_us=100.0, stacks=True
    ),
    "launches": Job(ranks=1, seed=43, kernel_us=20.0, operator_us=90.0, loading_us=100.0, steps=10),
    "asynchronous": Job(ranks=4, seed=44, kernel_us=900.0, synchronous=False, steps=8, stacks=True),
    "network": Job(ranks=4, seed=45, kernel_us=700.0, exchange_us=15_000.0, noise=0.01, steps=8),
    "no_loader": Job(ranks=3, seed=46, loader=False, loading_us=400.0, operator_us=60.0, stacks=True),
    "loading": Job(ranks=2, seed=47, loading_us=5000.0, kernel_us=1200.0, noise=0.008, steps=12),
    "eight_ranks": Job(ranks=8, seed=48, kernel_us=500.0, exchange_us=2500.0, noise=0.006),
    "long_steps": Job(ranks=2, seed=49, kernel_us=6000.0, exchange_us=20_000.0, noise=0.005, stacks=True),
}

PIECES_US = {
    "short_steps": 60.0, "small_kernels": 200.0, "asynchronous": 350.0, "no_loader": 120.0, "loading": 40.0,
    "long_steps": 250.0,
}  # fmt: skip
"""How long each call of a planted function takes in jobs where it is called many times; in others it is called once."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A planted fault: traces without it and with it, and what names it."""

    kind: str
    job: str
    size: float
    healthy: Callable[[], Sequence[Trace]]
    planted: Callable[[], Sequence[Trace]]
    names: Callable[[Bottleneck, Diagnosis], bool]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a fault."""

    fault: Fault
    result: str
    moved: float
    noise: float
    told: str

    @property
    def counts(self) -> bool:
        """Whether the fault moved the step by 3 % and three times what steps differ by."""
        return self.fault.kind in {"nothing", "full queue"} or self.moved >= max(0.029, 3 * self.noise)


def judged(fault: Fault) -> Outcome:
    """Diagnose a job without and with a fault."""
    before, after = _diagnosed(fault.healthy()), _diagnosed(fault.planted())
    moved = after.step_s - before.step_s
    known = {_key(one): one.gain_if_removed_s for one in before.bottlenecks}
    least = max(moved / 3, 0.01 * before.step_s)
    named = [
        one for one in after.bottlenecks if one.matters and one.gain_if_removed_s - known.get(_key(one), 0.0) >= least
    ]
    if fault.kind == "nothing":
        result = FOUND if "nothing stands out" in after.verdict.lower() else WRONG
    elif fault.kind == "full queue":
        result = FOUND if after.bound_by == before.bound_by and not named else WRONG
    else:
        result = NOTHING if not named else FOUND if fault.names(named[0], after) else WRONG
    told = "; ".join(f"{one.kind} {one.rank} {one.what} {one.gain_if_removed_s * 1e3:.2f}" for one in named[:3])
    return Outcome(
        fault=fault,
        result=result,
        moved=moved / before.step_s,
        noise=before.persistence_s / before.step_s,
        told=told or after.verdict,
    )


def _key(one: Bottleneck) -> tuple[str, str, int]:
    return one.kind, one.what, one.rank


def _diagnosed(traces: Sequence[Trace]) -> Diagnosis:
    return diagnose_traces(traces, Profile(), DiagnosisQuestion(strategies=0, bottlenecks=200), NobodyWaits())


def faults() -> Iterator[Fault]:
    """Every fault of the campaign, always in the same order."""
    for name, job in JOBS.items():
        yield from _of_gpu(name, job)
    for name in GLOO:
        yield from _of_gloo(name)


def _of_gpu(name: str, job: Job) -> Iterator[Fault]:
    last, piece = job.ranks - 1, PIECES_US.get(name, 0.0)
    function = Stall(name="", cat="python_function", layer=1, time_us=0, piece_us=piece)
    copy = "cudaMemcpyAsync" if job.stacks else "cudaMemcpy"
    stalls = {
        "blocking copy": Stall(name=copy, cat="cuda_runtime", layer=0, time_us=0, copies=True),
        "preprocessing": replace(function, name="transforms.py(88): preprocess", layer=-1),
        "garbage collection": replace(function, name="<built-in function collect>"),
        "loader": Stall(name="", cat="loader", layer=-1, time_us=0),
        "loader of a rank": Stall(name="", cat="loader", layer=-1, time_us=0, ranks=(last,)),
        "start-up": Stall(name="cuModuleLoadData", cat="cuda_runtime", layer=0, time_us=0, steps=(2,), ranks=(last,)),
        "jitter": Stall(name="", cat="", layer=0, time_us=0, steps=(1, 4), ranks=(last,)),
    }
    for kind, stall in stalls.items():
        if kind == "loader of a rank" and job.ranks == 1:
            continue
        for size in SIZES:
            yield _fault(kind, name, job, size, lambda time, stall=stall: (replace(stall, time_us=time),))
    for size in SIZES if job.ranks > 1 else ():
        # The last rank's kernels; those of another rank in every step; the last bucket's exchange.
        slow = {(last, -1): 1 + size}
        yield _planted("slow rank", name, job, size, replace(job, compute_scale=slow))
        turns = {(step % job.ranks, step): 1 + size for step in range(job.steps)}
        yield _planted("imbalance", name, job, size, replace(job, compute_scale=turns))
        longer = 1 + size * job.step_us() / job.exchange_us
        yield _planted("slow link", name, job, size, replace(job, exchange_scale={2: longer}))
    for seed in range(10, 15):
        yield _planted("nothing", name, job, 0.0, replace(job, seed=seed))
    for seed in range(20, 22) if job.kernel_us > job.operator_us else ():
        full = replace(job, seed=seed, synchronous=False, steps=50)
        yield _planted("full queue", name, full, 0.0, replace(full, queue=512))


def _fault(kind: str, name: str, job: Job, size: float, stalls: Callable[[float], tuple[Stall, ...]]) -> Fault:
    def planted() -> Sequence[Trace]:
        # What the device still has queued hides a part of a stall.
        wanted = size * job.step_us()
        time = wanted
        for _ in range(4):
            time += wanted - (replace(job, stalls=stalls(time)).step_us() - job.step_us())
        return replace(job, stalls=stalls(time)).recorded()

    return _made(kind, name, job, size, planted)


def _planted(kind: str, name: str, job: Job, size: float, changed: Job) -> Fault:
    return _made(kind, name, job, size, changed.recorded)


def _made(kind: str, name: str, job: Job, size: float, planted: Callable[[], Sequence[Trace]]) -> Fault:
    last = job.ranks - 1
    # Where nothing marks the loading of batches, what nobody recorded before the first operator is taken for it.
    jitter = {"outlier", "rank", "host"} if job.loader else {"outlier", "loader"}

    def names(one: Bottleneck, found: Diagnosis) -> bool:
        return {
            "blocking copy": "memcpy" in one.what.lower(),
            "preprocessing": "preprocess" in one.what,
            "garbage collection": "collect" in one.what,
            "loader": (one.kind == "loader" and one.rank == -1) or job.ranks == 1,
            "loader of a rank": one.kind == "loader" and one.rank == last,
            "start-up": "cuModuleLoadData" in one.what,
            "jitter": one.kind in jitter and one.rank in {last, -1},
            "slow rank": one.kind == "rank" and one.rank == last,
            "imbalance": one.kind == "imbalance",
            "slow link": one.kind == "collective",
        }[kind]

    return Fault(kind=kind, job=name, size=size, healthy=lambda: _recorded(name, job), planted=planted, names=names)


_RECORDED: dict[tuple[str, int, bool], Sequence[Trace]] = {}


def _recorded(name: str, job: Job) -> Sequence[Trace]:
    key = name, job.seed, job.synchronous
    if key not in _RECORDED:
        _RECORDED[key] = job.recorded()
    return _RECORDED[key]


@cache
def _bed(name: str) -> Bed:
    return Bed(gloo_job(name))


def _of_gloo(name: str) -> Iterator[Fault]:
    bed = _bed(name)
    step = bed.watch.step_ns()
    last = bed.graph.ranks[-1]

    def grown(change: Callable[[float], np.ndarray], size: float) -> Callable[[], Sequence[Trace]]:
        """The change of such a size that the step is longer by that share of it."""

        def planted() -> Sequence[Trace]:
            low, high = 0.0, 1.0
            while bed.moved_ns(change(high)) < size * step and high < 1e3:
                high *= 2
            for _ in range(10):
                middle = (low + high) / 2
                low, high = (low, middle) if bed.moved_ns(change(middle)) >= size * step else (middle, high)
            return bed.planted(change(high))

        return planted

    def late(size: float) -> np.ndarray:
        return bed.late_loader(last, int(size * step))

    def all_late(size: float) -> np.ndarray:
        recorded = bed.graph.duration_ns
        return recorded + sum(bed.late_loader(rank, int(size * step)) - recorded for rank in bed.graph.ranks)

    def once(size: float) -> np.ndarray:
        of_step = bed.graph.step == int(bed.watch.steps[1])
        return np.where(of_step, bed.late_loader(last, int(size * step)), bed.graph.duration_ns)

    changes: dict[str, tuple[Callable[[float], np.ndarray], Callable[[Bottleneck, Diagnosis], bool]]] = {
        "slow rank": (
            lambda size: bed.slow_rank(last, 1 + size),
            lambda one, _: one.kind == "rank" and one.rank == last,
        ),
        "slow link": (lambda size: bed.slow_exchange(0, 1 + size), lambda one, _: one.kind == "collective"),
        "loader of a rank": (late, lambda one, _: one.kind == "loader" and one.rank == last),
        "loader": (all_late, lambda one, _: one.kind == "loader" and one.rank == -1),
        "jitter": (once, lambda one, _: one.kind in {"loader", "outlier"} and one.rank == last),
    }
    for kind, (change, names) in changes.items():
        for size in SIZES:
            yield Fault(
                kind=kind, job=name, size=size, healthy=lambda: bed.traces, planted=grown(change, size), names=names
            )
    for seed in range(3):
        noise = np.exp(np.random.default_rng(seed).normal(0.0, 0.005, len(bed.graph)))
        yield Fault(
            kind="nothing",
            job=name,
            size=0.0,
            healthy=lambda: bed.traces,
            planted=lambda noise=noise: bed.planted(np.rint(bed.graph.duration_ns * noise).astype(np.int64)),
            names=lambda *_: True,
        )
