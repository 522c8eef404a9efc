"""The sharing model: which law answers in which mode, and which warnings its answers carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import (
    Budget,
    DeviceShares,
    Floats,
    PairRun,
    Processors,
    ShareBasis,
    ShareVerdict,
    SharingMode,
    SharingQuestion,
    SoloJob,
    freeze,
)
from nodewise_sharing.modes import mps_range, slice_range
from nodewise_sharing.placement import processors_filled
from nodewise_sharing.shares import fit_shares
from nodewise_sharing.verdict import share_devices, verdict_of

__all__ = ["FittedSharing"]

NO_UTILISATION: Final = "device utilisation of {!r} is not stated: {} is assumed"
FROM_ELSEWHERE: Final = "an estimate from its steps on other devices"
WHOLE_STEP: Final = "the whole step"
NO_MEMORY: Final = "memory of {!r} is not stated: it is assumed to fit"
NO_DEVICE_MEMORY: Final = "memory of the device is not known: whether the jobs fit is not checked"
FROM_STRUCTURE: Final = {
    SharingMode.MPS: (
        "MPS without measured pairs: the range is from taking turns to full overlap, and is not validated on runs"
    ),
    SharingMode.MIG: (
        "MIG without a measured run of this set of jobs: the range follows the slice's processors, and is not "
        "validated on runs"
    ),
}
ADDED: Final = (
    "more than two jobs: the slowdowns of the pairs are added up, which is not validated on runs of as many jobs"
)
SLICE_SLACK: Final = 1e-6
"""By how much the sum of slices may exceed the device: shares such as 3/7 are rounded by callers."""


class FittedSharing:
    """Answers by what pairs teach.

    Time slicing, and MPS once a pair of it ran: the law fitted to the pairs (`fit_shares`), which without any is what
    holds before data. MPS without pairs: turns to overlap. MIG: each job on its slice, whatever runs beside it; a pair
    that ran is told as it ran.
    """

    def predict_shares(self, question: SharingQuestion, budget: Budget) -> list[DeviceShares]:
        """One answer for each set."""
        if question.mode is SharingMode.MIG:
            shares_by_set = [_slice(jobs, question) for jobs in question.sets]
        elif question.mode is SharingMode.MPS and not question.runs:
            shares_by_set = [_overlapping(jobs, question) for jobs in question.sets]
        else:
            shares_by_set = share_devices(
                question.sets,
                fit_shares(question.runs, budget),
                device_bytes=question.memory_bytes,
                coverage=question.coverage,
                budget=budget,
            )
            shares_by_set = [
                replace(each, warnings=(ADDED,)) if len(jobs) > 2 else each
                for each, jobs in zip(shares_by_set, question.sets, strict=True)
            ]
        return [
            replace(each, warnings=(*each.warnings, *_unknown(jobs, each, question)))
            for each, jobs in zip(shares_by_set, question.sets, strict=True)
        ]


def _overlapping(jobs: Sequence[SoloJob], question: SharingQuestion) -> DeviceShares:
    """One context for all, before any pair of the mode ran."""
    if len(jobs) < 2:
        low = high = np.ones(len(jobs))
    else:
        low, high = mps_range(jobs, [_filled_share(job, question.processors) for job in jobs])
    memory, device = _sum([job.memory_bytes for job in jobs]), question.memory_bytes
    fits = memory is None or device is None or memory <= device
    return _structural(jobs, low, high, memory, question, fits=fits)


def _slice(jobs: Sequence[SoloJob], question: SharingQuestion) -> DeviceShares:
    """Each job on its slice. Where a slice is too small for its job, or the device for the slices, they do not fit."""
    slices = [job.slice_share or 1.0 / len(jobs) for job in jobs]
    ends = [
        slice_range(job, part, _filled_share(job, question.processors)) for job, part in zip(jobs, slices, strict=True)
    ]
    low, high = np.array(ends).T
    ran = _measured_shares(jobs, question.runs)
    if ran is not None:
        low = high = np.array(ran)
    device = question.memory_bytes
    rooms = [
        job.slice_memory_bytes or (None if device is None else part * device)
        for job, part in zip(jobs, slices, strict=True)
    ]
    memory = _sum([job.memory_bytes for job in jobs])
    short = any(
        need is not None and room is not None and need > room
        for need, room in zip((job.memory_bytes for job in jobs), rooms, strict=True)
    )
    too_many = math.fsum(slices) > 1.0 + SLICE_SLACK
    shares = _structural(jobs, low, high, memory, question, fits=not (short or too_many))
    return shares if ran is None else replace(shares, basis=ShareBasis.MEASURED, warnings=())


def _structural(
    jobs: Sequence[SoloJob],
    low: Floats,
    high: Floats,
    memory: float | None,
    question: SharingQuestion,
    *,
    fits: bool,
) -> DeviceShares:
    """An answer from structure only: the middle of its range."""
    middle = (low + high) / 2.0
    total = float(low.sum()), float(middle.sum()), float(high.sum())
    verdict = verdict_of(total, len(jobs), None, None) if fits else ShareVerdict.DOES_NOT_FIT
    several = len(jobs) > 1
    return DeviceShares(
        freeze(low),
        freeze(middle),
        freeze(high),
        total,
        verdict,
        ShareBasis.SOLO if several else None,
        memory,
        (FROM_STRUCTURE[question.mode],) if several or question.mode is SharingMode.MIG else (),
    )


def _measured_shares(jobs: Sequence[SoloJob], runs: Sequence[PairRun]) -> tuple[float, ...] | None:
    """Mean shares of a pair that ran; None = it did not."""
    if len(jobs) != 2:
        return None
    names = tuple(job.name for job in jobs)
    measured_shares = [run.shares for run in runs if tuple(job.name for job in run.jobs) == names]
    measured_shares += [run.shares[::-1] for run in runs if tuple(job.name for job in run.jobs[::-1]) == names]
    return tuple(np.mean(measured_shares, axis=0).tolist()) if measured_shares else None


def _filled_share(job: SoloJob, device: Processors | None) -> float | None:
    """Share of the device that the job's largest kernel fills; None = not known."""
    if device is None or not job.kernels:
        return None
    return max(processors_filled(kernel, device) for kernel in job.kernels)


def _sum(needs: Sequence[float | None]) -> float | None:
    known_needs = [need for need in needs if need is not None]
    return float(sum(known_needs)) if len(known_needs) == len(needs) else None


def _unknown(jobs: Sequence[SoloJob], device_shares: DeviceShares, question: SharingQuestion) -> list[str]:
    """What is missing of the jobs of a set, unless it was measured."""
    texts = []
    for job in {job.name: job for job in jobs}.values():
        inferred = job.step_seconds is not None and bool(job.elsewhere)
        if job.device_utilisation is None and device_shares.basis not in {None, ShareBasis.MEASURED}:
            texts.append(NO_UTILISATION.format(job.name, FROM_ELSEWHERE if inferred else WHOLE_STEP))
        if job.memory_bytes is None:
            texts.append(NO_MEMORY.format(job.name))
    if question.memory_bytes is None:
        texts.append(NO_DEVICE_MEMORY)
    return texts
