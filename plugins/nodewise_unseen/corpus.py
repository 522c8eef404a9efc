"""Runs of one worker in stored profiles and in the table that ships, as what the law is learned from."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import numpy as np

from nodewise.plugin import Profile, Workload
from nodewise_unseen.columns import StepFacts, StepRuns, family_key

__all__ = [
    "BYTES_PER_PARAMETER",
    "SHIPPED_SOURCE",
    "Run",
    "layer_activation_bytes",
    "over_peaks",
    "runs_of",
    "shipped_runs",
]

BYTES_PER_PARAMETER: Final = 4
"""fp32, in which frameworks exchange gradients by default."""
SHIPPED_BATCH: Final = 128
"""Samples per step of every run of the table that ships."""
SHIPPED_SOURCE: Final = "CM-DARE: 20 CNNs on one K80 or P100, TensorFlow 1.10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured step of one worker. 0 and "" = not known, except for FLOPs.

    Attributes
    ----------
    device, precision : str
        Where, and in which number format; "" = fp32.
    flops, activation_bytes : float
        Of the step.
    profile_id : str
        Whose run it is; "" = nobody's stored one.
    """

    device: str
    precision: str
    family: str
    flops: float
    parameters: float
    tensors: float
    activation_bytes: float
    seconds: float
    profile_id: str = ""

    def to_list(self) -> list[Any]:
        """As plain values."""
        return [getattr(self, name) for name in self.__slots__]


def runs_of(profiles: Iterable[Profile]) -> list[Run]:
    """Every observation of one worker with known FLOPs per sample and batch, in an order that depends on rows only.

    A batch of its own is an architecture of its own: FLOPs are those of a step.
    """
    worker_runs = []
    for profile in profiles:
        workload, runs = profile.workload, profile.observations
        if not workload.flops_per_sample:
            continue
        configurations = runs.configurations
        for row in np.flatnonzero((configurations.workers == 1) & (runs.steps_per_s > 0.0)):
            device = configurations.devices[configurations.device_index[row]]
            batch = float(configurations.batch_per_worker[row]) * int(configurations.accumulation[row])
            batch = batch or float(configurations.global_batch[row])
            if not device or batch <= 0.0:
                continue
            worker_runs.append(
                Run(
                    device=device,
                    precision=configurations.precisions[configurations.precision_index[row]]
                    or (workload.precision or ""),
                    family=workload.family or "",
                    flops=workload.flops_per_sample * batch,
                    parameters=(workload.parameter_bytes or 0) / BYTES_PER_PARAMETER,
                    tensors=float(workload.tensors or 0),
                    activation_bytes=batch * (workload.activation_bytes_per_sample or layer_activation_bytes(workload)),
                    seconds=1.0 / float(runs.steps_per_s[row]),
                    profile_id=profile.profile_id,
                )
            )
    return sorted(worker_runs, key=Run.to_list)


def layer_activation_bytes(workload: Workload) -> float:
    """Output bytes of all layers per sample; 0 = not known."""
    return sum(layer.activation_bytes_per_sample for layer in workload.layers or ())


@lru_cache(maxsize=1)
def shipped_runs() -> tuple[Run, ...]:
    """The table that comes with the package: see its head."""
    text = resources.files("nodewise_unseen").joinpath("cmdare_steps.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        Run(
            device=device,
            precision="",
            family=row["family"],
            flops=SHIPPED_BATCH * float(row["flops_per_sample"]),
            parameters=float(row["parameters"]),
            tensors=0.0,
            activation_bytes=0.0,
            seconds=float(row[f"{device.lower()}_step_s"]),
        )
        for row in rows
        for device in ("K80", "P100")
    )


def over_peaks(runs: Iterable[Run], find_peak: Callable[[str, str], tuple[str, float]]) -> StepRuns:
    """The runs on devices of known peak. `named` tells the device's name in its number format, and its FLOP/s."""
    placed = [(run, *find_peak(run.device, run.precision)) for run in runs]
    with_peak = [(run, device, peak) for run, device, peak in placed if peak > 0.0]
    return StepRuns(
        facts=StepFacts(
            flops=np.array([run.flops for run, _, _ in with_peak]),
            families=[family_key(run.family) for run, _, _ in with_peak],
            parameters=np.array([run.parameters for run, _, _ in with_peak]),
            tensors=np.array([run.tensors for run, _, _ in with_peak]),
            activation_bytes=np.array([run.activation_bytes for run, _, _ in with_peak]),
        ),
        devices=[device for _, device, _ in with_peak],
        peak_flops=np.array([peak for _, _, peak in with_peak]),
        step_seconds=np.array([run.seconds for run, _, _ in with_peak]),
    )
