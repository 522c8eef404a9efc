"""Score `nodewise_unseen` on published steps of one worker: `NODEWISE_DATA=... score_unseen.py`.

CM-DARE's CNNs with each model left out on all devices, each device and each family left out; NeuSight's transformers on
modern devices with each device and each model left out; how sure the order is; how fast ten thousand are answered; what
`auto` answers with and without it.
"""

from __future__ import annotations

import csv
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from scipy.stats import kendalltau

from nodewise.catalogue.loading import load_catalogue
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.ranking import expected_kendall, faster_probability
from nodewise.estimation.question import Question
from nodewise.hosting.registry import Registry, load_registry
from nodewise.plugin import Configurations, NodewiseError, Observations, Prior, Profile, Workload
from nodewise_unseen.columns import StepFacts, StepRuns
from nodewise_unseen.corpus import SHIPPED_BATCH, shipped_runs
from nodewise_unseen.steps import Row, learn_steps

TRANSFORMERS: Final = {
    "bert_large": (24, 1024, 512, 30522),
    "gpt2_large": (36, 1280, 1024, 50257),
    "gpt3_xl": (24, 2048, 2048, 50257),
    "gpt3_27": (32, 2560, 2048, 50257),
    "opt_13": (24, 2048, 2048, 50272),
}
"""Layers, hidden size, sequence, vocabulary, as the models' papers have them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One measured step."""

    model: str
    family: str
    flops: float
    device: str
    peak: float
    seconds: float


def cmdare_steps(path: Path) -> list[Step]:
    """CNNs on CIFAR-10, two families by their names."""
    with path.open(newline="") as file:
        return [
            Step(
                row["model"],
                "Shake-Shake" if row["model"].startswith("shake") else "ResNet",
                float(row["model_flops"]),
                row["gpu"],
                float(row["gpu_tflops_fp32"]) * 1e12,
                float(row["step_time_mean_s"]),
            )
            for row in csv.DictReader(file)
        ]


def neusight_steps(folder: Path) -> list[Step]:
    """Dense transformers of one device, without fusion; training and inference are families."""
    with (folder / "neusight_device_configs.csv").open(newline="") as file:
        peaks: dict[str, float] = {}
        for row in csv.DictReader(file):
            name = re.sub(r"[ -]", "_", row["Device"])
            peaks.setdefault(name, 1e9 * float(row["SingleFLOPs"] or row["SingleFLOPsVEC"]))
    steps = []
    with (folder / "neusight_measured_latency.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            device = re.sub(r"[ -]", "_", row["device"])
            if row["option"] or row["model"] not in TRANSFORMERS or device not in peaks:
                continue
            layers, hidden, sequence, vocabulary = TRANSFORMERS[row["model"]]
            forward = layers * (24 * hidden**2 + 4 * sequence * hidden) + 2 * hidden * vocabulary
            flops = forward * sequence * int(row["batch"]) * (3 if row["mode"] == "train" else 1)
            milliseconds = float(row["e2e_latency"])
            steps.append(Step(row["model"], row["mode"], flops, device, peaks[device], milliseconds / 1e3))
    return steps


def columns(steps: Sequence[Step]) -> StepFacts:
    """Facts of each step."""
    return StepFacts(flops=np.array([step.flops for step in steps]), families=[step.family for step in steps])


def runs(steps: Sequence[Step]) -> StepRuns:
    """Steps as runs."""
    return StepRuns(
        facts=columns(steps),
        devices=[step.device for step in steps],
        peak_flops=np.array([step.peak for step in steps]),
        step_seconds=np.array([step.seconds for step in steps]),
    )


def left_out(steps: Sequence[Step], what: str) -> list[tuple[Step, float, float, float, int]]:
    """Every step, predicted without those that share `what` with it: seconds, range, and which kind of row it is."""
    told = []
    for value in dict.fromkeys(getattr(step, what) for step in steps):
        law = learn_steps(runs([step for step in steps if getattr(step, what) != value]))
        left = [step for step in steps if getattr(step, what) == value]
        assert law is not None
        for step in left:
            found = law.predict(columns([step]), step.device, step.peak)
            told.append((step, found.seconds[0], found.low[0], found.high[0], int(found.rows[0])))
    return told


def scores(told: Sequence[tuple[Step, float, float, float, int]]) -> dict[str, float]:
    """Mean and largest error, Kendall's tau and coverage of answered rows; widths as ln(high / low)."""
    answered = [row for row in told if row[4] != Row.REFUSED]
    measured = np.array([row[0].seconds for row in answered])
    seconds, low, high = (np.array([row[part] for row in answered]) for part in (1, 2, 3))
    error = np.abs(seconds / measured - 1)
    return {
        "n": len(answered),
        "refused": len(told) - len(answered),
        "error": 100 * float(error.mean()),
        "worst": 100 * float(error.max()),
        "kendall": float(kendalltau(seconds, measured)[0]),
        "coverage": 100 * float(np.mean((measured >= low) & (measured <= high))),
        "width": float(np.mean(np.log(high / low))),
    }


def order(steps: Sequence[Step]) -> tuple[float, float, float, float]:
    """Every third model out: expected and true tau; of pairs less sure than 95 %, mean probability and share right."""
    models = list(dict.fromkeys(step.model for step in steps))
    expected, true, sure, right = [], [], [], []
    for fold in range(3):
        out = set(models[fold::3])
        law = learn_steps(runs([step for step in steps if step.model not in out]))
        assert law is not None
        for device in dict.fromkeys(step.device for step in steps):
            left = [step for step in steps if step.model in out and step.device == device]
            told = law.predict(columns(left), device, left[0].peak)
            measured = np.array([step.seconds for step in left])
            errors = np.log(told.seconds), told.shared, told.own
            expected.append(expected_kendall(*errors))
            true.append(kendalltau(told.seconds, measured)[0])
            first, second = np.triu_indices(len(left), 1)
            faster = faster_probability(*errors, first, second)
            sure.append(np.maximum(faster, 1 - faster))
            right.append((faster > 0.5) == (measured[first] < measured[second]))
    confidence, was_right = np.concatenate(sure), np.concatenate(right)
    doubtful = confidence < 0.95
    return (
        float(np.mean(np.array(expected))),
        float(np.mean(true)),
        confidence[doubtful].mean(),
        was_right[doubtful].mean(),
    )


def by_auto(registry: Registry, own: str | None) -> dict[str, tuple[float, set[str]]]:
    """Mean error and who answered on each device, every model of the shipped table left out; `own`: where it ran."""

    def asked(device: str) -> Configurations:
        return Configurations.of(1, nodes=1, workers=1, batch_per_worker=SHIPPED_BATCH, device=device, sync_mode=3)

    runs, found = shipped_runs(), dict[str, list[tuple[float, str]]]()
    for flops in sorted({run.flops for run in runs}):
        left = tuple(run for run in runs if run.flops != flops)
        priors = {"unseen": Prior.of("unseen", [flops], sources=(), content=left)}
        answers = Answers(registry, catalogue=load_catalogue(), priors=priors)
        mine = {run.device: run for run in runs if run.flops == flops}
        workload = Workload(family=mine["K80"].family, flops_per_sample=flops / SHIPPED_BATCH)
        observed = Observations.none()
        if own is not None:
            observed = Observations.of(asked(own), np.array([1.0 / mine[own].seconds]))
        for device, run in mine.items():
            profile = Profile(workload=workload, observations=observed)
            try:
                told = answers.answer(Question(profile=profile, configurations=asked(device)))
            except NodewiseError:
                found.setdefault(device, []).append((np.nan, "nobody"))
                continue
            error = abs(float(told.predictions.step_s[0]) / run.seconds - 1.0)
            found.setdefault(device, []).append((error, told.basis.estimator))
    return {
        device: (100.0 * float(np.mean([error for error, _ in each])), {name for _, name in each})
        for device, each in found.items()
    }


def main() -> None:
    """Print it all."""
    whole = load_registry()
    without = replace(whole, estimators={name: each for name, each in whole.estimators.items() if name != "unseen"})
    for own in (None, "K80", "P100"):
        for name, registry in (("with unseen", whole), ("without", without)):
            print(f"auto {name}, own run on {own}:", by_auto(registry, own))
    data = Path(os.environ["NODEWISE_DATA"])
    tables = {
        "CM-DARE": cmdare_steps(data / "transient" / "cmdare_single_worker_step_time.csv"),
        "NeuSight": neusight_steps(data / "plan"),
    }
    for name, steps in tables.items():
        for what in ("model", "device", "family"):
            if name == "NeuSight" and what == "family":
                continue
            told = left_out(steps, what)
            print(name, f"{what} out", {key: round(value, 3) for key, value in scores(told).items()})
            for device in dict.fromkeys(step.device for step in steps):
                part = [row for row in told if row[0].device == device]
                print("   ", device, {key: round(value, 3) for key, value in scores(part).items()})
    expected, true, sure, right = order(tables["CM-DARE"])
    print(f"order, every third model out: tau expected {expected:.3f}, true {true:.3f}; pairs less sure than 95 %:")
    print(f"  said to be right with {100 * sure:.0f} %, right {100 * right:.0f} %")
    law = learn_steps(runs(tables["CM-DARE"]))
    assert law is not None
    generator = np.random.default_rng(1)
    families = generator.choice(["ResNet", "Shake-Shake"], 10_000).tolist()
    many = StepFacts(flops=np.exp(generator.uniform(20.3, 23.8, 10_000)), families=families)
    start = time.perf_counter()
    predicted = law.predict(many, "P100", 9.526e12)
    answered = time.perf_counter() - start
    tau = expected_kendall(np.log(predicted.seconds), predicted.shared, predicted.own)
    ranked = time.perf_counter() - start
    print(f"10,000 architectures: {1e3 * answered:.0f} ms, with expected tau ({tau:.3f}) {1e3 * ranked:.0f} ms")


if __name__ == "__main__":
    main()
