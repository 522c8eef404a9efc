"""Every fact is read: what is stated of a job, and what the catalogue holds, changes an answer of some estimator."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from serving import registry_with

from nodewise.catalogue import efficiencies, machines
from nodewise.catalogue.loading import DEVICE_FACTS, LINK_FACTS, load_catalogue
from nodewise.completion.run_estimate import RunQuestion, estimate_run
from nodewise.domain.budget import Budget
from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, Recomputation, SyncMode
from nodewise.domain.errors import NodewiseError
from nodewise.domain.objective import Objective
from nodewise.domain.profile import PhaseTimings, Profile
from nodewise.domain.workload import Encoder, Layer, Network, Transformer, Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question, Terms
from nodewise.plugin import Catalogue

DENSE: Final = Transformer(
    layers=32, hidden_size=2048, attention_heads=16, sequence_length=4096, vocabulary_size=128256, key_value_heads=8,
    feed_forward_size=7168, gated_feed_forward=True, untied_embeddings=True,
)  # fmt: skip
EXPERTS: Final = {
    "experts": 16, "experts_per_token": 4, "expert_feed_forward_size": 1024, "shared_expert_feed_forward_size": 2048,
    "expert_layers": 30,
}  # fmt: skip
LATENT: Final = {
    "key_value_latent_size": 512, "query_latent_size": 1536, "rotary_head_size": 64, "head_size": 192,
    "value_head_size": 128, "key_value_heads": 0,
}  # fmt: skip
HYBRID: Final = {
    "attention_layers": 4, "state_space_layers": 28, "state_space_size": 4096, "state_size": 128,
    "feed_forward_layers": 32,
}  # fmt: skip
ENCODER: Final = Encoder(
    layers=24, hidden_size=1024, attention_heads=16, tokens_per_sample=1152, attended_tokens=576,
    feed_forward_size=4096,
)  # fmt: skip
FOR_PEOPLE: Final = {
    ("Workload", "model_name"): "a name, which people read",
    ("Layer", "kind"): "a word, which people read: its costs are stated",
}
READ_OF_RUNS: Final = {
    ("Workload", "activation_bytes_per_sample"): "by `unseen`, where the runs that it learned from tell it as well: "
    "tests/unit/unseen/test_unseen_estimator.py::test_tensors_and_activations_count_where_runs_tell_them",
}
NOT_READ_YET: Final = frozenset[tuple[str, str]]()
"""Facts that no estimator reads yet. One that some estimator reads must be taken out: the test says so."""


def _rows(device: str = "A100-80GB", **columns: Any) -> Configurations:
    """Two nodes of eight, in two stages of two."""
    stated: dict[str, Any] = {
        "nodes": 2, "workers": 16, "sync_mode": SyncMode.ALLREDUCE, "batch_per_worker": 1, "global_batch": 64,
        "tensor_parallel": 2, "pipeline_parallel": 2, "zero_stage": 1,
        "recomputation": Recomputation.NONE, "link_bytes_per_s": 100e9,
    }  # fmt: skip
    return _with(Configurations.of(1, nodes=1, workers=1, device=device), {**stated, **columns})


def _with(rows: Configurations, columns: Mapping[str, Any]) -> Configurations:
    """One row with further columns."""
    return rows.replaced(
        **{name: (as_floats if isinstance(value, float) else as_ints)([value]) for name, value in columns.items()}
    )


def _job(**facts: Any) -> Profile:
    stated: dict[str, Any] = {
        "transformer": DENSE, "framework": "megatron-core", "optimizer": "adam", "precision": "bf16",
        "samples_per_epoch": 100_000, "epochs": 2.0,
    }  # fmt: skip
    return Profile(workload=Workload(**{**stated, **facts}))


def _timed() -> Profile:
    """A job on parameter servers whose phases were timed once."""
    one = Configurations.of(
        1, nodes=1, workers=1, sync_mode=SyncMode.ASYNC, batch_per_worker=32, parameter_servers=1, device="K80"
    )
    seconds = {"download_s": 0.05, "compute_s": 0.4, "upload_s": 0.05, "update_s": 0.02, "hidden_s": 0.0}
    return Profile(
        workload=Workload(parameter_bytes=100_000_000, tensors=100),
        network=Network(link_bytes_per_s=1.25e9),
        phase_timings=PhaseTimings(
            configurations=one, steps=as_ints([100]), compute_variation=as_floats([0.1]),
            transfer_variation=as_floats([0.1]), **{name: as_floats([value]) for name, value in seconds.items()},
        ),
    )  # fmt: skip


def _served(workers: int = 6, **columns: Any) -> Configurations:
    stated: dict[str, Any] = {"sync_mode": SyncMode.ASYNC, "batch_per_worker": 32, "parameter_servers": 2}
    return _with(Configurations.of(1, nodes=workers, workers=workers, device="K80"), {**stated, **columns})


def _layered() -> Profile:
    layers = tuple(
        Layer(
            name=f"layer {number}", kind="convolution", forward_flops_per_sample=2e9, parameter_bytes=4_000_000,
            activation_bytes_per_sample=800_000, halo_bytes_per_sample=8_000,
        )
        for number in range(8)
    )  # fmt: skip
    return Profile(workload=Workload(layers=layers, precision="fp32"), network=Network(link_bytes_per_s=1.25e9))


TRANSFORMER: Final = ("partitioning", _job(), _rows())
SERVED: Final = ("queueing", _timed(), _served())
SYNC: Final = ("queueing", _timed(), _served(sync_mode=SyncMode.SYNC))
UNSEEN: Final = (
    "unseen", Profile(workload=Workload(family="ResNet", flops_per_sample=12e9, parameter_bytes=100_000_000)),
    Configurations.of(1, nodes=1, workers=1, device="V100", sync_mode=SyncMode.ALLREDUCE, batch_per_worker=32),
)  # fmt: skip
LAYERED: Final = (
    "partitioning", _layered(),
    _with(
        Configurations.of(
            1, nodes=4, workers=4, device="Xeon-E5-2450L", sync_mode=SyncMode.ASYNC, batch_per_worker=64,
            parameter_servers=2,
        ),
        {"tensor_parallel": 2},
    ),
)  # fmt: skip
Base = tuple[str, Profile, Configurations]


@cache
def answers() -> Answers:
    return Answers(registry_with(), catalogue=load_catalogue())


def said(base: Base, by: Answers | None = None) -> tuple[object, ...]:
    """All that an answer tells, or the error in its place."""
    estimator, profile, rows = base
    try:
        found = (by or answers()).answer(
            Question(profile=profile, configurations=rows, terms=Terms(estimator=estimator))
        )
    except NodewiseError as error:
        return (str(error), *map(str, error.violations))
    return ("answered" if found.predictions.answered.all() else "refused", *map(_plain, _parts(found)))


def _parts(found: Answer) -> list[object]:
    own = found.predictions
    interval = found.interval
    return [
        found.steps_per_s, found.finish_s, found.notices,
        interval and interval.lower_steps_per_s, interval and interval.upper_steps_per_s,
        *(getattr(own, each.name) for each in fields(own)),
    ]  # fmt: skip


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, Mapping):
        return tuple((name, _plain(each)) for name, each in value.items())
    return repr(value)


def stating(base: Base, **facts: Any) -> Base:
    """A question about a job of which other facts are stated; those of its transformer and network by their names."""
    estimator, profile, rows = base
    of_workload, of_network = (
        {name: value for name, value in facts.items() if name in {each.name for each in fields(kind)}}
        for kind in (Workload, Network)
    )
    rest = facts.keys() - of_workload.keys() - of_network.keys()
    workload = replace(profile.workload, **of_workload)
    if rest:
        assert workload.transformer is not None
        shape = replace(workload.transformer, **{name: facts[name] for name in rest})
        workload = replace(workload, transformer=shape)
    found = replace(profile, workload=workload, network=replace(profile.network, **of_network))
    found = replace(found, digest=repr((workload, found.network)))
    return estimator, found, rows


def asking(base: Base, rows: Configurations) -> Base:
    return base[0], base[1], rows


ONE: Final = asking(TRANSFORMER, _rows(nodes=1, workers=8, pipeline_parallel=1, zero_stage=0))
SHARDED: Final = asking(TRANSFORMER, _rows(tensor_parallel=1, pipeline_parallel=1, zero_stage=3))
FROZEN: Final = stating(TRANSFORMER, frozen_weights_share=0.99)
MIXTURE: Final = stating(asking(TRANSFORMER, _rows(expert_parallel=4)), **EXPERTS)
FULL: Final = asking(TRANSFORMER, _rows(recomputation=Recomputation.FULL))

WORKLOAD: Final[dict[str, tuple[Base, Any]]] = {
    "parameter_bytes": (asking(SERVED, _served(link_bytes_per_s=1e7)), 400_000_000),
    "tensors": (stating(SERVED, per_message_s=1e-4), 400),
    "flops_per_sample": (UNSEEN, 24e9),
    "samples_per_epoch": (TRANSFORMER, 200_000),
    "epochs": (TRANSFORMER, 3.0),
    "transformer": (TRANSFORMER, replace(DENSE, layers=64)),
    "layers": (LAYERED, LAYERED[1].workload.layers[:6] if LAYERED[1].workload.layers else ()),
    "framework": (TRANSFORMER, "pytorch"),
    "optimizer": (TRANSFORMER, "sgd"),
    "precision": (TRANSFORMER, "fp32"),
    "shard_bytes": (SERVED, (90_000_000, 10_000_000)),
    "shard_tensors": (stating(SERVED, per_message_s=1e-3), (95, 5)),
    "dropout": (stating(TRANSFORMER, framework="megatron-lm"), False),
    "frozen_weights_share": (TRANSFORMER, 0.9),
    "frozen_weight_bits": (FROZEN, 4.0),
    "offload": (TRANSFORMER, "optimizer"),
    "reduction_precision": (TRANSFORMER, "bf16"),
    "sharding_devices": (SHARDED, 8),
    "recomputed_share": (FULL, 0.5),
    "family": (UNSEEN, "VGG"),
    "master_weights": (TRANSFORMER, False),
    "optimizer_state_bits": (TRANSFORMER, 8.0),
    "fused_loss": (stating(ONE, framework="pytorch"), True),
    "execution": (stating(ONE, framework="pytorch", hidden_size=512, head_size=16), "graphs"),
    "pipeline_schedule": (TRANSFORMER, "gpipe"),
    "stage_layers": (TRANSFORMER, (20, 12)),
    "busiest_expert_share": (MIXTURE, 0.2),
    "expert_capacity": (stating(MIXTURE, busiest_expert_share=0.2), 1.0),
    "adapter_rank": (FROZEN, 64),
    "adapter": (stating(FROZEN, adapter_rank=64), "dora"),
    "document_tokens": (TRANSFORMER, 512.0),
    "devices_per_worker": (asking(SYNC, _served(16, nodes=2, sync_mode=SyncMode.SYNC)), 8),
    "encoder": (TRANSFORMER, ENCODER),
}
"""Of each fact of a workload a job for which it matters, and another value."""
SHAPE: Final[dict[str, tuple[Base, Any]]] = {
    "layers": (TRANSFORMER, 64),
    "hidden_size": (TRANSFORMER, 1024),
    "attention_heads": (TRANSFORMER, 32),
    "sequence_length": (TRANSFORMER, 8192),
    "vocabulary_size": (TRANSFORMER, 32000),
    "key_value_heads": (TRANSFORMER, 4),
    "feed_forward_size": (TRANSFORMER, 8192),
    "head_size": (TRANSFORMER, 64),
    "gated_feed_forward": (TRANSFORMER, False),
    "untied_embeddings": (ONE, False),
    "experts": (MIXTURE, 32),
    "experts_per_token": (MIXTURE, 8),
    "expert_feed_forward_size": (MIXTURE, 512),
    "shared_expert_feed_forward_size": (MIXTURE, 8192),
    "expert_layers": (MIXTURE, 16),
    **{name: (stating(TRANSFORMER, **LATENT), LATENT[name] // 2) for name in LATENT if name.endswith("size")},
    "attention_window": (TRANSFORMER, 512),
    "windowed_layers": (stating(TRANSFORMER, attention_window=512), 16),
    **{name: (stating(TRANSFORMER, **HYBRID), value // 2) for name, value in HYBRID.items()},
}
NETWORK: Final[dict[str, tuple[Base, Any]]] = {
    "link_bytes_per_s": (SERVED, 1e8),
    "half_duplex": (stating(SERVED, link_bytes_per_s=1e8), True),
    "worker_link_bytes_per_s": (LAYERED, 2e6),
    "per_message_s": (SERVED, 1e-2),
    "round_trip_s": (LAYERED, 1e-1),
}
IN_ENCODER: Final[dict[str, Any]] = {
    "layers": 48, "hidden_size": 2048, "attention_heads": 8, "tokens_per_sample": 2304, "attended_tokens": 1152,
    "feed_forward_size": 8192, "frozen": True,
}  # fmt: skip
IN_LAYER: Final[dict[str, Any]] = {
    "name": "other", "forward_flops_per_sample": 8e9, "parameter_bytes": 40_000_000,
    "activation_bytes_per_sample": 8_000_000, "halo_bytes_per_sample": 400_000,
}  # fmt: skip


def _layers_with(name: str, value: Any) -> Base:
    layers = LAYERED[1].workload.layers or ()
    return stating(LAYERED, layers=tuple(replace(layer, **{name: value}) for layer in layers))


def _of_weights() -> Base:
    """Layers whose weights take longest, over a link that takes no time."""
    layers = LAYERED[1].workload.layers or ()
    light = {"forward_flops_per_sample": 1e6, "activation_bytes_per_sample": 8e3, "halo_bytes_per_sample": None}
    return stating(LAYERED, layers=tuple(replace(layer, **light) for layer in layers), link_bytes_per_s=1e13)


WEIGHTS: Final = _of_weights()
PAIRS: Final[dict[tuple[str, str], tuple[Base, Base]]] = {
    **{("Workload", name): (base, stating(base, **{name: value})) for name, (base, value) in WORKLOAD.items()},
    **{
        ("Transformer", name): (
            base, stating(base, transformer=replace(base[1].workload.transformer or DENSE, **{name: value}))
        )
        for name, (base, value) in SHAPE.items()
    },
    **{("Network", name): (base, stating(base, **{name: value})) for name, (base, value) in NETWORK.items()},
    **{
        ("Encoder", name): (
            stating(TRANSFORMER, encoder=ENCODER),
            stating(TRANSFORMER, encoder=replace(ENCODER, **{name: value})),
        )
        for name, value in IN_ENCODER.items()
    },
    **{("Layer", name): (LAYERED, _layers_with(name, value)) for name, value in IN_LAYER.items()},
}  # fmt: skip


def test_every_fact_of_a_job_is_tried() -> None:
    known = {
        (kind.__name__, each.name) for kind in (Workload, Transformer, Network, Encoder, Layer) for each in fields(kind)
    }
    assert known == PAIRS.keys() | FOR_PEOPLE.keys() | READ_OF_RUNS.keys()


@pytest.mark.parametrize("fact", PAIRS, ids=".".join)
def test_a_fact_of_a_job_changes_an_answer(fact: tuple[str, str]) -> None:
    before, after = PAIRS[fact]
    assert said(before)[0] == "answered", said(before)
    assert (said(before) != said(after)) == (fact not in NOT_READ_YET)


@pytest.mark.parametrize("fact", FOR_PEOPLE, ids=".".join)
def test_what_people_read_changes_none(fact: tuple[str, str]) -> None:
    kind, name = fact
    after = _layers_with(name, "other") if kind == "Layer" else stating(LAYERED, **{name: "other"})
    assert said(LAYERED) == said(after)


# --- the catalogue


@cache
def shipped() -> dict[str, dict[str, Any]]:
    """The entries of the shipped files."""
    folder = resources.files("nodewise.catalogue")
    text = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("facts.toml", "machines.toml"))
    return tomllib.loads(text)


def changed(folder: Path, section: str, entry: str, **facts: Any) -> Catalogue:
    """The shipped catalogue with other facts of one entry; None takes a fact away."""
    held = {name: value for name, value in {**shipped()[section][entry], **facts}.items() if value is not None}
    lines = [f"{name} = {json.dumps(value)}" for name, value in held.items()]
    path = folder / "own.toml"
    path.write_text("\n".join([f"[{section}.{json.dumps(entry)}]", *lines]), encoding="utf-8")
    return load_catalogue(path)


def on(device: str, precision: str = "bf16", **columns: Any) -> Base:
    estimator, profile, _ = stating(TRANSFORMER, precision=precision)
    return estimator, profile, _rows(device, **columns)


UNLINKED: Final[dict[str, Any]] = {"link_bytes_per_s": 0.0}
OVER_TRAYS: Final[dict[str, Any]] = {
    "nodes": 8, "workers": 32, "tensor_parallel": 8, "pipeline_parallel": 1, "global_batch": 64
}  # fmt: skip
H100: Final = "H100"
OF_DEVICE: Final[dict[str, tuple[Base, str, Any]]] = {
    **{
        f"{name}_flops_per_s": (on("B200", name), "B200", 5e13)
        for name in ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
    },
    "memory_bytes": (on("A100-80GB"), "A100-80GB", 30e9),
    "memory_bytes_per_s": (on("A100-80GB"), "A100-80GB", 1e12),
    "devices_per_node": (on("GB200", **OVER_TRAYS), "GB200", 16),
    "link_domain_devices": (on("GB200", **OVER_TRAYS), "GB200", 8),
    "announced_year": (stating(on("V100-32GB", "fp16"), framework=None), "V100-32GB", 2023),
    "share_of_name": (on("H100"), "H100-96GB", 0.9),
    "cores": (LAYERED, "Xeon-E5-2450L", 4),
    "last_level_cache_bytes": (WEIGHTS, "Xeon-E5-2450L", 1e5),
    "intra_node_link": (on("A100-80GB"), "A100-80GB", "PCIe3"),
}  # fmt: skip
"""Of each fact of a device a question for which it matters, an entry and another value."""
OF_POWER: Final = {
    "power_limit_watts": ("H100", 500.0),
    "idle_watts": ("A40", 20.0),
    "transformer_watts": ("A40", 200.0),
}
"""Of each fact of a device that only the card of a run reads an entry and another value."""
OF_MACHINE: Final[dict[str, tuple[Base, str, Any]]] = {
    "devices": (on("H200", **UNLINKED), "p5.48xlarge", ["H200"]),
    "devices_per_node": (
        ("partitioning", stating(TRANSFORMER)[1], _rows("p4d", workers=0, link_bytes_per_s=0.0)), "p4d.24xlarge", 4
    ),
    "node_link_bytes_per_s": (on("a3-mega", **UNLINKED), "a3-megagpu-8g", 5e9),
    "weight": (on("H100", **UNLINKED), "a3-highgpu-8g", 100.0),
    "aliases": (on("p5", **UNLINKED), "p5.48xlarge", ["other"]),
}  # fmt: skip
OF_KERNELS: Final[dict[str, Any]] = {
    "matrix_share": 0.3, "head_sizes": [160, 192, 256, 512],
    "attention_shares": [0.1, 0.1, 0.1, 0.1],
}  # fmt: skip


def test_every_fact_of_the_catalogue_is_tried() -> None:
    assert {*DEVICE_FACTS, "intra_node_link"} == OF_DEVICE.keys() | OF_POWER.keys()
    assert {*machines.FIELDS} - {"source"} == OF_MACHINE.keys()
    assert LINK_FACTS == ("bytes_per_s",)
    assert {*efficiencies.FIELDS} - {"device", "precision", "source"} == OF_KERNELS.keys()


@pytest.mark.parametrize("fact", OF_DEVICE)
def test_a_fact_of_a_device_changes_an_answer(fact: str, tmp_path: Path) -> None:
    base, entry, value = OF_DEVICE[fact]
    assert fact in shipped()["devices"][entry]
    assert differ(base, load_catalogue(), changed(tmp_path, "devices", entry, **{fact: value}))


@pytest.mark.parametrize("fact", OF_POWER)
def test_a_fact_of_power_changes_a_card(fact: str, tmp_path: Path) -> None:
    entry, value = OF_POWER[fact]
    assert fact in shipped()["devices"][entry]
    registry, (_, profile, rows) = registry_with(), on(entry)
    run = RunQuestion(
        question=Question(profile=profile, configurations=rows), objective=Objective(remaining_samples=1e6), runs=10
    )
    before, after = (
        estimate_run(Answers(registry, catalogue=each), run, Budget()).energy
        for each in (load_catalogue(), changed(tmp_path, "devices", entry, **{fact: value}))
    )
    assert before is not None
    assert before != after


@pytest.mark.parametrize("fact", OF_MACHINE)
def test_a_fact_of_a_machine_changes_an_answer(fact: str, tmp_path: Path) -> None:
    base, entry, value = OF_MACHINE[fact]
    assert differ(base, load_catalogue(), changed(tmp_path, "machines", entry, **{fact: value}))


@pytest.mark.parametrize("fact", OF_KERNELS)
def test_a_fact_of_kernels_changes_an_answer(fact: str, tmp_path: Path) -> None:
    other = changed(tmp_path, "efficiencies", "B200 bf16", **{fact: OF_KERNELS[fact]})
    assert differ(on("B200"), load_catalogue(), other)


def test_links_of_a_node_change_an_answer(tmp_path: Path) -> None:
    slower = changed(tmp_path, "links", "NVLink3", bytes_per_s=1e9)
    assert differ(on("A100-80GB"), load_catalogue(), slower)


def differ(base: Base, first: Catalogue, second: Catalogue) -> bool:
    registry = registry_with()
    before, after = (said(base, Answers(registry, catalogue=each)) for each in (first, second))
    assert before[0] == "answered", before
    return before != after
