"""Fill in what a question leaves open, from the profile's evidence. Values without evidence are not guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as of_dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, constant_floats, constant_ints, freeze, holds, largest, only_value
from nodewise.domain.configurations import UNSTATED, Configurations, Recomputation, SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Violation, invalid_field
from nodewise.domain.predictions import Options
from nodewise.domain.profile import Profile
from nodewise.domain.simulated_steps import counted_cycles
from nodewise.estimation.reach import UNMEASURED, Reach, reach_of
from nodewise.estimation.weights import ENTRY_BYTES, part_of_rows
from nodewise.plugin import Catalogue
from nodewise.ports.cache import CacheSpace, LruCache

__all__ = ["MAX_WORKERS", "Defaults", "Resolution", "check_simulated", "defaults_of", "fill_unstated", "on_devices"]

MAX_WORKERS: Final = 131_072
"""Largest number of workers that a model is asked about by default. The cost of exact models grows in proportion to it,
and a number of nodes alone does not show it."""

# Plain integers: comparing columns with them is faster.
_UNSPECIFIED: Final = int(SyncMode.UNSPECIFIED)
_ALLREDUCE: Final = int(SyncMode.ALLREDUCE)

_SPLITTING: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel")
"""Degrees whose product is the number of workers, or less if there are backup workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Values from a job's evidence for what a question leaves open.

    Attributes
    ----------
    sync_modes, devices, batches_per_worker, parameter_servers, recomputations : tuple
        Distinct values in the evidence, ascending. A single value is the default. If there
        are several, the question must state one; the batch and the recomputation stay unknown instead.
    workers_per_node : int
        Largest number in the evidence. A row that states only nodes gets full nodes; 1 without evidence.
    link_bytes_per_s : float
        Bandwidth of the link; 0 = not known.
    micro_batches_open : bool
        Whether the job trains a transformer, whose replicas split their share of a global batch into micro-batches.
        The estimator then chooses the micro-batch of each row.
    reach : Reach
        Largest scale in the evidence. It is no default for any value.
    """

    sync_modes: tuple[int, ...]
    devices: tuple[str, ...]
    batches_per_worker: tuple[int, ...]
    parameter_servers: tuple[int, ...]
    workers_per_node: int
    link_bytes_per_s: float
    recomputations: tuple[int, ...] = ()
    micro_batches_open: bool = False
    reach: Reach = of_dataclass(default=UNMEASURED, compare=False)


def defaults_of(profile: Profile) -> Defaults:
    """Read the defaults from a profile's phase timings and observations."""
    evidence = [profile.phase_timings.configurations, profile.observations.configurations]

    def distinct(name: str, default: int) -> tuple[int, ...]:
        values: set[int] = set()
        for configurations in evidence:
            values.update(getattr(configurations, name).tolist())
        values.discard(default)
        return tuple(sorted(values))

    devices = sorted({name for part in evidence if len(part) for name in part.device_names() if name})
    per_node = [
        -(-workers // nodes)
        for part in evidence
        for workers, nodes in zip(part.workers.tolist(), part.nodes.tolist(), strict=True)
        if nodes > 0
    ]
    return Defaults(
        sync_modes=distinct("sync_mode", SyncMode.UNSPECIFIED),
        devices=tuple(devices),
        batches_per_worker=distinct("batch_per_worker", 0),
        parameter_servers=tuple(count for count in distinct("parameter_servers", UNSTATED) if count > 0),
        workers_per_node=max(per_node, default=1),
        link_bytes_per_s=profile.network.link_bytes_per_s or 0.0,
        recomputations=distinct("recomputation", Recomputation.UNSPECIFIED),
        micro_batches_open=profile.workload.transformer is not None,
        reach=reach_of(profile),
    )


class Resolution:
    """Resolves questions and caches the results. The RPC layer passes one object per distinct set of configurations.

    Parameters
    ----------
    max_workers : int
        Largest number of workers that a model is asked about, stated or resolved from nodes.
    space : CacheSpace
        Space for cached results.
    catalogue : Catalogue
        Resolves names of machines to their devices.
    """

    def __init__(self, max_workers: int, space: CacheSpace, catalogue: Catalogue) -> None:
        self._max_workers = max_workers
        self._catalogue = catalogue
        self._defaults: LruCache[str, Defaults] = LruCache(space)
        self._resolved: LruCache[tuple[Configurations, Defaults], Configurations] = LruCache(space)

    def forget(self) -> None:
        """Clear the caches."""
        self._defaults.clear()
        self._resolved.clear()

    def reach(self, profile: Profile) -> Reach:
        """Return the largest scale in a profile's evidence."""
        return self._defaults_of(profile).reach

    def _defaults_of(self, profile: Profile) -> Defaults:
        defaults = self._defaults.get(profile.digest) if profile.digest else None
        if defaults is None:
            defaults = defaults_of(profile)
            if profile.digest:
                self._defaults.put(profile.digest, defaults, ENTRY_BYTES)
        return defaults

    def of(self, profile: Profile, configurations: Configurations) -> Configurations:
        """Return the configurations, filled in from the profile's evidence; raises as :func:`fill_unstated`."""
        defaults = self._defaults_of(profile)
        key = (configurations, defaults)
        rows = self._resolved.get(key)
        if rows is None:
            rows = fill_unstated(on_devices(configurations, self._catalogue), defaults, self._max_workers)
            parts = (part_of_rows(configurations), part_of_rows(rows)) if rows is not configurations else ()
            self._resolved.put(key, rows, ENTRY_BYTES, parts)
        return rows


def on_devices(configurations: Configurations, catalogue: Catalogue) -> Configurations:
    """Replace names of machines by their devices, with the facts of the machine.

    The machine's link is used where a row states none. Rows that state only nodes or only workers get full nodes.
    """
    machines = [catalogue.named_machine(name) for name in configurations.devices]
    if not any(machines):
        return configurations
    devices = tuple(
        machine.device if machine else name for machine, name in zip(machines, configurations.devices, strict=True)
    )
    # One more entry: rows without a device have index -1.
    links = np.array([machine.node_link_bytes_per_s if machine else 0.0 for machine in machines] + [0.0])
    sizes = np.array([int(machine.devices_per_node) if machine else 0 for machine in machines] + [0])
    index = configurations.device_index
    link, nodes, workers, per_node = (
        configurations.link_bytes_per_s,
        configurations.nodes,
        configurations.workers,
        sizes[index],
    )
    counts_scale = (per_node > 0) & (configurations.placement is None and configurations.worker_groups is None)
    whole = np.where((workers == 0) & counts_scale, nodes * per_node, workers)
    full = np.where((nodes == 0) & counts_scale, -(-workers // np.maximum(per_node, 1)), nodes)
    return configurations.replaced(
        devices=devices,
        link_bytes_per_s=freeze(np.where(link == 0.0, links[index], link)),
        workers=freeze(whole),
        nodes=freeze(full),
    )


def fill_unstated(configurations: Configurations, defaults: Defaults, max_workers: int = MAX_WORKERS) -> Configurations:
    """Return the rows with all values filled in that the evidence gives.

    Raises
    ------
    NodewiseError
        INVALID_FIELD where the evidence has several values and the question states none, or where a row resolves to
        more than ``max_workers``; CONTRADICTORY_FACTS where degrees, placement, groups or backup workers do not fit, or
        where a row that is not hybrid states how a hybrid runs.
    """
    changes: dict[str, object] = {}

    sync_mode = configurations.sync_mode
    if holds(sync_mode, _UNSPECIFIED):
        modes = [SyncMode(value).name for value in defaults.sync_modes]
        mode = _only(modes, "configurations.sync_modes", SyncMode.ALLREDUCE.name)
        column, mode_number = sync_mode, int(SyncMode[mode])
        alike = only_value(column) is not None
        whole_column = None if alike else freeze(np.where(column == _UNSPECIFIED, mode_number, column))
        sync_mode = constant_ints(len(column), mode_number) if whole_column is None else whole_column
        changes["sync_mode"] = sync_mode

    if "" in configurations.devices and defaults.devices:
        index = configurations.devices.index("")
        groups = configurations.worker_groups
        if holds(configurations.device_index, index) or (groups and (groups.device_index == index).any()):
            device = _only(defaults.devices, "configurations.device_names", "")
            changes["devices"] = tuple(device if name == "" else name for name in configurations.devices)

    nodes, workers = _scale(configurations, defaults, max_workers)
    if nodes is not configurations.nodes or workers is not configurations.workers:
        changes |= {"nodes": nodes, "workers": workers}

    servers = configurations.parameter_servers
    if holds(servers, UNSTATED):
        changes["parameter_servers"] = _servers(servers, sync_mode, defaults)

    if len(defaults.recomputations) == 1 and holds(configurations.recomputation, Recomputation.UNSPECIFIED):
        how = configurations.recomputation
        changes["recomputation"] = freeze(np.where(how == Recomputation.UNSPECIFIED, defaults.recomputations[0], how))

    if defaults.link_bytes_per_s and holds(configurations.link_bytes_per_s, 0.0):
        link = configurations.link_bytes_per_s
        changes["link_bytes_per_s"] = freeze(np.where(link == 0.0, defaults.link_bytes_per_s, link))
    batch, none = configurations.batch_per_worker, constant_ints(len(nodes), 0)
    if batch is none and configurations.global_batch is none:
        changes["batch_per_worker"] = constant_ints(len(batch), _batch_seen(defaults))
    result = configurations.replaced(**changes) if changes else configurations
    _agree(result)
    if "batch_per_worker" not in changes and holds(batch, 0):
        result = result.replaced(batch_per_worker=_batch(result, defaults))
    return result


def check_simulated(configurations: Configurations, options: Options, most: int) -> None:
    """Refuse a simulation that needs more cycles of single workers than a question may request.

    Parameters
    ----------
    configurations : Configurations
        Resolved rows. The number of workers and the sync mode determine the cycles of a step.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED.
    """
    cycles = counted_cycles(configurations.sync_mode, configurations.workers, options.simulated_steps)
    cycle_count = int(cycles.sum())
    if cycle_count > most:
        row = int(cycles.argmax())
        text = (
            f"options.simulated_steps_count: {cycle_count} cycles of single workers would be simulated, "
            f"{int(cycles[row])} of them for row {row} of {int(configurations.workers[row])} workers; a question takes "
            f"simulated_cycles_per_question = {most}; ask for fewer steps, rows or workers, or for FIDELITY_MODEL"
        )
        limit = {"limit": "simulated_cycles_per_question", "value": str(most), "found": str(cycle_count)}
        raise NodewiseError(Reason.LIMIT_EXCEEDED, text, limit)


def _scale(configurations: Configurations, defaults: Defaults, max_workers: int) -> tuple[Ints, Ints]:
    """Return nodes and workers: as stated, else by placement or groups, else by the evidence's workers per node."""
    nodes, workers = configurations.nodes, configurations.workers
    if configurations.placement is not None:
        placed_nodes, placed_workers = configurations.placement.nodes_and_workers()
        nodes = _follow("nodes", nodes, placed_nodes, "placement")
        workers = _follow("workers", workers, placed_workers, "placement")
    if configurations.worker_groups is not None:
        workers = _follow("workers", workers, configurations.worker_groups.row_workers(), "groups")
    per_node = defaults.workers_per_node
    # Floats, because the product of two large integers may overflow.
    open_workers = holds(workers, 0)
    most = np.where(workers == 0, nodes * float(per_node), workers) if open_workers else workers
    if (np.maximum.reduce(most, initial=0) if open_workers else largest(workers)) > max_workers:
        row = int(most.argmax())
        how = f" ({nodes[row]} nodes with {per_node} each)" if workers[row] == 0 else ""
        text = f"must be at most {max_workers}, found {most[row]:.0f}{how} in row {row}"
        raise invalid_field("configurations.workers", text)
    if open_workers:
        workers = freeze(np.where(workers == 0, nodes * per_node, workers))
    if holds(nodes, 0):
        full = workers if per_node == 1 else -(-workers // per_node)
        nodes = freeze(full if only_value(nodes) is not None else np.where(nodes == 0, full, nodes))
    return nodes, workers


def _follow(name: str, stated: Ints, follows: Ints, what: str) -> Ints:
    """Fill a column with values derived from another one; refuse rows where the two disagree. 0 = not stated."""
    verb = "have" if what.endswith("s") else "has"
    _refuse(
        (follows > 0) & (stated > 0) & (stated != follows),
        lambda row: f"is {stated[row]}, but the row's {what} {verb} {follows[row]}",
        name,
    )
    return freeze(np.where(stated == 0, follows, stated)) if (stated == 0).any() else stated


def _servers(servers: Ints, sync_mode: Ints, defaults: Defaults) -> Ints:
    """Return parameter servers: none for all-reduce, else as stated, else the only number in the evidence, else 1."""
    mode = only_value(sync_mode)
    if mode is not None and mode != _ALLREDUCE and only_value(servers) is not None:
        return constant_ints(len(servers), int(_servers_seen(defaults)))
    open_rows = (servers == UNSTATED) & (sync_mode != SyncMode.ALLREDUCE)
    count = "1"
    if open_rows.any():
        count = _servers_seen(defaults)
    servers_of_rows = np.where(sync_mode == SyncMode.ALLREDUCE, 0, int(count))
    return freeze(np.where(servers == UNSTATED, servers_of_rows, servers))


def _servers_seen(defaults: Defaults) -> str:
    return _only([str(count) for count in defaults.parameter_servers], "configurations.parameter_servers", "1")


def _agree(rows: Configurations) -> None:
    """Refuse resolved rows whose workers do not fit their degrees or backup workers, and inconsistent hybrid rows."""
    for field, stated in (
        ("hybrid_sync_fractions", rows.hybrid_sync_fraction),
        ("hybrid_switch_seconds", rows.hybrid_switch_s),
    ):
        if stated is not constant_floats(len(stated), 0.0):
            wrong = (stated > 0.0) & (rows.sync_mode != SyncMode.HYBRID)
            _refuse(wrong, lambda row: f"must be 0 where sync_modes is {SyncMode(rows.sync_mode[row]).name}", field)
    if rows.is_whole():
        return
    workers = rows.workers
    if all(getattr(rows, name).max(initial=0) <= 1 for name in _SPLITTING) and not rows.backup_workers.any():
        return
    workers_needed = rows.degree() * np.maximum(rows.data_parallel, 1)
    wrong = workers_needed > workers
    fields = [f"{name}_degrees" for name in _SPLITTING if getattr(rows, name)[wrong.argmax()] > 1]
    most = "the product of a row's degrees must be at most its workers"
    _refuse(wrong, lambda row: f"{most}: {workers_needed[row]:.0f} for {workers[row]} workers", *fields)
    replicas = np.where(rows.data_parallel > 0, rows.data_parallel, np.floor(workers / rows.degree()))
    backup = rows.backup_workers
    wrong = (rows.sync_mode != SyncMode.ASYNC) & (backup > 0) & (backup >= replicas)
    needs = "a step needs the result of at least one"
    _refuse(wrong, lambda row: f"is {backup[row]} of {replicas[row]:.0f} workers: {needs}", "backup_workers")


def _refuse(wrong: NDArray[np.bool_], says: Callable[[int], str], *fields: str) -> None:
    """Refuse the first wrong row, if there is one: the error names each of the fields."""
    if wrong.any():
        row = int(wrong.argmax())
        violations = [Violation(f"configurations.{field}[{row}]", says(row)) for field in fields]
        raise NodewiseError.invalid(violations, Reason.CONTRADICTORY_FACTS)


def _batch(configurations: Configurations, defaults: Defaults) -> Ints:
    """Return the batch per worker: as stated, else by the global batch (rounded up), else the only one in evidence.

    If micro-batches are open, the evidence's micro-batch is used if it divides the share; else the value stays 0.
    """
    whole = configurations.replicas() * configurations.accumulation.astype(np.float64)
    shares = np.ceil(configurations.global_batch / whole)
    evidence_batch = _batch_seen(defaults)
    if defaults.micro_batches_open:
        cut = (configurations.accumulation == 1) & (configurations.sync_mode == _ALLREDUCE)
        as_in_evidence = np.mod(shares, max(evidence_batch, 1)) == 0
        shares = np.where(cut, np.where(as_in_evidence, evidence_batch, 0), shares)
    derived_batch = np.where(configurations.global_batch > 0, shares, evidence_batch)
    stated_batch = configurations.batch_per_worker
    return freeze(np.where(stated_batch == 0, derived_batch, stated_batch).astype(np.int64))


def _batch_seen(defaults: Defaults) -> int:
    """Return the only batch in the evidence; 0 = there is none, or there are several."""
    return defaults.batches_per_worker[0] if len(defaults.batches_per_worker) == 1 else 0


def _only(values: list[str] | tuple[str, ...], path: str, otherwise: str) -> str:
    if len(values) > 1:
        text = ", ".join(values)
        raise invalid_field(path, f"must be stated: the profile's evidence holds several values ({text})")
    return values[0] if values else otherwise
