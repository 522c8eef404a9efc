"""Score the estimator `partitioning` on published runs: `score_partitioning.py DATA [--fit]`.

DATA holds `measurements/vtrain_a100_*.csv` and `plan/*.csv`. Printed are the errors with the shipped numbers, with
numbers fitted while whole model shapes are left out in turn, with eight runs for calibration, and comparisons with
published tables that took no part in the fit. `--fit` prints the numbers of the joint fit instead: the defaults are
these, rounded to two digits.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from compare_modern import modern
from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.errors import Refusal
from nodewise_partitioning.calibration import Runs, calibrate
from nodewise_partitioning.estimator import OTHER_WIDENED
from nodewise_partitioning.hardware import Device, device_of
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import FIELDS, Software, stack_of
from nodewise_partitioning.step import step_parts_s
from nodewise_partitioning.workload import Dimensions

CATALOGUE: Final = load_catalogue()
FIRST: Final = replace(
    Software(),
    gemm_efficiency=0.75,
    gemm_ramp_s=5e-5,
    attention_efficiency=0.75,
    replicated_passes=3.0,
    feed_forward_passes=1.5,
    score_passes=5.0,
    host_layer_s=3.4e-3,
    host_collective_s=2e-5,
    unfused_softmax_s=1e-3,
    tensor_collective_factor=1.0,
    head_passes=16.0,
    head_host_s=1e-3,
    embedding_host_s=3e-4,
    optimizer_bytes=28.0,
    replica_link_efficiency=0.75,
    stage_link_efficiency=0.083,
    network_efficiency=0.5,
    network_tensor_efficiency=0.75,
    fixed_s=1e-3,
)
"""First guesses: what kernels are known to read and write, to launch and to reach of a peak, in round numbers."""
WIDENED: Final = 5.0
FIT_NOISE: Final = 0.05
"""The joint fit moves numbers further from first guesses than a calibration does from its outcome."""
SINGLE_NODE_WEIGHT: Final = 0.1
"""One of 720 rows of the single-node table beside one of 73 of the multi-node table: both tables count alike."""
SELENE_BYTES_PER_S: Final = 200e9
"""Adapters of a node of Selene, where the Megatron papers measured: eight HDR ports (D. Narayanan et al., SC 2021)."""


@dataclass(frozen=True, slots=True)
class Job:
    """Runs of one model shape, and the decision that each belongs to."""

    runs: Runs
    decision: tuple[str, ...]


def read(path: Path) -> list[Job]:
    """A table of measurements by model shape."""
    shapes: dict[tuple[float, ...], list[dict[str, str]]] = {}
    names = ("layers", "hidden_size", "attention_heads", "sequence_length", "vocabulary_size")
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            shapes.setdefault(tuple(float(row[name]) for name in names), []).append(row)
    return [_job(shape, rows) for shape, rows in sorted(shapes.items())]


def _job(shape: tuple[float, ...], rows: Sequence[Mapping[str, str]]) -> Job:
    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([float(row[name]) for row in rows])

    data, batch, workers = column("data_parallel"), column("micro_batch"), column("workers")
    layout = Layout.of(
        len(rows),
        tensor=column("tensor_parallel"),
        pipeline=column("pipeline_parallel"),
        data=data,
        micro_batch=batch,
        micro_batches=column("global_batch") / (data * batch),
        devices=workers,
        devices_per_node=np.ceil(workers / column("nodes")),
        node_link_bytes_per_s=100e9,
    )
    runs = Runs(dimensions(*shape), layout, device("A100"), 1.0 / column("steps_per_s"))
    return Job(runs, tuple(row["job"] for row in rows))


def dimensions(layers: float, hidden: float, heads: float, sequence: float, vocabulary: float) -> Dimensions:
    """A dense transformer whose feed-forward layer is four times as wide."""
    return Dimensions(
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        key_value_heads=heads,
        sequence=sequence,
        vocabulary=vocabulary,
        feed_forward=4.0 * hidden,
    )


def device(name: str, number_format: str = "fp16") -> Device:
    """A device of the shipped catalogue."""
    found = device_of(CATALOGUE, name, number_format)
    if isinstance(found, Refusal):
        raise SystemExit(found.message)
    return found


def predicted(software: Software, runs: Runs) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Step seconds of some runs."""
    return np.asarray(step_parts_s(runs.dimensions, runs.layout, runs.device, software).sum(axis=0))


def told(name: str, software: Mapping[int, Software] | Software, jobs: Sequence[Job]) -> None:
    """Print errors and regret over some jobs, each under its own numbers if there are several."""
    errors, regrets, hits = [], [], 0
    for number, job in enumerate(jobs):
        own = software if isinstance(software, Software) else software[number]
        step_s = predicted(own, job.runs)
        errors.append(step_s / job.runs.step_s - 1.0)
        for decision in sorted(set(job.decision)):
            rows = np.flatnonzero(np.array(job.decision) == decision)
            measured = job.runs.step_s[rows]
            regret = 1.0 - measured.min() / measured[np.argmin(step_s[rows])]
            regrets.append(regret)
            hits += int(regret == 0.0)
    error = np.concatenate(errors)
    size = np.abs(error)
    print(
        f"{name:46s} {len(error):4d} rows  step_mape {size.mean():6.1%}  median {np.median(size):6.1%}  "
        f"p90 {np.quantile(size, 0.9):6.1%}  max {size.max():6.1%}  bias {error.mean():+6.1%}  "
        f"regret {np.mean(regrets):5.1%} (max {max(regrets):5.1%}, {hits}/{len(regrets)} best)"
    )


def fitted(jobs: Iterable[Job]) -> Software:
    """Numbers of a joint fit; single-node jobs weigh less."""
    runs = [
        replace(job.runs, weight=SINGLE_NODE_WEIGHT if job.runs.layout.devices.max() <= 8.0 else 1.0) for job in jobs
    ]
    return calibrate(FIRST, runs, widened=WIDENED, noise=FIT_NOISE).software


def tables(single: list[Job], multi: list[Job], chosen: list[Job]) -> None:
    """Both tables: as shipped, with shapes left out, and calibrated."""
    shipped = Software()
    told("multi-node, shipped numbers", shipped, multi)
    told("single-node, shipped numbers", shipped, single)
    for name, own, others in (("multi-node", multi, single), ("single-node", single, multi)):
        for what, place in (("shape", None), ("hidden size", 1)):
            left = {}
            for number, job in enumerate(own):
                mine = _key(job, place)
                left[number] = fitted([*others, *(each for each in own if _key(each, place) != mine)])
            told(f"{name}, fitted without the {what}", left, own)
        told(f"{name}, fitted without the table", fitted(others), own)
    corrected = calibrate(shipped, [job.runs for job in chosen])
    told("single-node, shipped and calibrated on 8 runs", corrected.software, single)
    print(f"  the eight runs say nothing of: {', '.join(corrected.unidentified)}")


def _key(job: Job, place: int | None) -> tuple[float, ...]:
    shape = (job.runs.dimensions.layers, job.runs.dimensions.hidden_size)
    return shape if place is None else (shape[place],)


def korthikanti() -> None:
    """V. Korthikanti et al., MLSys 2023, table 5: full recomputation, and selective with sequence parallelism."""
    software, _ = stack_of("megatron-lm", "fp16")
    errors = []
    print("Korthikanti table 5 (A100-80GB, Megatron-LM): measured, predicted, error")
    for name, layers, hidden, heads, p, v, b, batch, *seconds in (
        ("22B", 48, 6144, 64, 1, 1, 4, 4, 1.42, 1.10),
        ("175B", 96, 12288, 96, 8, 3, 1, 64, 18.13, 13.75),
        ("530B", 105, 20480, 128, 35, 3, 1, 280, 49.05, 37.83),
        ("1T", 128, 25600, 160, 64, 1, 1, 512, 94.42, 71.49),
    ):
        layout = Layout.of(
            2,
            tensor=8.0,
            pipeline=p,
            interleave=v,
            micro_batch=b,
            micro_batches=batch / b,
            devices=8.0 * p,
            node_link_bytes_per_s=SELENE_BYTES_PER_S,
            recomputation=np.array([3.0, 2.0]),
            sequence_parallel=np.array([0.0, 1.0]),
        )
        model = dimensions(layers, hidden, heads, 2048, 51200)
        step_s = step_parts_s(model, layout, device("A100-80GB"), software).sum(axis=0)
        for mode, measured, found in zip(("full", "selective"), seconds, step_s, strict=True):
            errors.append(found / measured - 1.0)
            print(f"  {name:5s} {mode:9s} {measured:6.2f} s {found:6.2f} s {errors[-1]:+6.1%}")
    print(f"  mean {np.mean(np.abs(errors)):.1%}, max {np.max(np.abs(errors)):.1%}")


def narayanan(path: Path) -> None:
    """D. Narayanan et al., SC 2021, table 2: days for 300 billion tokens."""
    print("Megatron SC'21 table 2 (A100-80GB): days measured, predicted, error")
    for row in _listed(path):
        layers, hidden, heads = {"175B": (96, 12288, 96), "530B": (105, 20480, 128)}[row["model"]]
        gpus, batch = float(row["gpus"]), float(row["global_batch"])
        t, p, split = float(row["tp"]), float(row["pp"]), row["scheme"] != "PTD"
        d = gpus / (t * p)
        b = batch / d if split else 1.0
        layout = Layout.of(
            1,
            tensor=t,
            pipeline=p,
            data=d,
            micro_batch=b,
            micro_batches=batch / (d * b),
            devices=gpus,
            node_link_bytes_per_s=SELENE_BYTES_PER_S,
            zero_stage=3.0 if split else 0.0,
        )
        software, _ = stack_of("megatron-deepspeed" if split else "megatron-lm", "fp16")
        model = dimensions(layers, hidden, heads, 2048, 51200)
        step_s = float(step_parts_s(model, layout, device("A100-80GB"), software).sum())
        days = step_s * 300e9 / (batch * 2048.0) / 86400.0
        measured = float(row["days_for_300B_tokens"])
        print(
            f"  {row['model']} {row['scheme']:6s} {gpus:5.0f} {measured:5.0f} {days:6.1f} {days / measured - 1.0:+6.1%}"
        )


def megatron_turing(path: Path) -> None:
    """S. Smith et al., 2022: Megatron-Turing NLG 530B, t = 8, p = 35."""
    print("MT-NLG 530B: seconds measured, predicted, and scaled from the first")
    model, first = dimensions(105, 20480, 128, 2048, 51200), 1.0
    for row in _listed(path):
        gpus, batch = float(row["gpus"]), float(row["global_batch"])
        d = gpus / 280.0
        layout = Layout.of(
            1,
            tensor=8.0,
            pipeline=35.0,
            data=d,
            micro_batches=batch / d,
            devices=gpus,
            node_link_bytes_per_s=SELENE_BYTES_PER_S,
        )
        step_s = float(step_parts_s(model, layout, device("A100"), Software()).sum())
        measured = float(row["paper_iter_s"])
        first = measured / step_s if gpus == 2240.0 else first
        print(f"  {gpus:5.0f} {measured:5.1f} {step_s:5.1f} {first * step_s:5.1f}")


def bert_large() -> None:
    """NVIDIA DeepLearningExamples, BERT-large, first phase (128 tokens), A100-80GB: sequences per second."""
    software, _ = stack_of("pytorch", "fp16")
    model = dimensions(24, 1024, 16, 128, 30522)
    print("BERT-large, global batch 65,536, 256 per device: scaling efficiency measured, predicted")
    measured = (4553.0, 9191.0, 18119.0, 35774.0, 70555.0, 138294.0)
    found: list[float] = []
    for nodes, rate in zip((1.0, 2.0, 4.0, 8.0, 16.0, 32.0), measured, strict=True):
        layout = Layout.of(
            1,
            data=8.0 * nodes,
            micro_batch=256.0,
            micro_batches=32.0 / nodes,
            devices=8.0 * nodes,
            node_link_bytes_per_s=SELENE_BYTES_PER_S,
            recomputation=1.0,
        )
        found.append(65536.0 / float(step_parts_s(model, layout, device("A100-80GB"), software).sum()))
        print(f"  {nodes:3.0f} nodes {rate / (nodes * measured[0]):5.1%} {found[-1] / (nodes * found[0]):5.1%}")
    print(f"  level at one node: {measured[0]:.0f} measured, {found[0]:.0f} predicted")


NEUSIGHT: Final = {
    "bert_large": (24, 1024, 16, 30522),
    "gpt2_large": (36, 1280, 20, 50257),
    "gpt3_27": (32, 2560, 32, 50257),
    "opt_13": (24, 2048, 32, 50272),
}
"""Layers, hidden size, heads and vocabulary of its models, as their papers say. GPT-3 XL is left out:
24 heads of 128 make no hidden size of 2048, and the rows do not tell which of them was changed."""


def neusight(path: Path) -> None:
    """S. Lee et al., ASPLOS 2025: plain FP32 training; four GPUs after a calibration on one GPU of the kind."""
    rows = [row for row in _listed(path) if row["mode"] == "train" and row["model"] in NEUSIGHT]
    software = stack_of("pytorch", "fp32")[0]
    for one, four, name in (
        ("NVIDIA_A100_80GB_PCIe", "NVIDIA_A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA_H100_80GB_HBM3", "NVIDIA_H100_80GB_HBM3", "H100"),
    ):
        single = [_neusight(row, name) for row in rows if row["device"] == one and not row["option"]]
        several = [row for row in rows if row["device"] == four and row["option"]]
        corrected = calibrate(software, single, widened=OTHER_WIDENED).software
        plain = [predicted(software, runs)[0] / runs.step_s[0] - 1.0 for runs in single]
        print(f"NeuSight {name}: {len(single)} single-GPU runs uncalibrated {np.mean(np.abs(plain)):.1%}")
        for row in several:
            runs = _neusight(row, name)
            measured = runs.step_s[0]
            before, after = predicted(software, runs)[0], predicted(corrected, runs)[0]
            print(
                f"  {row['model']:10s} {row['option']:6s} batch {row['batch']:>2s} {measured:6.3f} s  "
                f"uncalibrated {before:6.3f} s {before / measured - 1.0:+6.1%}  "
                f"calibrated {after:6.3f} s {after / measured - 1.0:+6.1%}"
            )


def _neusight(row: Mapping[str, str], name: str) -> Runs:
    layers, hidden, heads, words = NEUSIGHT[row["model"]]
    batch, option = float(row["batch"]), row["option"]
    degrees = {"dp4": {"data": 4.0}, "tp4": {"tensor": 4.0}, "pp4_1": {"pipeline": 4.0}}.get(option, {})
    layout = Layout.of(
        1,
        micro_batch=batch / degrees.get("data", 1.0),
        devices=4.0 if degrees else 1.0,
        devices_per_node=4.0,
        recomputation=1.0,
        **degrees,
    )
    model = dimensions(layers, hidden, heads, float(row["seqlen"]), words)
    return Runs(model, layout, device(name, "fp32"), np.array([float(row["e2e_latency"]) * 1e-3]))


def _listed(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def main(arguments: Sequence[str]) -> None:
    """Print what was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--fit", action="store_true")
    asked = parser.parse_args(arguments)
    measurements, plan = asked.data / "measurements", asked.data / "plan"
    single, multi = (read(measurements / f"vtrain_a100_{name}.csv") for name in ("single_node", "multi_node"))
    if asked.fit:
        found = fitted([*multi, *single])
        for (name, field), value in zip(FIELDS.items(), found.vector(), strict=True):
            print(f"{name:28s} {value:.3g} {field.unit}")
        return
    tables(single, multi, read(measurements / "vtrain_a100_calibration_8_rows.csv"))
    korthikanti()
    narayanan(plan / "megatron_sc21_table2_ptd_vs_zero3.csv")
    megatron_turing(plan / "mtnlg_530b_iter_time.csv")
    bert_large()
    neusight(plan / "neusight_measured_latency.csv")
    modern()


if __name__ == "__main__":
    main(sys.argv[1:])
