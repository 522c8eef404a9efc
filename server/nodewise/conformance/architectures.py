"""What models that answer many architectures at once must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nodewise.conformance.evidence import Job
from nodewise.conformance.findings import NonConformanceError, require, row_difference, sound
from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.estimators.check_architectures import checked_architectures
from nodewise.hosting.calls import ImpossibleAnswerError
from nodewise.plugin import Architectures, ArchitecturesModel
from nodewise.profiles.digest import content_digest

__all__ = ["check_architectures"]


def check_architectures(
    model: ArchitecturesModel,
    job: Job,
    rows: Configurations,
    options: Options,
    alone: Callable[[Profile, Configurations], Predictions],
) -> None:
    """Many architectures at once get what each gets as a profile of its own, which ``alone`` answers."""
    workloads = [replace(job.profile.workload, **facts) for facts in _variants(job.profile.workload)]
    many = Architectures.joined([Architectures.of(workload) for workload in workloads])
    answer = sound("predict_architectures", lambda: model.predict_architectures(many, rows, options))
    try:
        found = checked_architectures(answer, len(many) * len(rows))
    except ImpossibleAnswerError as error:
        message = f"predict_architectures of {job.name!r} answers what cannot be true: {error}"
        raise NonConformanceError(message) from None
    expected = [
        (as_ints(np.arange(len(rows)) + place * len(rows)), alone(_facts_alone(job.profile, workload), rows))
        for place, workload in enumerate(workloads)
    ]
    where = row_difference(found.predictions, Predictions.joined(len(many) * len(rows), expected))
    require(where is None, f"architectures of {job.name!r} asked at once differ in {where} from one by one")


def _variants(workload: Workload) -> list[dict[str, Any]]:
    """Facts of architectures beside those of a job: larger, smaller, far larger, of another family, hardly known."""
    flops = workload.flops_per_sample or 1e9
    sizes = [{"flops_per_sample": factor * flops} for factor in (1.0, 0.5, 2.0, 1e6)]
    return [*sizes, {"family": "another", "flops_per_sample": flops}, {"flops_per_sample": None}]


def _facts_alone(profile: Profile, workload: Workload) -> Profile:
    own = Profile(workload=workload, network=profile.network)
    return replace(own, digest=content_digest(own))
