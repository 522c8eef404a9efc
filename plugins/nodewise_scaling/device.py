"""The fit of one setting as a model: step times over nodes, workers, placement and batch, also over another link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from nodewise.plugin import Floats
from nodewise_scaling.compute import MOST_COMPUTE_LOG_SD, ComputeDoubt
from nodewise_scaling.fitting import JobFit
from nodewise_scaling.form import Parts, Places, log_steps, parts_of
from nodewise_scaling.overlap import NOISE_SD, OverlapFit
from nodewise_scaling.parameters import INTER
from nodewise_scaling.points import Points
from nodewise_scaling.speed import BYTES_SHARE, BYTES_SHARE_LEAST, exchange_over

__all__ = ["INTERVAL_LEVEL", "NOMINAL", "PARTS", "DeviceModel"]

SHADE: Final = 1.0
SHADE_LIMIT: Final = 0.1
"""The expected step is told, not the median: for a log-normal error of variance v, throughputs err least on average
where ln T is raised by v (times SHADE); variances beyond SHADE_LIMIT are no longer normal."""

FLOOR_LOG_SPREAD: Final = 0.08
"""What no model of nodes, workers and batch tells, such as which placement: 2.6 to 8.7 % between placements."""

NOMINAL: Final = 1.6448536269514722
"""Deviations of a normal 90 % interval: the learned multiplier is of that interval."""

INTERVAL_LEVEL: Final = 0.92
"""Quantile of the scores that a 90 % interval takes: with few jobs the next larger score is the honest one."""

LARGEST_LOG_SPREAD: Final = 5.0
"""A factor of 150 either way: a larger deviation would add no information."""

CHUNK_ROWS: Final = 4_096
"""Rows predicted at a time: what caches hold."""

BISECTIONS: Final = 10
"""Of a mixture's median: hypotheses that differ by a factor of 2 leave 0.03 % of doubt."""

CELLS: Final = 2.0**BISECTIONS
"""What these divide the way between two means into."""

NEWTON_STEPS: Final = 2
"""Newton's steps of all rows at once; few rows are left then, and are bisected."""

STEEP: Final = 6.0
SURE_OF_CELL: Final = 0.49
"""Between means of less than STEEP deviations apart the slope of the share below changes by at most STEEP^2 of itself
over the whole way: Newton's step from the centre of a cell is right to a hundredth of the cell, and tells whether the
median lies in it up to so far from the centre."""

HALVINGS: Final = 10
"""Of a mixture's interval: to a thousandth of the wider one of its two."""

WITHIN: Final = 0.9
"""What an interval holds of a mixture: as NOMINAL's."""

PARTS: Final = ("compute", "exchange_intra_node", "exchange_inter_node")

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceModel:
    """The fit of one device over one link.

    Attributes
    ----------
    fit : JobFit
    multiplier : float
        By how much deviations are multiplied for an interval.
    measured : Points
        All that was measured there; of no rows where it never ran.
    reach : (rows, 5) float or None
        Configurations that the answer rests on; None = those measured.
    doubt : ComputeDoubt or None
        Of compute that was not measured.
    faster_log : float
        Ln of the asked link's bandwidth over that of the runs.
    overlapped : OverlapFit or None
        The other hypothesis, that exchange hides; None where the runs or the device rule it out.
    overlapped_share : float
        Its probability.
    """

    fit: JobFit
    multiplier: float
    measured: Points
    reach: Floats | None = None
    doubt: ComputeDoubt | None = None
    faster_log: float = 0.0
    overlapped: OverlapFit | None = None
    overlapped_share: float = 0.0

    @property
    def measured_keys(self) -> Floats:
        """(rows, 5) configurations that were run, here or by donors."""
        return self.measured.keys if self.reach is None else self.reach

    def over_link(self, faster_log: float) -> DeviceModel:
        """The same job over a link that is faster by so much, in ln."""
        return replace(self, faster_log=faster_log)

    def predict(self, keys: Floats) -> tuple[Floats, Floats, Floats]:
        """(rows,) step seconds, (rows,) deviation of their logarithm, (3, rows) parts of the step."""
        rows, stretch = len(keys), self.multiplier / NOMINAL
        step_s, spread, parts = np.empty(rows), np.empty(rows), np.empty((len(PARTS), rows))
        for start in range(0, rows, CHUNK_ROWS):
            chunk = slice(start, start + CHUNK_ROWS)
            log_step, variance, _, form = self._by_form(self.fit.points.places(keys[chunk]))
            step_s[chunk] = self.fit.points.unit_s * np.exp(log_step)
            spread[chunk] = np.sqrt(variance + FLOOR_LOG_SPREAD**2) * stretch
            if self.overlapped is not None:
                step_s[chunk], spread[chunk] = self._of_both(keys[chunk], step_s[chunk], spread[chunk])
            parts[:, chunk] = _parts(form, step_s[chunk])
        self._answer_as_measured(keys, step_s, spread, parts)
        if self.faster_log:
            # Another link changes the form's exchange only: measured rows without exchange keep their times.
            at, theta = self.fit.points.places(keys), self._theta_over_link()
            step_s *= np.exp(log_steps(theta, at) - log_steps(self.fit.theta, at))
            parts = _parts(parts_of(theta, at), step_s)
        if self.faster_log or self.doubt is not None:
            spread = np.hypot(spread, self._doubts(keys) * stretch)
        return step_s, np.minimum(spread, LARGEST_LOG_SPREAD), parts

    def _by_form(self, at: Places) -> tuple[Floats, Floats, Floats, Parts]:
        """(rows,) ln T over the unit, raised by its variance; that; (parameters, rows) deviations; the form."""
        log_step, unsure, left, form = self.fit.predict(at)
        variance = left + (unsure**2).sum(axis=0)
        return log_step + SHADE * np.minimum(variance, SHADE_LIMIT), variance, unsure, form

    def _of_both(self, keys: Floats, step_s: Floats, spread: Floats) -> tuple[Floats, Floats]:
        """Step seconds and deviation of ln T where either hypothesis may hold: the median of both.

        The deviation is that of a normal distribution whose 90 % interval is as wide as the one of both: a hypothesis
        that is hardly probable, and very unsure, widens it by as much as it is probable.
        """
        assert self.overlapped is not None
        expected, variance = self.overlapped.predict(keys)
        deviations = np.stack([spread, np.sqrt(variance + NOISE_SD**2)])
        middle, apart, shares = self._between(np.stack([np.log(step_s), expected]), deviations)
        return np.exp(middle), half_width_of(apart, deviations, shares) / NOMINAL

    def _between(self, means: Floats, deviations: Floats) -> tuple[Floats, Floats, Floats]:
        """(rows,) median of both hypotheses' ln T, (2, rows) how far each mean lies from it, and (2, 1) shares."""
        shares = np.array([[1.0 - self.overlapped_share], [self.overlapped_share]])
        middle = median_of(means, deviations, shares)
        return middle, means - middle, shares

    def answerable(self, keys: Floats) -> Mask:
        """(rows,) whether compute is known well enough for an answer."""
        if self.doubt is None:
            return np.ones(len(keys), dtype=bool)
        return np.less_equal(self.doubt.log_sd(self.fit.points.places(keys).batch), MOST_COMPUTE_LOG_SD)

    def _theta_over_link(self, share: float = BYTES_SHARE) -> Floats:
        theta = self.fit.theta.copy()
        theta[INTER] += exchange_over(self.faster_log, share)
        return theta

    def _doubts(self, keys: Floats) -> Floats:
        """(rows,) deviation of ln T by what facts leave unknown: of the link, and of what a host adds."""
        at = self.fit.points.places(keys)
        squares = np.zeros(len(keys))
        if self.faster_log:
            most, least = (log_steps(self._theta_over_link(share), at) for share in (BYTES_SHARE_LEAST, 1.0))
            squares += (0.5 * (most - least)) ** 2
        if self.doubt is not None:
            squares += self.doubt.host_log_sd(at.batch) ** 2
        return np.asarray(np.sqrt(squares))

    def _answer_as_measured(self, keys: Floats, step_s: Floats, spread: Floats, parts: Floats) -> None:
        """A configuration that was measured is answered as measured."""
        rows, points = self.measured.find(keys)
        if len(rows):
            ran_s = self.measured.step_s[points]
            parts[:, rows] *= ran_s / step_s[rows]
            step_s[rows], spread[rows] = ran_s, FLOOR_LOG_SPREAD * self.multiplier / NOMINAL

    def log_covariance(self, keys: Floats) -> Floats:
        """(rows, rows) covariance of ln(true step) about the prediction."""
        at = self.fit.points.places(keys)
        log_step, variance, unsure, _ = self._by_form(at)
        stretch = (self.multiplier / NOMINAL) ** 2
        covariance = (self.fit.residual_covariance(at) + unsure.T @ unsure) * stretch
        if self.overlapped is not None:
            expected, other = self.overlapped.predict(keys)
            deviations = np.sqrt(np.stack([(variance + FLOOR_LOG_SPREAD**2) * stretch, other + NOISE_SD**2]))
            _, apart, shares = self._between(
                np.stack([log_step + np.log(self.fit.points.unit_s), expected]), deviations
            )
            covariance = (1.0 - self.overlapped_share) * covariance + (shares * apart).T @ apart
            covariance += self.overlapped_share * self.overlapped.covariance(keys)
            # As wide as the interval of both, plus the error that no model explains: correlations of errors stay.
            variance_of_both = (half_width_of(apart, deviations, shares) / NOMINAL) ** 2
            floor = shares[:, 0] @ np.array([(FLOOR_LOG_SPREAD**2) * stretch, NOISE_SD**2])
            scale = np.sqrt(np.maximum(variance_of_both - floor, 0.0) / np.diag(covariance))
            covariance = covariance * np.outer(scale, scale)
        if self.faster_log or self.doubt is not None:
            doubts = self._doubts(keys)
            covariance = covariance + np.outer(doubts, doubts) * stretch
        return np.asarray((covariance + covariance.T) * 0.5)

    def extrapolation(self, keys: Floats) -> Floats:
        """How far outside the measured range of nodes, workers and batch, the largest of the ratios; at least 1."""
        measured = self.measured_keys
        beyond = keys[:, [0, 1, 3]] / measured[:, [0, 1, 3]].max(axis=0)
        below = measured[:, 3].min() / keys[:, 3]
        return np.asarray(np.maximum(np.maximum(beyond.max(axis=1), below), 1.0))


def median_of(means: Floats, deviations: Floats, shares: Floats) -> Floats:
    """(rows,) median of a mixture of two normal distributions, (2, rows) each, to a cell of the way between the means.

    Along the way from the first mean to the second the share below rises. Newton's steps find the cell that bisection
    would end in, with few values of the normal distribution; it is bisected where they do not tell.
    """
    apart = means[1] - means[0]
    scales = np.abs(apart) / deviations
    # Where the normal distributions are nearly straight between the means, the weights determine the median.
    weight = shares[0] * scales[0], shares[1] * scales[1]
    at = np.divide(weight[1], weight[0] + weight[1], out=np.full(len(apart), 0.5), where=apart != 0.0)
    at += _newton(at, scales, shares)
    left, own = np.arange(len(at)), scales
    for _ in range(NEWTON_STEPS):
        centres = (np.minimum(np.maximum(np.floor(at[left] * CELLS), 0.0), CELLS - 1.0) + 0.5) / CELLS
        step = _newton(centres, own, shares)
        inside = (np.abs(step) < SURE_OF_CELL / CELLS) & (own.max(axis=0) < STEEP)
        at[left] = np.where(inside, centres, centres + step)
        left = left[~inside]
        if not len(left):
            break
        own = scales[:, left]
    at[left] = _bisect(scales[:, left], shares)
    return np.asarray(means[0] + at * apart)


def _newton(at: Floats, scales: Floats, shares: Floats) -> Floats:
    """Distance of the median from some places between the means, if the share below were linear there."""
    first, second = at * scales[0], (at - 1.0) * scales[1]
    short = 0.5 - shares[0] * scipy.special.ndtr(first) - shares[1] * scipy.special.ndtr(second)
    slope = shares[0] * scales[0] * np.exp(-0.5 * first**2) + shares[1] * scales[1] * np.exp(-0.5 * second**2)
    return np.asarray(short / np.maximum(slope / np.sqrt(2.0 * np.pi), 1e-12))


def _bisect(scales: Floats, shares: Floats) -> Floats:
    """(rows,) place of the median on the way between the means: the centre of one of CELLS cells."""
    at, step = np.full(scales.shape[1], 0.5), 0.25
    for _ in range(BISECTIONS):
        below = shares[0] * scipy.special.ndtr(at * scales[0])
        below += shares[1] * scipy.special.ndtr((at - 1.0) * scales[1])
        at += np.where(below < 0.5, step, -step)
        step *= 0.5
    return at


def half_width_of(apart: Floats, deviations: Floats, shares: Floats) -> Floats:
    """(rows,) distance within which 90 % of two mixed normal distributions lie, (2, rows) apart, by bisection."""
    # Within the larger of both there is 90 % of either: halved below it.
    at = (np.abs(apart) + NOMINAL * deviations).max(axis=0)
    step = 0.5 * at
    at = at - step
    for _ in range(HALVINGS):
        step = 0.5 * step
        within = scipy.special.ndtr((at - apart) / deviations) - scipy.special.ndtr((-at - apart) / deviations)
        at = at + np.where((shares * within).sum(axis=0) < WITHIN, step, -step)
    return np.asarray(at)


def _parts(form: Parts, step_s: Floats) -> Floats:
    """Parts of the step: compute in proportion to its time alone, and by size the exchange that it does not hide."""
    compute = step_s * np.exp(np.minimum(form.log_compute - form.log_step, 0.0))
    exposed = step_s - compute
    exchange = form.intra + form.inter
    intra = np.divide(form.intra, exchange, out=np.ones(len(step_s)), where=exchange > 0.0) * exposed
    return np.stack([compute, intra, exposed - intra])
