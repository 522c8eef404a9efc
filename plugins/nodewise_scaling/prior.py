"""The prior over parameters: their means, how they differ between jobs, and which part belongs to a cluster.

It ships, learned from published tables (research/learn_scaling_prior.py); a service adds the devices of its own jobs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_scaling.fitting import JobFit, fit_job
from nodewise_scaling.parameters import COUNT, HYPER_SD, NAMES
from nodewise_scaling.points import Points

__all__ = ["NO_BOUNDS", "PSEUDO_JOBS", "Knowledge", "Lesson", "load_default_prior", "offset_of", "update"]

SAME_DEVICE: Final = 4.0
"""What errors of jobs on the same device weigh in an interval, against those on others."""

UNTRIED_MULTIPLIER: Final = 2.0
"""Multiplier of an interval that no job has tried."""

UNKNOWN_DEVICE: Final = 1.5
"""Factor by which the multiplier of a device without own scores is wider: its cluster may differ from all others."""

PSEUDO_JOBS: Final = 1.0
"""Jobs of a device that all devices' usual share of hidden exchange counts as."""

ELSEWHERE_JOBS: Final = 1.0
"""Jobs that all those of one cluster count as for another cluster of the device: they share what is the cluster's."""

NO_BOUNDS: Final = (np.full(COUNT, -np.inf), np.full(COUNT, np.inf))

Lesson = tuple[str, Points]
"""A device and the points of one job on it."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Knowledge:
    """A prior over parameters.

    Attributes
    ----------
    mean, job_sd, device_sd : (parameters,) float
        Mean over all, and standard deviations between jobs of a device and between devices.
    offset, offset_variance : mapping of device to (parameters,) float
        What is known of a device beyond the mean.
    scores : tuple of (device, float array, weight)
        |ln(measured / predicted)| over the predicted deviation, of jobs predicted without knowledge of them.
    sources : tuple of str
        What it was learned from, for people.
    over_fixed : bool
        As ``Places.over_fixed``: the compute to which ``intra`` is relative.
    overlapped : mapping of device to (jobs, jobs)
        Of its jobs with several workers so many hide their exchange (``overlapped``), and how many there are.
    links : mapping of device to links
        Links in bytes/s that jobs of the corpus ran over, 0 = not stated. A device of ``offset`` that is not among them
        is known from one published cluster, of a link that its table does not state.
    unseen : Knowledge or None
        The same for jobs whose exchange was not seen, relative to all compute; None = use this one.
    """

    mean: Floats
    job_sd: Floats
    device_sd: Floats
    offset: Mapping[str, Floats] = field(default_factory=dict)
    offset_variance: Mapping[str, Floats] = field(default_factory=dict)
    scores: tuple[tuple[str, Floats, float], ...] = ()
    sources: tuple[str, ...] = ()
    over_fixed: bool = True
    overlapped: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    links: Mapping[str, frozenset[float]] = field(default_factory=dict)
    unseen: Knowledge | None = None

    @property
    def where_unseen(self) -> Knowledge:
        """What holds for a job of which no run had a second worker."""
        return self if self.unseen is None else replace(self.unseen, overlapped=self.overlapped, links=self.links)

    def is_of_cluster(self, device: str, link_bytes_per_s: float) -> bool:
        """Whether what is known of a device may be of the very cluster that has this link, 0 = not stated.

        How gradients are exchanged is the cluster's and its stack's, not the device's: V100 of one published cluster
        take eight times as long as those of another.
        """
        if not link_bytes_per_s:
            return True
        links = self.links.get(device, frozenset())
        return link_bytes_per_s in links or 0.0 in links

    def of(self, device: str) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the parameters of a new job on a device."""
        if device in self.offset:
            return self.mean + self.offset[device], np.sqrt(self.job_sd**2 + self.offset_variance[device])
        return self.mean, np.hypot(self.job_sd, self.device_sd)

    def overlapped_share(self, device: str, link_bytes_per_s: float = 0.0) -> float:
        """Probability that a new job on a device hides its exchange: as those there, and as those of all devices."""
        shares = [hidden / jobs for hidden, jobs in self.overlapped.values()]
        usual = (sum(shares) + 1.0) / (len(shares) + 2.0)
        hidden, jobs = self.overlapped.get(device, (0.0, 0.0))
        if jobs > ELSEWHERE_JOBS and device in self.offset and not self.is_of_cluster(device, link_bytes_per_s):
            hidden, jobs = hidden * ELSEWHERE_JOBS / jobs, ELSEWHERE_JOBS
        return (hidden + PSEUDO_JOBS * usual) / (jobs + PSEUDO_JOBS)

    def multiplier(self, device: str, level: float) -> float:
        """Quantile of the scores, jobs weighing alike: by how many deviations predictions were off."""
        if not self.scores:
            return UNTRIED_MULTIPLIER
        values = np.concatenate([scores for _, scores, _ in self.scores])
        weights = np.concatenate(
            [
                np.full(len(scores), weight * (SAME_DEVICE if name == device else 1.0) / len(scores))
                for name, scores, weight in self.scores
            ]
        )
        order = np.argsort(values, kind="stable")
        share = np.cumsum(weights[order]) / weights.sum()
        multiplier = float(values[order][min(int(np.searchsorted(share, level)), len(values) - 1)])
        return multiplier if any(name == device for name, _, _ in self.scores) else UNKNOWN_DEVICE * multiplier

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "parameters": list(NAMES),
            "mean": self.mean.tolist(),
            "job_sd": self.job_sd.tolist(),
            "device_sd": self.device_sd.tolist(),
            "offset": {device: values.tolist() for device, values in sorted(self.offset.items())},
            "offset_variance": {device: values.tolist() for device, values in sorted(self.offset_variance.items())},
            "scores": [[device, np.round(scores, 3).tolist(), weight] for device, scores, weight in self.scores],
            "sources": list(self.sources),
            "over_fixed": self.over_fixed,
            "overlapped": {device: list(jobs) for device, jobs in sorted(self.overlapped.items())},
            "links": {device: sorted(links) for device, links in sorted(self.links.items())},
            "unseen": None if self.unseen is None else self.unseen.document(),
        }

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Knowledge:
        """From plain values.

        Raises
        ------
        ValueError
            They are of other parameters.
        """
        if tuple(document["parameters"]) != NAMES:
            message = (
                f"the prior holds the parameters {document['parameters']!r}, but this version needs {list(NAMES)!r}"
            )
            raise ValueError(message)
        return Knowledge(
            mean=np.array(document["mean"]),
            job_sd=np.array(document["job_sd"]),
            device_sd=np.array(document["device_sd"]),
            offset={device: np.array(values) for device, values in document["offset"].items()},
            offset_variance={device: np.array(values) for device, values in document["offset_variance"].items()},
            scores=tuple((device, np.array(scores), weight) for device, scores, weight in document["scores"]),
            sources=tuple(document["sources"]),
            over_fixed=document["over_fixed"],
            overlapped={device: (hidden, jobs) for device, (hidden, jobs) in document.get("overlapped", {}).items()},
            links={device: frozenset(links) for device, links in document.get("links", {}).items()},
            unseen=None if document["unseen"] is None else Knowledge.from_document(document["unseen"]),
        )


@lru_cache(maxsize=1)
def load_default_prior() -> Knowledge:
    """The prior that comes with the package; its sources name the tables that it was learned from."""
    text = resources.files("nodewise_scaling").joinpath("shipped_prior.json").read_text(encoding="utf-8")
    return Knowledge.from_document(json.loads(text))


def update(knowledge: Knowledge, lessons: Iterable[Lesson]) -> Knowledge:
    """The same with the devices of more jobs; means and spreads stay."""
    new_lessons = list(lessons)
    by_device: dict[str, list[Points]] = {}
    for device, points in new_lessons:
        by_device.setdefault(device, []).append(replace(points, over_fixed=knowledge.over_fixed))
    offset, offset_variance = dict(knowledge.offset), dict(knowledge.offset_variance)
    for device, several in sorted(by_device.items()):
        before = offset.get(device, np.zeros(COUNT))
        variance = offset_variance.get(device, knowledge.device_sd**2)
        mean, sd = knowledge.mean + before, np.sqrt(knowledge.job_sd**2 + variance)
        members = [fit_job(points, mean, sd, bounds=NO_BOUNDS) for points in several]
        offset[device], offset_variance[device] = offset_of(
            members, knowledge.mean, before, before, variance, knowledge.job_sd**2
        )
    unseen = None if knowledge.unseen is None else update(knowledge.unseen, new_lessons)
    return replace(knowledge, offset=offset, offset_variance=offset_variance, unseen=unseen)


def offset_of(
    members: Sequence[JobFit], mean: Floats, centre: Floats, before: Floats, variance: Floats, job_variance: Floats
) -> tuple[Floats, Floats]:
    """Mean and variance of a device's offset, from the data of its jobs only."""
    total, weight = before / variance, 1.0 / variance
    for fit in members:
        own = np.maximum(1.0 / np.diag(fit.theta_covariance) - fit.prior_precision, 1e-9)
        beyond = (fit.theta - mean - centre) * fit.prior_precision / own
        offset = fit.theta + np.clip(beyond, -4.0 * HYPER_SD, 4.0 * HYPER_SD) - mean
        precision = 1.0 / (job_variance + 1.0 / own)
        total, weight = total + precision * offset, weight + precision
    return total / weight, 1.0 / weight
