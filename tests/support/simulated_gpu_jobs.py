"""Training on GPUs as the PyTorch profiler records it: hosts that launch, streams, exchanges, and planted faults."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from kineto_documents import Event, document, read, span

from nodewise.plugin import Trace

_LAYERS = 12
_BUCKETS = 3
_NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True, kw_only=True)
class Stall:
    """Something that keeps a host busy before a layer of the forward pass, in some steps of some ranks.

    ``layer`` -1 is before the first one. ``cat`` is the profiler's category; empty = nothing is recorded of it.
    ``piece_us`` is how long each of many calls of it takes; 0 = one call.
    """

    name: str
    cat: str
    layer: int
    time_us: float
    ranks: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    copies: bool = False
    piece_us: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of some ranks, microseconds. Scales are by (rank, step) where a number is missing 1.

    ``stacks`` records the interpreter's functions, and without ``loader`` nothing marks the loading of batches.
    """

    ranks: int = 4
    steps: int = 6
    kernel_us: float = 1500.0
    operator_us: float = 40.0
    exchange_us: float = 4000.0
    loading_us: float = 1000.0
    noise: float = 0.003
    seed: int = 0
    synchronous: bool = True
    queue: int = 1023
    stacks: bool = False
    loader: bool = True
    compute_scale: dict[tuple[int, int], float] = field(default_factory=dict)
    exchange_scale: dict[int, float] = field(default_factory=dict)
    stalls: tuple[Stall, ...] = ()

    def recorded(self) -> list[Trace]:
        """The traces of its ranks."""
        return _Simulation(self).traces()

    def step_us(self) -> float:
        """Mean time of a step."""
        return _Simulation(self).step_us


class _Rank:
    def __init__(self, job: Job, rank: int) -> None:
        self.job, self.rank = job, rank
        self.random = np.random.default_rng((job.seed, rank))
        self.host = self.compute = self.network = 1000.0
        self.events: list[Event] = []
        self.correlation = 0
        self.begins: deque[float] = deque(maxlen=job.queue)

    def noisy(self, time_us: float) -> float:
        return float(time_us * np.exp(self.random.normal(0.0, self.job.noise)))

    def on_host(self, name: str, cat: str, time_us: float, **args: object) -> None:
        self.events.append(span(name, cat, round(self.host, 3), round(time_us, 3), **args))
        self.host += time_us

    def launch(self, operator: str, kernel: str, time_us: float, after_us: float = 0.0) -> None:
        """An operator that launches a kernel, which waits for a place in the queue."""
        begun, took = self.host, self.noisy(self.job.operator_us)
        self.correlation += 1
        self.host += 0.5 * took
        free = self.begins[0] if len(self.begins) == self.begins.maxlen else 0.0
        launched = max(6.0, free - self.host)
        self.on_host("cudaLaunchKernel", "cuda_runtime", launched, correlation=self.correlation)
        begin = max(self.host + 4.0, self.compute, after_us)
        self.on_device(kernel, begin, time_us, 7)
        self.begins.append(begin)
        self.compute = begin + time_us
        self.host += 0.4 * took
        self.events.append(span(operator, "cpu_op", round(begun, 3), round(self.host - begun, 3)))
        self.host += 3.0
        self.function("torch/nn/modules/module.py(1501): _call_impl", begun - 1.0)

    def function(self, name: str, begun: float) -> None:
        """A function of the interpreter that is over by now, where stacks are recorded."""
        if self.job.stacks:
            self.events.append(span(name, "python_function", round(begun, 3), round(self.host - begun, 3)))

    def waits(self) -> None:
        """One stream waits for what another has been given."""
        for name in ("cudaEventRecord", "cudaStreamWaitEvent"):
            self.on_host(name, "cuda_runtime", 2.0)
            self.host += 1.0

    def on_device(
        self, name: str, begin: float, time_us: float, stream: int, cat: str = "kernel", **args: object
    ) -> None:
        self.events.append(
            span(name, cat, round(begin, 3), round(time_us, 3), tid=stream, pid=0, device=0, stream=stream,
                 correlation=self.correlation, **args)
        )  # fmt: skip

    def stall(self, one: Stall) -> None:
        if one.copies:
            self.correlation += 1
            begin = max(self.host + 10.0, self.compute)
            self.on_device("Memcpy HtoD (Pageable -> Device)", begin, one.time_us, 7, "gpu_memcpy", bytes=1 << 26)
            self.compute = begin + one.time_us
            self.on_host(one.name, one.cat, self.compute + 5.0 - self.host, correlation=self.correlation)
        elif one.cat:
            calls = max(round(one.time_us / one.piece_us), 1) if one.piece_us else 1
            for _ in range(calls):
                self.correlation += 1
                self.on_host(one.name, one.cat, max(one.time_us / calls - 1.0, 1.0), correlation=self.correlation)
                self.host += 1.0
        else:
            self.host += one.time_us
        self.host += 2.0


class _Simulation:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._ranks = [_Rank(job, rank) for rank in range(job.ranks)]
        for step in range(job.steps):
            self._step(step)
        self.step_us = float(np.mean([max(one.host, one.compute) - 1000.0 for one in self._ranks])) / job.steps

    def traces(self) -> list[Trace]:
        job = self._job
        return [
            read(
                document(
                    one.events,
                    deviceProperties=[{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
                    distributedInfo={"backend": "nccl", "rank": one.rank, "world_size": job.ranks},
                )
            )
            for one in self._ranks
        ]

    def _step(self, step: int) -> None:
        job = self._job
        begun = [one.host for one in self._ranks]
        ready = np.array([self._passes(one, step) for one in self._ranks])
        if job.ranks > 1:
            self._exchange(ready)
        for one, begin in zip(self._ranks, begun, strict=True):
            if job.ranks > 1:
                one.waits()
            one.launch("Optimizer.step#SGD.step", "multi_tensor_apply_kernel", one.noisy(job.kernel_us), one.network)
            if job.synchronous:
                one.correlation += 1
                waited = max(one.compute + 5.0 - one.host, 5.0)
                one.on_host("cudaStreamSynchronize", "cuda_runtime", waited, correlation=one.correlation)
            one.host += 5.0
            one.events.append(
                span(f"ProfilerStep#{step + 5}", "user_annotation", round(begin, 3), round(one.host - begin, 3))
            )
            one.host += 1.0
            one.function("train.py(40): train_step", begin)
            if step == job.steps - 1:
                one.function("train.py(12): main", 990.0)

    def _passes(self, one: _Rank, step: int) -> list[float]:
        """Loading, forward and backward pass of a rank; when each bucket of gradients is there."""
        job = self._job
        one.host += 2.0
        took = self._loading(one, step)
        if job.loader:
            one.on_host("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation", took)
        else:
            one.host += took
        scale = job.compute_scale.get((one.rank, step), job.compute_scale.get((one.rank, -1), 1.0))
        self._stalls(one, step, -1)
        for layer in range(_LAYERS):
            self._stalls(one, step, layer)
            one.launch("aten::mm", f"sm80_gemm_fwd_{layer}", one.noisy(job.kernel_us) * scale)
        ready = []
        for layer in range(_LAYERS):
            one.launch("aten::mm", f"sm80_gemm_bwd_{layer}", one.noisy(2 * job.kernel_us) * scale)
            if (layer + 1) % (_LAYERS // _BUCKETS) == 0:
                ready.append(max(one.compute, one.host + 4.0))
                if job.ranks > 1:
                    one.correlation += 1
                    begun = one.host
                    one.host += 2.0
                    one.waits()
                    inside = one.host
                    one.host += 1.0
                    one.on_host("cudaLaunchKernelExC", "cuda_runtime", 7.0, correlation=one.correlation)
                    for name, begin in (("record_param_comms", begun), ("nccl:all_reduce", inside)):
                        one.events.append(span(name, "cpu_op", round(begin, 3), round(one.host - begin + 2, 3)))
                    one.host += 4.0
        return ready

    def _loading(self, one: _Rank, step: int) -> float:
        job = self._job
        more = sum(stall.time_us for stall in job.stalls if stall.cat == "loader" and _met(stall, one.rank, step))
        return one.noisy(job.loading_us) + more

    def _stalls(self, one: _Rank, step: int, layer: int) -> None:
        for stall in self._job.stalls:
            if stall.cat != "loader" and stall.layer == layer and _met(stall, one.rank, step):
                one.stall(stall)

    def _exchange(self, ready: np.ndarray) -> None:
        job = self._job
        shared = self._ranks[0]
        for bucket in range(_BUCKETS):
            begins = [max(one.network, at) for one, at in zip(self._ranks, ready[:, bucket].tolist(), strict=True)]
            took = shared.noisy(job.exchange_us) * job.exchange_scale.get(bucket, 1.0)
            for one, begin in zip(self._ranks, begins, strict=True):
                one.network = max(begins) + took
                last = one.correlation
                one.correlation = last - (_BUCKETS - 1 - bucket) * (_LAYERS // _BUCKETS + 1)
                one.on_device(
                    _NCCL, begin, one.network - begin, 20,
                    **{"Collective name": "allreduce", "In msg nelems": 12_500_000, "Out msg nelems": 12_500_000,
                       "dtype": "Float", "Group size": job.ranks, "Process Group Name": "0",
                       "Process Group Ranks": str(list(range(job.ranks)))},
                )  # fmt: skip
                one.correlation = last


def _met(stall: Stall, rank: int, step: int) -> bool:
    return (not stall.ranks or rank in stall.ranks) and (not stall.steps or step in stall.steps)
