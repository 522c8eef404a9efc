"""A job on a device that it never ran on: scaling as its donors and the prior say, compute as donors and facts do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats
from nodewise_scaling.compute import ComputeDoubt
from nodewise_scaling.fitting import JobFit
from nodewise_scaling.parameters import BATCH_SHARE, COUNT, INTER, INTRA, LEVEL
from nodewise_scaling.points import KEYS, Points, Setting
from nodewise_scaling.transfer import DRAWN, DRAWN_SD, SMALLEST_VARIANCE, Sources, combine_donors, over_link

__all__ = ["NewDeviceFit", "fit_new_device"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NewDeviceFit:
    """What is expected.

    Attributes
    ----------
    fit : JobFit
        Of no points of its own.
    doubt : ComputeDoubt
    reach : (rows, 5) float
        Configurations that donors ran.
    donors : tuple of Setting
    facts : tuple of str
        Facts that tell devices' compute apart.
    link_bytes_per_s : float
        Link for which exchange is predicted; 0 = not known.
    """

    fit: JobFit
    doubt: ComputeDoubt
    reach: Floats
    donors: tuple[Setting, ...]
    facts: tuple[str, ...]
    link_bytes_per_s: float


def fit_new_device(device: str, link_bytes_per_s: float, sources: Sources) -> NewDeviceFit | None:
    """What is expected of the job where it never ran; None without facts about that device and a donor.

    Exchange is predicted for the donors' link, the nearest to ``link_bytes_per_s`` (0 = any) where theirs differ.
    """
    donors = {
        setting: donor
        for setting, donor in sorted(sources.others(device).items())
        if sources.ratio(device, setting.device) is not None
    }
    batch = min((donor.points.smallest_batch for donor in donors.values()), default=1.0)
    compute = sources.compute(device, donors, batch)
    if compute is None:
        return None
    link = _nearest([setting.link_bytes_per_s for setting in donors], link_bytes_per_s)
    shifts = {setting: _shift(setting, link, sources) for setting in donors}
    setting_asked = Setting(device, link)
    mean, covariance = combine_donors(setting_asked, donors, shifts, sources)
    mean[INTRA] += _faster_than_known(setting_asked, sources)
    share = compute.share
    mean[LEVEL], mean[BATCH_SHARE] = 0.0, compute.growing - compute.fixed
    for index in (LEVEL, BATCH_SHARE):
        covariance[index], covariance[:, index] = 0.0, 0.0
    # What is wrong in either part of compute is wrong in the step, in its growth, and in exchange over compute.
    slopes = np.zeros((COUNT, 2))
    slopes[LEVEL] = 1.0 - share, share
    slopes[BATCH_SHARE] = -1.0, 1.0
    slopes[INTRA] = -DRAWN * slopes[LEVEL]
    variances = np.array([compute.fixed_sd**2, compute.growing_sd**2])
    covariance += slopes * variances @ slopes.T + SMALLEST_VARIANCE * np.eye(COUNT)
    covariance[INTRA, INTRA] += DRAWN_SD**2 * float(slopes[LEVEL] ** 2 @ variances)
    unit_s = float(np.exp(compute.total))
    points = Points(
        keys=np.ones((0, len(KEYS))),
        step_s=np.ones(0),
        runs=np.ones(0, dtype=np.int64),
        smallest_batch=batch,
        unit_s=unit_s,
        over_fixed=sources.knowledge.over_fixed,
    )
    fit = JobFit(
        points=points,
        theta=mean,
        theta_covariance=covariance,
        prior_precision=1.0 / np.diag(covariance),
        centres=np.zeros((0, 3)),
        weights=np.zeros((0, 1 + COUNT)),
        precision=np.zeros((0, 0)),
    )
    return NewDeviceFit(
        fit=fit,
        doubt=ComputeDoubt(unit_s, compute.donors_s, share, compute.facts_sd),
        reach=np.concatenate([donor.points.keys for donor in donors.values()]),
        donors=tuple(donors),
        facts=compute.facts,
        link_bytes_per_s=link,
    )


def _nearest(links: list[float], asked_link: float) -> float:
    """The known link that is nearest to the asked one; the slowest where none is asked; 0 = none is known."""
    known_links = sorted(link for link in links if link)
    if not known_links:
        return 0.0
    return min(known_links, key=lambda link: abs(np.log(link / asked_link))) if asked_link else known_links[0]


def _shift(donor: Setting, link: float, sources: Sources) -> tuple[Floats, Floats]:
    """Difference and variance of a donor's exchange from that of devices in the prior, over a link."""
    shift, doubt = np.zeros(COUNT), np.zeros(COUNT)
    shift[INTRA] = -_faster_than_known(donor, sources)
    if donor.link_bytes_per_s and link:
        shift[INTER], doubt[INTER] = over_link(link, donor.link_bytes_per_s)
    return shift, doubt


def _faster_than_known(setting: Setting, sources: Sources) -> float:
    """Ln of how much faster a device computes than devices in the prior; 0 where the prior holds the device's cluster.

    Seconds of exchange are the network's: where compute takes less, exchange over compute is more.
    """
    if sources.name_of(setting):
        return 0.0
    ratios = [sources.ratio(setting.device, other) for other in sorted(sources.knowledge.offset)]
    logs = [ratio.log for ratio in ratios if ratio is not None]
    return float(np.mean(logs)) if logs else 0.0
