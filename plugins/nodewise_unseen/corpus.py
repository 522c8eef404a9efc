"""Runs of one worker in stored profiles, as what the law is learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from nodewise.plugin import Profile
from nodewise_unseen.columns import Architectures, StepRuns

__all__ = ["runs_of"]

BYTES_PER_PARAMETER = 4
"""fp32, as frameworks exchange gradients unless told otherwise."""


def runs_of(
    profiles: Iterable[Profile], peak_flops: Mapping[str, float], family_of: Callable[[Profile], str]
) -> StepRuns:
    """Every observation of one worker whose FLOPs per sample and batch are known, on a device of known peak.

    A batch of its own is an architecture of its own: FLOPs are those of a step.
    """
    flops, families, parameters, tensors, activations, devices, seconds = [], [], [], [], [], [], []
    for profile in profiles:
        workload, runs = profile.workload, profile.observations
        if not workload.flops_per_sample:
            continue
        configurations = runs.configurations
        for row in np.flatnonzero((configurations.workers == 1) & (runs.steps_per_s > 0.0)):
            device = configurations.devices[configurations.device_index[row]]
            batch = float(configurations.batch_per_worker[row]) * int(configurations.accumulation[row])
            batch = batch or float(configurations.global_batch[row])
            if device not in peak_flops or batch <= 0.0:
                continue
            flops.append(workload.flops_per_sample * batch)
            families.append(family_of(profile))
            parameters.append((workload.parameter_bytes or 0) / BYTES_PER_PARAMETER)
            tensors.append(float(workload.tensors or 0))
            activations.append(batch * sum(layer.activation_bytes_per_sample for layer in workload.layers or ()))
            devices.append(device)
            seconds.append(1.0 / runs.steps_per_s[row])
    architectures = Architectures(
        flops=np.array(flops),
        families=families,
        parameters=np.array(parameters),
        tensors=np.array(tensors),
        activation_bytes=np.array(activations),
    )
    peaks = np.array([peak_flops[device] for device in devices])
    return StepRuns(architectures=architectures, devices=devices, peak_flops=peaks, step_seconds=np.array(seconds))
