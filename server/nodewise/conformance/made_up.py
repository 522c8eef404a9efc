"""Synthetic evidence: jobs whose step times follow laws, a cluster, a recording of two ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nodewise.conformance.evidence import Cluster, Evidence, Job, Recording
from nodewise.domain.columns import Ints, as_floats, as_ints, constant_floats, constant_ints, freeze
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.planning import PlanConstraints, PlanPool
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.schedule import ClusterState, CurrentAllocation, Curves, JobState, NodePool
from nodewise.domain.shared_pairs import SharedPairs
from nodewise.domain.sharing import PairRun, SharingMode, SharingQuestion, SoloJob
from nodewise.domain.trace import (
    CollectiveKind,
    Collectives,
    EventKind,
    Lane,
    ProcessGroup,
    Trace,
    TraceReport,
    TraceSteps,
)
from nodewise.domain.workload import Layer, Network, Transformer, Workload

__all__ = ["made_up", "recorded_ranks"]

DEVICE: Final = "V100"
LINK_BYTES_PER_S: Final = 1.25e9


def made_up() -> Evidence:
    """All synthetic evidence."""
    recording = recorded_ranks()
    return Evidence(
        jobs=(
            _job_with_timings(),
            _job_with_all_reduce(),
            _transformer(),
            _job_with_layers(),
            _job_with_facts(),
            _job_with_traces(recording),
        ),
        clusters=(_busy_cluster(), _empty_cluster(), _shared_cluster()),
        recordings=(Recording(name="two ranks", traces=recording),),
        sharings=_sharings(),
    )


def _job_with_timings() -> Job:
    """Parameter servers: phases of one worker, and throughputs that a server of 40 steps/s bounds."""
    workers = [1, 2, 4, 8]
    ran = _rows(workers, workers, SyncMode.ASYNC, parameter_servers=1, batch=32)
    once = _rows([1], [1], SyncMode.ASYNC, parameter_servers=1, batch=32)
    timings = PhaseTimings(
        configurations=once,
        download_s=as_floats([0.01]),
        compute_s=as_floats([0.08]),
        upload_s=as_floats([0.01]),
        update_s=as_floats([0.005]),
        compute_variation=as_floats([0.1]),
        transfer_variation=constant_floats(1, -1.0),
        hidden_s=constant_floats(1, 0.0),
        steps=constant_ints(1, 100),
    )
    hybrid = _rows([4, 8], [4, 8], SyncMode.HYBRID, parameter_servers=1, batch=32)
    rows = Configurations.concatenated(
        [
            _rows([1, 2, 3, 6, 16], [1, 2, 3, 6, 16], SyncMode.ASYNC, parameter_servers=1, batch=32),
            _rows([2, 4, 8], [2, 4, 8], SyncMode.SYNC, parameter_servers=1, batch=32),
            hybrid.replaced(hybrid_sync_fraction=as_floats([0.5, 0.5]), hybrid_switch_s=as_floats([1.0, 1.0])),
        ]
    )
    rates = as_floats([min(count / 0.105, 40.0) for count in workers])
    profile = Profile(
        workload=Workload(parameter_bytes=100_000_000, tensors=60),
        network=Network(link_bytes_per_s=LINK_BYTES_PER_S),
        phase_timings=timings,
        observations=Observations.of(ran, rates),
    )
    return Job(name="parameter servers", profile=profile, configurations=rows)


def _job_with_all_reduce() -> Job:
    """All-reduce at several scales and batches: compute, and an exchange that grows across nodes."""
    scales = [(1, 1, 16), (1, 1, 32), (1, 4, 32), (2, 8, 32), (4, 16, 32), (4, 16, 64)]
    nodes, workers, batches = map(as_ints, zip(*scales, strict=True))
    ran = _rows(nodes, workers, SyncMode.ALLREDUCE, parameter_servers=0, batch=1).replaced(batch_per_worker=batches)
    step_s = 0.02 + 0.004 * batches + 0.03 * (workers > 1) + 0.05 * (1.0 - 1.0 / nodes)
    rows = _rows([1, 1, 2, 3, 4, 8], [1, 4, 8, 12, 16, 32], SyncMode.ALLREDUCE, parameter_servers=0, batch=32)
    profile = Profile(
        workload=Workload(parameter_bytes=100_000_000, tensors=60),
        network=Network(link_bytes_per_s=LINK_BYTES_PER_S),
        observations=Observations.of(ran, as_floats(1.0 / step_s)),
    )
    return Job(name="all-reduce", profile=profile, configurations=rows)


def _transformer() -> Job:
    """A partitioned transformer with known dimensions, and no runs."""
    dimensions = Transformer(
        layers=8, hidden_size=1024, attention_heads=16, sequence_length=512, vocabulary_size=51_200, experts=0
    )
    degrees = [(1, 1, 8), (2, 1, 4), (2, 2, 2), (4, 2, 1), (1, 4, 2)]
    tensor, pipeline, data = map(as_ints, zip(*degrees, strict=True))
    rows = _rows([1] * 5, [8] * 5, SyncMode.ALLREDUCE, parameter_servers=0, batch=2, device="A100-80GB").replaced(
        tensor_parallel=tensor, pipeline_parallel=pipeline, data_parallel=data, accumulation=constant_ints(5, 4)
    )
    constraints = PlanConstraints(
        pools=(PlanPool(device="A100-80GB", nodes=(1, 2), workers_per_node=4),), global_batches=(32,)
    )
    profile = Profile(
        workload=Workload(transformer=dimensions, precision="fp16"),
        network=Network(link_bytes_per_s=10 * LINK_BYTES_PER_S),
    )
    return Job(name="transformer", profile=profile, configurations=rows, constraints=constraints)


def _job_with_layers() -> Job:
    """A convolutional network with known layers, and no runs."""
    layers = tuple(
        Layer(
            name=f"conv{place}" if place < 4 else "dense",
            kind="convolution" if place < 4 else "dense",
            forward_flops_per_sample=2e9 / (place + 1),
            parameter_bytes=4_000_000 * (place + 1),
            activation_bytes_per_sample=1e6 / (place + 1),
            halo_bytes_per_sample=1e4 if place < 4 else None,
        )
        for place in range(5)
    )
    alike = _rows([1, 2, 4], [1, 2, 4], SyncMode.ALLREDUCE, parameter_servers=0, batch=32)
    with_servers = _rows([2, 4, 4], [2, 4, 4], SyncMode.SYNC, parameter_servers=1, batch=32)
    constraints = PlanConstraints(
        pools=(PlanPool(device=DEVICE, nodes=(1, 2, 4), workers_per_node=1, link_bytes_per_s=LINK_BYTES_PER_S),),
        global_batches=(128,),
        parameter_servers=(1, 2),
    )
    profile = Profile(
        workload=Workload(layers=layers, parameter_bytes=60_000_000, precision="fp32"),
        network=Network(link_bytes_per_s=LINK_BYTES_PER_S, per_message_s=1e-4),
    )
    rows = Configurations.concatenated([alike, with_servers.replaced(tensor_parallel=as_ints([1, 1, 2]))])
    return Job(name="layers", profile=profile, configurations=rows, constraints=constraints)


def _job_with_facts() -> Job:
    """A model with counted facts, and no runs."""
    rows = _rows([1, 1, 2], [1, 1, 2], SyncMode.ALLREDUCE, parameter_servers=0, batch=128, device="P100")
    facts = Workload(
        family="ResNet",
        flops_per_sample=1.66e9,
        parameter_bytes=7_430_000,
        tensors=95,
        activation_bytes_per_sample=4e6,
    )
    return Job(name="facts", profile=Profile(workload=facts), configurations=rows)


def _job_with_traces(traces: tuple[Trace, ...]) -> Job:
    """A job with traces of two ranks and three steps."""
    references = tuple(
        TraceReference(content_sha256=f"{trace.rank:064x}", format="auto", rank=trace.rank, world_size=2, size_bytes=1)
        for trace in traces
    )
    rows = _rows([1, 2, 4], [1, 2, 4], SyncMode.ALLREDUCE, parameter_servers=0, batch=0, device="")
    profile = Profile(network=Network(link_bytes_per_s=LINK_BYTES_PER_S), traces=references)
    return Job(name="recorded", profile=profile, configurations=rows, traces=traces)


def _rows(
    nodes: Sequence[int] | Ints, workers: Sequence[int] | Ints, mode: SyncMode, *, batch: int, **facts: Any
) -> Configurations:
    columns = {"device": DEVICE, "batch_per_worker": batch, **facts}
    return Configurations.of(len(workers), nodes=nodes, workers=workers, sync_mode=mode, **columns)


# --- clusters


def _busy_cluster() -> Cluster:
    """Two pools, a job that runs, one that waits, one with a deadline and one without any prediction."""
    pools = (
        NodePool(name="new", device="A100", available_devices=as_ints([4, 4])),
        NodePool(name="old", device=DEVICE, available_devices=as_ints([4])),
    )
    current = CurrentAllocation(pool=0, placement=((0, 2),), age_s=600.0)
    jobs = (
        _wanting("running", 4e5, 0.0, current=current, attained_service_device_s=1200.0, restart_cost_s=30.0),
        _wanting("waiting", 9e5, 10.0, weight=2.0, requested_devices=2),
        _wanting("due", 2e5, 20.0, deadline_s=90_000.0, queue="q"),
        _wanting("unknown", 1e5, 30.0),
    )
    tables: list[dict[int, tuple[float, ...]]] = [
        {0: (100.0, 190.0, 270.0, 340.0), 1: (50.0, 95.0)},
        {0: (80.0, 120.0, 150.0, 170.0), 1: (60.0, 100.0)},
        {0: (200.0, 390.0), 1: (90.0, 170.0, 240.0)},
        {},
    ]
    state = ClusterState(now_s=3600.0, pools=pools, jobs=jobs, quotas={"q": 4})
    return Cluster(name="four jobs", state=state, curves=_curves(tables))


def _empty_cluster() -> Cluster:
    state = ClusterState(now_s=0.0, pools=(NodePool(name="p", device=DEVICE, available_devices=as_ints([8])),), jobs=())
    return Cluster(name="no job", state=state, curves=_curves([]))


def _shared_cluster() -> Cluster:
    """Two devices, two jobs that share one of them, one that is alone and one that waits."""
    beside = {name: CurrentAllocation(pool=0, placement=((0, 1),), age_s=60.0, shares_with=name) for name in "ab"}
    alone = CurrentAllocation(pool=0, placement=((1, 1),), age_s=30.0)
    jobs = (
        _wanting("a", 4e5, 0.0, current=beside["b"]),
        _wanting("b", 4e5, 10.0, current=beside["a"], restart_cost_s=30.0),
        _wanting("c", 4e5, 20.0, current=alone),
        _wanting("d", 4e5, 30.0),
    )
    shares = freeze(np.array([[0.0, 0.7, 0.9, 0.0], [0.6, 0.0, 0.6, 0.8], [0.4, 0.6, 0.0, 0.7], [0.0, 0.5, 0.9, 0.0]]))
    state = ClusterState(
        now_s=600.0,
        pools=(NodePool(name="p", device=DEVICE, available_devices=as_ints([1, 1])),),
        jobs=jobs,
        sharing=SharedPairs(kinds=as_ints(range(4)), shares=(shares,)),
    )
    return Cluster(name="shared devices", state=state, curves=_curves([{0: (100.0, 180.0)}] * 4))


def _wanting(job_id: str, samples: float, submitted_s: float, **more: object) -> JobState:
    return JobState(
        job_id=job_id,
        remaining_samples=samples,
        submit_time_s=submitted_s,
        allowed_devices=tuple(range(1, 9)),
        allowed_pools=(0, 1),
        **more,  # type: ignore[arg-type]  # fields of a job by name
    )


def _curves(tables: list[dict[int, tuple[float, ...]]]) -> Curves:
    """Samples per second on 1, 2, ... devices of each pool, job by job."""
    rows = [
        (pool, count, rate)
        for table in tables
        for pool, rates in table.items()
        for count, rate in enumerate(rates, start=1)
    ]
    pools, devices, rates = zip(*rows, strict=True) if rows else ((), (), ())
    lengths = [sum(map(len, table.values())) for table in tables]
    return Curves(
        offsets=as_ints(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))),
        pool=as_ints(pools),
        devices=as_ints(devices),
        nodes=as_ints([-(-count // 4) for count in devices]),
        samples_per_s=as_floats(rates),
        configurations=Configurations.of(len(rows), workers=as_ints(devices)),
    )


# --- jobs on one device

_SHARING: Final = (
    SoloJob("busy-large", "busy", 0.95, 0.6, 6e9, 0.20),
    SoloJob("busy-small", "busy", 0.80, 0.5, 4e9, 0.08),
    SoloJob("waiting", "waiting", 0.25, 0.1, 2e9, 0.01),
    SoloJob("unknown"),
)


def _sharings() -> tuple[SharingQuestion, ...]:
    """Jobs that share a device: a question in each mode, and one with pairs that ran."""
    large, small, waiting, unknown = _SHARING
    sets = ((large, small), (large, waiting), (small, unknown), (waiting, waiting), (large, small, waiting), (large,))
    runs = (PairRun((large, small), (0.55, 0.47)), PairRun((waiting, large), (0.83, 0.91)))
    rows = [SharingQuestion(device="V100", mode=mode, sets=sets, memory_bytes=16e9) for mode in SharingMode]
    return (*rows, SharingQuestion(device="V100", runs=runs, sets=sets, memory_bytes=16e9))


# --- a recording

STEPS: Final = 4
STEP_NS: Final = 10_000_000
_EVENTS: Final[tuple[tuple[str, int, EventKind, int, int], ...]] = (
    ("aten::linear", 0, EventKind.OPERATOR, 0, 3_000_000),
    ("aten::relu", 0, EventKind.OPERATOR, 3_000_000, 2_000_000),
    ("gloo:all_reduce", 0, EventKind.OPERATOR, 6_000_000, 3_000_000),
)
"""Events of each step of a rank: name, lane, kind, begin and duration (ns)."""


def recorded_ranks(ranks: int = 2) -> tuple[Trace, ...]:
    """Ranks of a job that computes on hosts and exchanges once a step; each is a little later than the one before."""
    return tuple(_rank(rank, ranks) for rank in range(ranks))


def _rank(rank: int, ranks: int) -> Trace:
    names, lanes, kinds, begins, durations = zip(*_EVENTS, strict=True)
    count, late = STEPS * len(names), 100_000 * rank
    step = np.repeat(np.arange(STEPS, dtype=np.int64), len(names))
    begin = step * STEP_NS + np.tile(np.array(begins, dtype=np.int64), STEPS)
    duration = np.tile(np.array(durations, dtype=np.int64), STEPS)
    # A rank that computes longer comes later to the exchange, and leaves it with the others.
    exchange = np.arange(len(names) - 1, count, len(names), dtype=np.int64)
    begin[exchange] += late
    duration[exchange] -= late
    duration[0 :: len(names)] += late // 2
    unknown, rows = constant_ints(count, -1), constant_ints(STEPS, -1)
    return Trace(
        rank=rank,
        world_size=ranks,
        format="made-up",
        names=names,
        name=np.tile(np.arange(len(names), dtype=np.int32), STEPS),
        lanes=(Lane(device=-1, number=1, name="main"),),
        lane=np.tile(np.array(lanes, dtype=np.int32), STEPS),
        kind=np.tile(np.array(kinds, dtype=np.int8), STEPS),
        begin_ns=freeze(begin),
        duration_ns=freeze(duration),
        correlation=unknown,
        sequence=unknown,
        forward_lane=np.full(count, -1, dtype=np.int32),
        bytes=unknown,
        steps=TraceSteps(
            number=np.arange(STEPS, dtype=np.int64),
            begin_ns=np.arange(STEPS, dtype=np.int64) * STEP_NS,
            end_ns=np.arange(1, STEPS + 1, dtype=np.int64) * STEP_NS,
        ),
        collectives=Collectives(
            event=exchange,
            call=rows,
            kind=np.full(STEPS, CollectiveKind.ALL_REDUCE, dtype=np.int8),
            group=np.zeros(STEPS, dtype=np.int64),
            in_bytes=np.full(STEPS, 4_000_000, dtype=np.int64),
            out_bytes=np.full(STEPS, 4_000_000, dtype=np.int64),
            sequence=np.arange(STEPS, dtype=np.int64),
            peer=rows,
            groups=(ProcessGroup(name="world", size=ranks, ranks=tuple(range(ranks))),),
        ),
        report=TraceReport(counts={"events": count}),
    )
