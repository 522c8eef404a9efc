"""What runs of the job on other devices, its donors, say of how it scales on this one.

A job's parameters on a device are the mean over all jobs, the device's offset, a deviation that the job takes along
from device to device, and one that belongs to the job on that device only::

    theta(job, device) = mean + offset(device) + delta(job) + epsilon(job, device)
    Var delta = KEPT of the variance between jobs, Var epsilon = the rest of it

A donor's fit is a message about delta: the information of its runs, blurred by epsilon and by what is not known of the
donor's offset. Messages add up; what they say, with epsilon and the offset of this device, is the prior under which
this device's own runs are fitted (conditioning of Gaussians: C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes
for Machine Learning", 2006, appendix A.2).

No ratio of throughputs is carried over. Seconds of exchange are the network's and seconds of compute the device's, and
``intra`` is the ln of one over the other: where this job's compute is slower than the devices' facts let expect, its
exchange weighs less. Where nothing ran on the device, facts also give the seconds of compute (``new_device``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from nodewise.plugin import Catalogue, Floats
from nodewise_scaling.compute import Compute, compute_by_facts
from nodewise_scaling.fitting import JobFit, fit_job, inverse_of
from nodewise_scaling.growth import with_growth
from nodewise_scaling.parameters import BATCH_SHARE, COUNT, INTER, INTRA, LEVEL, NAMES
from nodewise_scaling.points import Points, Setting
from nodewise_scaling.prior import Knowledge
from nodewise_scaling.speed import Ratio, exchange_doubt, exchange_over, known_as, ratio_of

__all__ = ["SMALLEST_VARIANCE", "Donor", "Sources", "combine_donors", "fit_with_donors", "over_link", "sources_of"]

KEPT: Final = 0.5
"""Share of the variance between jobs of ``intra`` and ``inter`` (the bytes that a job exchanges and how it sends them,
over its compute) that a job takes along. Of the powers and of what is special of two nodes it takes nothing: they are
how a cluster's links are shared. On nine published jobs 0.3 to 0.7 make no difference that can be told."""

DRAWN: Final = 0.5
DRAWN_SD: Final = 0.3
"""Of how much slower a job computes than facts say, what its exchange over compute falls by, in ln, and the standard
deviation of that. 1 where the device is slow at this job and the network as ever, 0 where a busy host slows down both:
which one is not known, and a uniform distribution has 0.5 and 0.29."""

SMALLEST_VARIANCE: Final = 1e-9
_CARRIED: Final = np.array([KEPT if name in {"intra", "inter"} else 0.0 for name in NAMES])


@dataclass(frozen=True, slots=True, eq=False)
class Donor:
    """The job in another setting: its points, their fit, and the prior's mean and variance of the device's offset."""

    points: Points
    fit: JobFit
    mean: Floats
    offset_variance: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sources:
    """All that a transfer draws on: the donors by their settings, the prior, the catalogue, and the number format."""

    knowledge: Knowledge
    catalogue: Catalogue
    precision: str
    donors: Mapping[Setting, Donor] = field(default_factory=dict)

    def name_of(self, setting: Setting) -> str:
        """The prior's name of a device; "" where the prior does not hold it, or holds it from another cluster."""
        name = known_as(self.catalogue, setting.device, self.knowledge.offset)
        return name if self.knowledge.is_of_cluster(name, setting.link_bytes_per_s) else ""

    def ratio(self, device: str, other: str) -> Ratio | None:
        """How much faster a device computes than another, by facts."""
        return ratio_of(self.catalogue, device, other, self.precision)

    def compute(self, device: str, donors: Mapping[Setting, Donor], batch: float) -> Compute | None:
        """Compute on a device at a batch by what donors took; None where no facts tell the device from any of them."""
        fits = ((each.fit, each.points, self.ratio(device, name.device)) for name, each in donors.items())
        return compute_by_facts(fits, batch)

    def others(self, device: str) -> dict[Setting, Donor]:
        """Donors on other devices that are stated."""
        return {setting: each for setting, each in self.donors.items() if setting.device not in {"", device}}

    def of(self, setting: Setting) -> tuple[Floats, Floats]:
        """Mean of the parameters in a setting over jobs, and the variance of its offset."""
        knowledge, name = self.knowledge, self.name_of(setting)
        if name:
            return knowledge.mean + knowledge.offset[name], knowledge.offset_variance[name]
        return knowledge.mean.copy(), knowledge.device_sd**2

    def level_sd(self, setting: Setting) -> float:
        """Standard deviation of the level of a job in a setting."""
        return float(np.sqrt(self.knowledge.job_sd[LEVEL] ** 2 + self.of(setting)[1][LEVEL]))


def sources_of(evidence: Mapping[Setting, Points], bare: Sources) -> Sources:
    """Fit the job in every setting by itself."""
    donors = {}
    for setting, own_points in evidence.items():
        points = replace(own_points, over_fixed=bare.knowledge.over_fixed)
        mean, offset_variance = bare.of(setting)
        mean, sd = with_growth(points, mean, np.sqrt(bare.knowledge.job_sd**2 + offset_variance))
        fit = fit_job(points, mean, sd)
        donors[setting] = Donor(points, fit, mean, offset_variance)
    return replace(bare, donors=donors)


def fit_with_donors(setting: Setting, sources: Sources) -> JobFit:
    """The fit of a setting under a prior from donors on other devices; without donors, the setting's own fit."""
    own = sources.donors[setting]
    donors = sources.others(setting.device)
    if not setting.device or not donors:
        return own.fit
    return fit_job(own.points, *with_growth(own.points, *_prior_given(setting, own, donors, sources)))


def _prior_given(
    setting: Setting, own: Donor, donors: Mapping[Setting, Donor], sources: Sources
) -> tuple[Floats, Floats]:
    """The prior's mean and deviation given the donors."""
    points, device = own.points, setting.device
    lone = points.keys[:, 1].min() == 1.0
    compute = None if lone else sources.compute(device, donors, points.smallest_batch)
    log_compute = float(np.log(points.unit_s)) if lone else None
    shifts = {name: _shift(setting, own, name, donor, log_compute, sources) for name, donor in donors.items()}
    expected, covariance = combine_donors(setting, donors, shifts, sources)
    expected[LEVEL], deviation = own.mean[LEVEL], np.sqrt(np.diag(covariance))
    deviation[LEVEL] = np.sqrt(sources.knowledge.job_sd[LEVEL] ** 2 + own.offset_variance[LEVEL])
    if compute is not None:
        # The unit is a step of several workers: compute is at most that, and by facts so much of it.
        expected[LEVEL] = min(compute.total - float(np.log(points.unit_s)), 0.0)
        deviation[LEVEL] = np.hypot(compute.growing_sd * compute.share, compute.fixed_sd * (1.0 - compute.share))
    return expected, deviation


def combine_donors(
    setting: Setting,
    donors: Mapping[Setting, Donor],
    shifts: Mapping[Setting, tuple[Floats, Floats]],
    sources: Sources,
) -> tuple[Floats, Floats]:
    """Mean and covariance of the parameters in a setting, given donors and what their messages are shifted by."""
    job_variance = sources.knowledge.job_sd**2
    carried_variance, alone = _CARRIED * job_variance, (1.0 - _CARRIED) * job_variance
    precision, vector = np.diag(1.0 / np.maximum(carried_variance, SMALLEST_VARIANCE)), np.zeros(COUNT)
    for name in sorted(donors):
        donor = donors[name]
        shift, doubt = shifts.get(name, (np.zeros(COUNT), np.zeros(COUNT)))
        posterior = inverse_of(donor.fit.theta_covariance)
        information = posterior - np.diag(donor.fit.prior_precision)
        moved = posterior @ (donor.fit.theta - donor.mean) + information @ shift
        blur = 1.0 / np.maximum(alone + donor.offset_variance + doubt, SMALLEST_VARIANCE)
        passed = blur[:, np.newaxis] * inverse_of(information + np.diag(blur))
        precision = precision + np.diag(blur) - passed * blur
        vector = vector + passed @ moved
    covariance = inverse_of(precision)
    mean, offset_variance = sources.of(setting)
    return mean + covariance @ vector, covariance + np.diag(alone + offset_variance)


def _shift(
    setting: Setting, own: Donor, name: Setting, donor: Donor, log_compute: float | None, sources: Sources
) -> tuple[Floats, Floats]:
    """What a donor's parameters differ by from this device's for known reasons, and the variance of that."""
    shift, doubt = np.zeros(COUNT), np.zeros(COUNT)
    shift[BATCH_SHARE] = np.log(own.points.smallest_batch / donor.points.smallest_batch)
    ratio = sources.ratio(setting.device, name.device)
    if log_compute is not None and ratio is not None:
        slower = log_compute - float(np.log(donor.points.unit_s)) - donor.fit.theta[LEVEL] + ratio.log
        shift[INTRA] = -DRAWN * slower
        doubt[INTRA] = (DRAWN_SD * slower) ** 2
    clusters_known = sources.name_of(setting) and sources.name_of(name)
    if not clusters_known and setting.link_bytes_per_s and name.link_bytes_per_s:
        shift[INTER], doubt[INTER] = over_link(setting.link_bytes_per_s, name.link_bytes_per_s)
    return shift, doubt


def over_link(asked_bytes_per_s: float, ran_bytes_per_s: float) -> tuple[float, float]:
    """What exchange differs by over another link than that of the runs, and the variance of that."""
    faster = float(np.log(asked_bytes_per_s / ran_bytes_per_s))
    return exchange_over(faster), exchange_doubt(faster) ** 2
