"""Single strategies: the change to the job, and its effect on the recorded durations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Catalogue, Change, ChangeKind, CollectiveKind, Floats, Ints, NodewiseError
from nodewise_diagnosis.accounting import HOST_PARTS, MEMORY_BOUND_PART, Accounting, PartName
from nodewise_diagnosis.bottlenecks import RankedBottleneck
from nodewise_diagnosis.candidates import AVOIDABLE, LAUNCH_PARTS, Tier, launch_nodes
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.remedies import FAULTS, GAPS
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.stopwatch import NS, Edit, Stopwatch, whole_ns
from nodewise_diagnosis.vocabulary import ELEMENTWISE, FULL_PRECISION, HALF_PRECISION, LOADING, MATRIX
from nodewise_replay.changes.applying import apply_changes
from nodewise_replay.changes.buckets import in_each_buckets
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.graph.graph import NodeKind

__all__ = ["EVERYTHING", "Attempt", "Level", "Option", "changed_job", "options"]


class Level(IntEnum):
    """Outcome of a strategy."""

    BEST = 0
    LIKELY = 1
    WORST = 2


@dataclass(slots=True, eq=False)
class Attempt:
    """Durations and lags while strategies are applied, one after the other.

    ``micro_batches`` is how many of them share one exchange and one update; ``samples`` how many times more samples a
    micro-batch has; ``bucket_bytes`` the size of other gradient buckets, 0 = as recorded.
    """

    duration_ns: Floats
    lag_ns: Ints
    micro_batches: int = 1
    samples: float = 1.0
    bucket_bytes: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Option:
    """One strategy.

    Of options with the same ``group`` a combination has at most one; ``alone`` = it has none. ``acts_on`` are the parts
    of a step that get shorter; EVERYTHING = any.
    """

    name: str
    apply: Callable[[Attempt, Level], None]
    group: str
    changes: tuple[Change, ...] = ()
    rests_on: str = ""
    effort: str = ""
    alone: bool = False
    acts_on: frozenset[PartName]

    def overlaps(self, other: Option) -> bool:
        """Whether both act on some part."""
        if EVERYTHING & (self.acts_on | other.acts_on):
            return True
        return any(
            kind == same and (not what or not which or what == which)
            for kind, what in self.acts_on
            for same, which in other.acts_on
        )


def _kinds(*names: str) -> frozenset[PartName]:
    return frozenset((name, "") for name in names)


EVERYTHING: Final = _kinds("everything")
_LOADING: Final = _kinds("loading")
_COMPUTATION: Final = _kinds("computation")
_EXCHANGES: Final = _kinds("transfer", "waiting")
_LAUNCHES: Final = _kinds(*LAUNCH_PARTS)

_OF_ROLE: Final = {
    Role.HOST: _kinds(*HOST_PARTS),
    Role.COMPUTE: _COMPUTATION,
    Role.COMMUNICATION: _EXCHANGES,
    Role.LOADING: _LOADING,
    Role.COPY: _COMPUTATION,
}
"""Parts that are shorter if nodes of a role are."""

_GAP_LEFT: Final = (0.0, 0.1, 0.5)
"""Remaining share of such a part: nothing; a tenth, as something remains to do; half, where half of it must stay."""

_MICRO_BATCHES: Final = (2,)
"""Numbers of micro-batches to accumulate; each further one gains less."""

_BUCKETS: Final = (1, 2, 4, 8)
"""Numbers of buckets that all gradients are divided into."""

_MOST_NODES_REGROUPED: Final = 20_000
"""Other buckets need another graph each time: with more nodes that takes too long for every combination."""

_HOST_LEFT: Final = (0.0, 0.1, 0.5)
"""Remaining share of the host's work between launches with captured graphs: only their launch; a tenth; where half the
step cannot be captured."""

_FUSED_LEFT: Final = (1 / 3, 0.5, 0.8)
"""Remaining share of memory-bound kernels after fusion: three in a row, two in a row, few adjacent ones."""

_MEMORY_BOUND_LEFT: Final = (0.5, 0.5, 0.8)
"""Remaining share of memory-bound kernels with half the bytes."""

_HALF_THE_BYTES: Final = 2.0
"""Speed-up of 16-bit numbers, at best, where the catalogue has no entry for the device."""


def options(case: Case, accounting: Accounting, bottlenecks: Sequence[RankedBottleneck]) -> Iterator[Option]:
    """All single strategies that the traces support."""
    yield from _mending_options(case, bottlenecks)
    yield from _loading(case)
    if case.roles.device:
        launches = launch_nodes(case.roles.role, accounting)
        yield from _host(case, launches)
        # Start-up happens once, and is in no later step.
        if accounting.held_s({"startup"}) / NS < AVOIDABLE * case.base_ns:
            yield from _gaps(accounting)
        yield from _kernels(case, launches)
    if case.exchanges and case.graph.world_size > 1:
        yield from _communication(case)
    yield from _memory(case)


def _mending_options(case: Case, bottlenecks: Sequence[RankedBottleneck]) -> Iterator[Option]:
    """Fixes of faults: what takes longer than comparable nodes is reduced to their time."""
    recorded_ns = np.maximum(case.graph.duration_ns.astype(np.float64), 1.0)
    for one in bottlenecks:
        fixed_ns = one.candidate.removed.duration_ns
        if not one.bottleneck.matters or one.candidate.tier != Tier.FAULT or fixed_ns is None:
            continue
        if one.bottleneck.kind == "loader" and one.bottleneck.rank < 0:
            continue  # loading ahead is a strategy of its own
        ratio = np.minimum(fixed_ns / recorded_ns, 1.0)
        changed_nodes = np.flatnonzero(fixed_ns != case.graph.duration_ns)
        took = float(recorded_ns[changed_nodes].sum())
        mean = float((recorded_ns[changed_nodes] * ratio[changed_nodes]).sum()) / took if took else 1.0
        ranks = (one.bottleneck.rank,) if one.bottleneck.rank >= 0 else ()
        roles = {Role(role) for role in np.unique(case.roles.role[changed_nodes]).tolist()}
        yield Option(
            name=f"fix: {one.bottleneck.what}",
            apply=_scale_nodes((..., (ratio, ratio, (1 + ratio) / 2))),
            acts_on=frozenset[PartName]().union(*(_OF_ROLE[role] for role in roles)),
            group=f"fix {one.bottleneck.kind} {one.bottleneck.what}",
            changes=(Change(kind=ChangeKind.SCALE, value=mean, ranks=ranks),),
            rests_on=(
                "replay of the recorded steps with this brought to the usual time; at worst half of the excess is "
                "removed"
            ),
            effort=FAULTS.get(one.bottleneck.kind, FAULTS[""]),
        )


def _indexes(nodes: NDArray[Any]) -> NDArray[Any]:
    """Numbers of nodes, of a mask or of themselves."""
    return np.flatnonzero(nodes) if nodes.dtype == np.bool_ else nodes


def _scale_nodes(*scaled: tuple[Any, tuple[Any, Any, Any]]) -> Callable[[Attempt, Level], None]:
    """Scale some nodes (``...`` = all) to a remaining share, by level: one share, or one for each node."""
    places = [(chosen if chosen is ... else _indexes(chosen), left) for chosen, left in scaled]

    def apply(attempt: Attempt, level: Level) -> None:
        for nodes, left in places:
            attempt.duration_ns[nodes] *= left[level]

    return apply


def _scale(left: float, event_kinds: tuple[str, ...] = (), name_pattern: str = "") -> Change:
    return Change(kind=ChangeKind.SCALE, value=left, event_kinds=event_kinds, name_pattern=name_pattern)


def _loading(case: Case) -> Iterator[Option]:
    is_loading = case.roles.role == Role.LOADING
    if not is_loading.any():
        return
    yield Option(
        name="load batches ahead",
        apply=_scale_nodes((is_loading, (0.0, 0.0, 0.2))),
        acts_on=_LOADING,
        group="loading",
        changes=(_scale(0.0, name_pattern=f"(?i){LOADING.pattern}"),),
        rests_on="replay without the host's time to load batches; needs loader workers that keep up with the step",
        effort="low: DataLoader(num_workers=8, prefetch_factor=4, pin_memory=True, persistent_workers=True); "
        "Megatron --num-workers 8",
    )


def _host(case: Case, launches: NDArray[np.bool_]) -> Iterator[Option]:
    watch = case.watch
    syncs = np.flatnonzero(watch.sync_edges())
    note = f"; {len(syncs)} waits of hosts for their devices remain" if len(syncs) else ""
    yield Option(
        name="capture the step's launches in graphs",
        apply=_scale_nodes((launches, _HOST_LEFT)),
        acts_on=_LAUNCHES,
        group="launches",
        changes=(_scale(_HOST_LEFT[1], ("operator", "call", "gap")),),
        rests_on=f"replay with a tenth (0 to a half) of the host's work between launches{note}",
        effort='medium: torch.compile(model, mode="reduce-overhead") or torch.cuda.graph(graph); '
        "Megatron --cuda-graph-impl local; needs static shapes and addresses, no branches on results",
    )
    if len(syncs):

        def remove_synchronisation(attempt: Attempt, level: Level) -> None:
            if level != Level.WORST:
                attempt.lag_ns = watch.without_edges(syncs, attempt.lag_ns)

        yield Option(
            name="remove the host's waits for its device",
            apply=remove_synchronisation,
            acts_on=_LAUNCHES,
            group="synchronisation",
            rests_on="replay of the step without these waits; at worst all remain, as the host needs the results",
            effort="low to medium: loss.detach() instead of .item() and prints; DataLoader(pin_memory=True) and "
            "batch.to(device, non_blocking=True)",
        )


def _gaps(accounting: Accounting) -> Iterator[Option]:
    """Options for idle time of a device other than launches, by kind."""
    for kind, (name, effort) in GAPS.items():
        parts = {what: nodes for (of, what), nodes in accounting.nodes.items() if of == kind and len(nodes)}
        if not parts:
            continue
        most = max(parts, key=lambda what: accounting.held_s({kind}, what))
        yield Option(
            name=name,
            apply=_scale_nodes((np.unique(np.concatenate(list(parts.values()))), _GAP_LEFT)),
            acts_on=_kinds(kind),
            group=kind,
            rests_on=f"replay with a tenth (0 to a half) of the time that the device waits there, most of it in {most}",
            effort=effort,
        )


def _kernels(case: Case, launches: NDArray[np.bool_]) -> Iterator[Option]:
    graph = case.graph
    kernel = (graph.kind == NodeKind.KERNEL) & (case.roles.role == Role.COMPUTE)
    matrix = kernel & graph.match_names(MATRIX)
    elementwise = kernel & ~matrix & graph.match_names(ELEMENTWISE)
    if elementwise.any():
        share = float(elementwise.sum() / max(kernel.sum(), 1))
        # Fewer kernels are launched: the host's work shrinks with them.
        best, likely, worst = (1 - share * (1 - left) for left in _FUSED_LEFT)
        yield Option(
            name="fuse memory-bound kernels",
            apply=_scale_nodes((elementwise, _FUSED_LEFT), (launches, (best, likely, worst))),
            acts_on=frozenset({MEMORY_BOUND_PART}) | _LAUNCHES,
            group="fusion",
            changes=(_scale(_FUSED_LEFT[1], ("kernel",), ELEMENTWISE.pattern),),
            rests_on=(
                f"{share:.0%} of the kernels are elementwise by name; every two are fused into one, with half the "
                "launches"
            ),
            effort="medium: model = torch.compile(model); AdamW(..., fused=True)",
        )
    full = kernel & graph.match_names(FULL_PRECISION) & ~graph.match_names(HALF_PRECISION)
    if (full & matrix).any():
        devices = [name for trace in case.traces.values() for name in trace.devices]
        devices = devices or [name for name in case.profile.observations.configurations.devices if name]
        peak = _peak_ratio(case.context.catalogue, devices)
        left = (1 / peak, 0.5, 0.8)
        yield Option(
            name="16-bit numbers in matrix products and convolutions",
            apply=_scale_nodes((full & matrix, left), (full & ~matrix, _MEMORY_BOUND_LEFT)),
            acts_on=_COMPUTATION,
            group="precision",
            rests_on=f"kernels that use 32-bit numbers by name: half the time for half the bytes, at best 1/{peak:g} "
            f"by the matrix units of {devices[0] if devices else 'the device'}",
            effort='low: torch.autocast("cuda", dtype=torch.bfloat16); '
            "FSDP MixedPrecision(param_dtype=torch.bfloat16); "
            'DeepSpeed "bf16": {"enabled": true}; Megatron --bf16; check convergence',
        )


def _peak_ratio(catalogue: Catalogue, devices: Sequence[str]) -> float:
    """Peak of 16-bit matrix products over that of 32-bit ones (TF32 where there is such), of the first known device."""
    for name in devices:
        facts = catalogue.device(name) or {}
        half, full = facts.get("fp16_flops_per_s"), facts.get("tf32_flops_per_s", facts.get("fp32_flops_per_s"))
        if half and full:
            return max(half / full, 1.0)
    return _HALF_THE_BYTES


def _communication(case: Case) -> Iterator[Option]:
    communication = case.roles.role == Role.COMMUNICATION
    twice = (Change(kind=ChangeKind.LINK_BANDWIDTH, value=2.0),)
    changed_graph = changed_job(case, twice)
    if changed_graph is not None:
        ratio = changed_graph.duration_ns / np.maximum(case.graph.duration_ns, 1)
        scale_transfers = _scale_nodes((..., (np.where(communication, 0.5, 1.0), ratio, (1 + ratio) / 2)))
        basis = f"replay of {', '.join(changed_graph.rests_on)}; at best all their time is halved"
        yield Option(
            name="a link of twice the bandwidth",
            apply=scale_transfers,
            acts_on=_EXCHANGES,
            group="link",
            changes=twice,
            rests_on=basis,
            effort="high: other machines or network cards; first see with NCCL_DEBUG=INFO that NCCL_SOCKET_IFNAME and "
            "NCCL_IB_HCA name the fastest ones and that GPUDirect is used (NCCL_NET_GDR_LEVEL)",
        )
        yield Option(
            name="exchange gradients in 16 bits",
            apply=scale_transfers,
            acts_on=_EXCHANGES,
            group="compression",
            changes=(_scale(0.5, ("collective",)),),
            rests_on=f"as a link of twice the bandwidth ({basis}); no gain if gradients are 16-bit already",
            effort="low: DDP register_comm_hook(None, default_hooks.bf16_compress_hook); FSDP "
            'MixedPrecision(reduce_dtype=torch.bfloat16); DeepSpeed "communication_data_type": "bf16"; check '
            "convergence",
        )
    yield from _buckets(case)
    last = case.exchanges[-1]
    is_hidden = communication.copy()
    is_hidden[last.nodes] = False
    if is_hidden.any() and len(case.exchanges) > 1:
        yield Option(
            name="more overlap of communication with computation",
            apply=_scale_nodes((is_hidden, (0.0, 0.5, 1.0))),
            acts_on=_EXCHANGES,
            group="overlap",
            rests_on=(
                "bounds, not a replay: at best all exchanges but the last are hidden, at worst no more than now; half "
                "in between"
            ),
            effort="medium: DDP static_graph=True, gradient_as_bucket_view=True; FSDP "
            "backward_prefetch=BackwardPrefetch.BACKWARD_PRE, forward_prefetch=True; Megatron --overlap-grad-reduce "
            "--overlap-param-gather; DeepSpeed "
            '"overlap_comm": true',
        )
    for count in _MICRO_BATCHES:

        def accumulate(attempt: Attempt, _: Level, count: int = count) -> None:
            attempt.micro_batches = count

        yield Option(
            name=f"accumulate gradients over {count} micro-batches",
            apply=accumulate,
            acts_on=_EXCHANGES | _COMPUTATION | _LAUNCHES,
            group="accumulation",
            rests_on=f"replay: {count - 1} of {count} micro-batches without exchange and update; the speed-up is per "
            f"sample, of {count} times the samples per step",
            effort=f"low: with model.no_sync() in {count - 1} of {count} micro-batches; DeepSpeed "
            f'"gradient_accumulation_steps": {count}; the global batch grows, so check convergence',
        )


def _buckets(case: Case) -> Iterator[Option]:
    """The best of some sizes of gradient buckets, where the traces show the gradients."""
    kinds = {CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER}
    total = sum(one.bytes for one in case.exchanges if one.family[0] in kinds and one.bytes > 0)
    if not total:
        return
    best: tuple[float, float] | None = None
    rests_on = ""
    recording = Scenario.from_recording(case.graph, case.traces, case.graph.duration_ns, case.graph.lag_ns)
    for size, scenario in in_each_buckets(recording, [float(-(-total // parts)) for parts in _BUCKETS]):
        step = Stopwatch(scenario.graph, case.watch.steps).step_ns(Edit(scenario.duration_ns, scenario.lag_ns))
        if best is None or step < best[0]:
            best, rests_on = (step, size), ", ".join(scenario.rests_on)
    if best is None:
        return
    size = best[1]

    def regroup(attempt: Attempt, level: Level) -> None:
        if level != Level.WORST:
            attempt.bucket_bytes = size

    yield Option(
        name=f"gradient buckets of {size / 2**20:.2f} MiB",
        apply=regroup,
        acts_on=_EXCHANGES,
        group="buckets",
        changes=(Change(kind=ChangeKind.BUCKET_BYTES, value=size),),
        rests_on=f"replay with the gradients exchanged in such buckets: {rests_on}; at worst nothing changes",
        effort=f"low: DistributedDataParallel(bucket_cap_mb={size / 2**20:.2f}); DeepSpeed "
        f'"reduce_bucket_size": {size / 4:.0f}, Megatron --ddp-bucket-size {size / 4:.0f}, in numbers of 4 bytes',
        alone=len(case.graph) > _MOST_NODES_REGROUPED,
    )


def changed_job(case: Case, changes: tuple[Change, ...], attempt: Attempt | None = None) -> Scenario | None:
    """The recorded job, or an attempt at it, after changes; None where the traces do not support them."""
    graph = case.graph
    duration = graph.duration_ns if attempt is None else whole_ns(attempt.duration_ns)
    lag = graph.lag_ns if attempt is None else attempt.lag_ns
    try:
        return apply_changes(Scenario.from_recording(graph, case.traces, duration, lag), changes)
    except NodewiseError:
        return None


def _memory(case: Case) -> Iterator[Option]:
    """Recomputation frees memory for a larger batch: only where memory was recorded, and the batch may grow."""
    factor = case.question.largest_batch_factor
    allocations = [trace.memory.allocated_bytes for trace in case.traces.values() if len(trace.memory)]
    if factor <= 1 or not allocations:
        return
    high, low = max(int(one.max()) for one in allocations), min(int(one.min()) for one in allocations)
    compute = (case.roles.role == Role.COMPUTE) & ~case.roles.optimizer

    def recompute(attempt: Attempt, level: Level) -> None:
        # Forward passes are a third of the computation, as backward passes take twice as long: they are repeated.
        again = (1.25, 4 / 3, 1.5)[level]
        attempt.duration_ns[compute] *= again * factor
        attempt.samples *= factor

    yield Option(
        name=f"recompute activations and take {factor:g} times the batch",
        apply=recompute,
        acts_on=EVERYTHING,
        group="batch",
        rests_on=f"memory varies between {low:,} and {high:,} bytes in a step, and the difference can be recomputed; "
        f"computation takes {factor:g} times as long and a third more, everything else is unchanged",
        effort="medium: torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False); Megatron "
        '--recompute-granularity selective; DeepSpeed "activation_checkpointing"; the global batch grows, so check '
        "convergence",
    )
