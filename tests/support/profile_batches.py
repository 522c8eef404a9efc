"""Batches and profiles for tests, small and all different."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from nodewise.domain.configurations import Configurations, Placement, SyncMode, WorkerGroup, WorkerGroups
from nodewise.domain.profile import Observations, PhaseTimings, Profile
from nodewise.domain.workload import Encoder, Layer, Network, Transformer, Workload
from nodewise.profiles.batches import Batch, TraceChunk

WORKLOAD = Workload(
    model_name="a model",
    parameter_bytes=244_000_000,
    tensors=16,
    flops_per_sample=1.4e9,
    samples_per_epoch=1_281_167,
    epochs=90.0,
    transformer=Transformer(
        layers=2,
        hidden_size=8,
        attention_heads=2,
        sequence_length=16,
        vocabulary_size=100,
        experts=4,
        experts_per_token=2,
        gated_feed_forward=True,
        untied_embeddings=True,
        expert_layers=1,
        key_value_latent_size=4,
        query_latent_size=6,
        rotary_head_size=2,
        value_head_size=4,
        attention_window=8,
        windowed_layers=1,
        attention_layers=1,
        state_space_layers=1,
        state_space_size=16,
        state_size=64,
        feed_forward_layers=2,
    ),
    layers=tuple(
        Layer(
            name=name,
            kind="dense",
            forward_flops_per_sample=1e6,
            parameter_bytes=4_000,
            activation_bytes_per_sample=1 / 3,
            halo_bytes_per_sample=56.0,
        )
        for name in ("first", "second")
    ),
    framework="pytorch",
    optimizer="adam",
    precision="fp16",
    shard_bytes=(244_000_000, 0),
    shard_tensors=(16, 0),
    dropout=False,
    frozen_weights_share=0.5,
    frozen_weight_bits=4.0,
    offload="optimizer",
    reduction_precision="bf16",
    sharding_devices=8,
    recomputed_share=0.25,
    family="ResNet",
    activation_bytes_per_sample=1e6,
    master_weights=False,
    optimizer_state_bits=8.0,
    fused_loss=True,
    execution="compiled",
    pipeline_schedule="zero-bubble",
    stage_layers=(1, 1),
    busiest_expert_share=0.75,
    expert_capacity=1.25,
    adapter_rank=16,
    adapter="dora",
    document_tokens=512.0,
    devices_per_worker=2,
    encoder=Encoder(
        layers=2,
        hidden_size=64,
        attention_heads=4,
        tokens_per_sample=32,
        attended_tokens=16,
        feed_forward_size=128,
        frozen=True,
    ),
)
NETWORK = Network(
    link_bytes_per_s=1.25e9, half_duplex=False, worker_link_bytes_per_s=1e9, per_message_s=1e-4, round_trip_s=2e-4
)


def observations(*steps_per_s: float, device: str = "V100") -> Observations:
    """Runs on 1, 2, ... workers."""
    rows = len(steps_per_s)
    workers = np.arange(1, rows + 1)
    configurations = Configurations.of(
        rows, nodes=workers, workers=workers, device=device, sync_mode=SyncMode.ASYNC, parameter_servers=1
    )
    return Observations.of(configurations, np.array(steps_per_s, dtype=np.float64))


def phase_timings(compute_s: float) -> PhaseTimings:
    """One run of one worker."""
    one = {
        f.name: np.full(1, -1.0 if "variation" in f.name else 0.25)
        for f in fields(PhaseTimings)
        if f.name not in {"configurations", "steps"}
    }
    columns: dict[str, Any] = {**one, "compute_s": np.full(1, compute_s), "steps": np.full(1, 100)}
    return PhaseTimings(configurations=Configurations.of(1, nodes=1, workers=1), **columns)


def varied_configurations(rows: int, seed: int) -> Configurations:
    """Every column differs from row to row."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for f in fields(Configurations):
        if f.name not in {"devices", "precisions", "placement", "worker_groups"}:
            is_float = f.name in {"link_bytes_per_s", "hybrid_sync_fraction", "hybrid_switch_s"}
            columns[f.name] = random.random(rows) if is_float else random.integers(0, 3, rows)
    placement = Placement.of([[int(count) for count in random.integers(1, 9, row % 3)] for row in range(rows)])
    devices = ("a", "b", "c", "only in groups")
    groups = WorkerGroups.of(
        (
            [WorkerGroup(devices[-1 - row // 2 % 3], row + 1, 1.0 + each / 8) for each in range(row % 2)]
            for row in range(rows)
        ),
        devices,
    )
    return Configurations(
        devices=devices, precisions=("", "fp16", "fp8"), placement=placement, worker_groups=groups, **columns
    )


def varied_observations(rows: int, seed: int) -> Observations:
    """Every column differs from row to row."""
    random = np.random.default_rng(seed + 1)
    return Observations(
        configurations=varied_configurations(rows, seed),
        steps_per_s=random.random(rows),
        measured_at_s=1.7e9 + random.random(rows),
        steps=random.integers(0, 1000, rows),
        step_variation=random.random(rows) - 0.5,
        exposed_sync_s=random.random(rows) - 0.5,
        measured_memory_bytes=1e9 * random.random(rows),
        number=np.zeros(rows, dtype=np.int64),
    )


def varied_timings(rows: int, seed: int) -> PhaseTimings:
    """Every column differs from row to row."""
    random = np.random.default_rng(seed + 2)
    columns: dict[str, Any] = {
        f.name: random.random(rows) for f in fields(PhaseTimings) if f.name not in {"configurations", "steps"}
    }
    return PhaseTimings(
        configurations=varied_configurations(rows, seed + 3), steps=random.integers(0, 9, rows), **columns
    )


def batch(sequence_number: int, *steps_per_s: float, commit: bool = False, **content: Any) -> Batch:
    """A batch with observations."""
    if steps_per_s:
        content["observations"] = observations(*steps_per_s)
    return Batch(sequence_number=sequence_number, commit=commit, **content)


def rows_of(runs: PhaseTimings | Observations) -> list[tuple[Any, ...]]:
    """Everything in each row, by value, whatever the order of dictionaries."""
    configurations = runs.configurations
    plain = [f.name for f in fields(runs) if f.name != "configurations"]
    columns = [getattr(runs, name).tolist() for name in plain]
    shared = {"devices", "device_index", "precisions", "precision_index", "placement", "worker_groups"}
    columns += [getattr(configurations, f.name).tolist() for f in fields(configurations) if f.name not in shared]
    columns.append(configurations.device_names())
    columns.append([configurations.precisions[index] for index in configurations.precision_index.tolist()])
    placement = configurations.placement
    columns.append([() if placement is None else placement.row(row) for row in range(len(runs))])
    groups, devices = configurations.worker_groups, configurations.devices
    columns.append([() if groups is None else groups.row(row, devices) for row in range(len(runs))])
    return list(zip(*columns))


def speeds(profile: Profile) -> dict[int, float]:
    """Steps per second by number of observation."""
    return dict(zip(profile.observations.number.tolist(), profile.observations.steps_per_s.tolist()))


def without_identity(profile: Profile) -> Profile:
    """The profile as if it were inline."""
    return replace(profile, profile_id="", uid="", revision=0, digest="", create_time_s=0.0, update_time_s=0.0)


def chunk(offset_bytes: int, data: bytes, trace_id: str = "rank 0", *, last: bool = False) -> TraceChunk:
    return TraceChunk(
        trace_id=trace_id, data=data, offset_bytes=offset_bytes, last=last, format="kineto", rank=0, world_size=2
    )
