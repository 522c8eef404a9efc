"""The fitted model: step times of data-parallel all-reduce jobs over nodes, workers, placement and batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import (
    Configurations,
    Floats,
    Ints,
    Notice,
    Options,
    Predictions,
    Reason,
    Refusal,
    RowRefusal,
    RowStatus,
    SyncMode,
    freeze,
)
from nodewise_scaling.fitting import Fitted
from nodewise_scaling.form import Places, parts_of
from nodewise_scaling.points import MEASUREMENT_LOG_SPREAD, Points, keys_of

__all__ = ["DeviceModel", "ScalingModel", "refusals_of"]

SHADE: Final = 1.0
SHADE_LIMIT: Final = 0.1
"""The expected step is told, not the median: for a log-normal error of variance v, throughputs err least on average
where ln T is raised by v (times SHADE); variances beyond SHADE_LIMIT are no longer normal."""

FLOOR_LOG_SPREAD: Final = 0.08
"""What no model of nodes, workers and batch tells, such as which placement: 2.6 to 8.7 % between placements."""

NOMINAL: Final = 1.6448536269514722
"""Deviations of a normal 90 % interval: the learned multiplier is of that interval."""

LARGEST_LOG_SPREAD: Final = 5.0
"""A factor of 150 either way: more doubt says no more."""

CHUNK_ROWS: Final = 16_384
"""Rows predicted at a time: what caches hold."""

PARTS: Final = ("compute", "exchange_intra_node", "exchange_inter_node")


@dataclass(frozen=True, slots=True, eq=False)
class DeviceModel:
    """The fit of one device, all that was measured on it, and by how much deviations are multiplied for an interval."""

    fit: Fitted
    multiplier: float
    measured: Points

    def predicted(self, keys: Floats) -> tuple[Floats, Floats, Floats]:
        """(rows,) step seconds, (rows,) deviation of their logarithm, (3, rows) parts of the step."""
        rows = len(keys)
        step_s, spread, parts = np.empty(rows), np.empty(rows), np.empty((len(PARTS), rows))
        for start in range(0, rows, CHUNK_ROWS):
            chunk = slice(start, start + CHUNK_ROWS)
            at = self.fit.points.places(keys[chunk])
            log_step, unsure, left = self.fit.predicted(at)
            variance = left + (unsure**2).sum(axis=0)
            shaded = log_step + SHADE * np.minimum(variance, SHADE_LIMIT)
            step_s[chunk] = self.fit.points.unit_s * np.exp(shaded)
            spread[chunk] = np.sqrt(variance + FLOOR_LOG_SPREAD**2)
            parts[:, chunk] = self._parts(at, step_s[chunk])
        self._as_measured(keys, step_s, spread, parts)
        return step_s, np.minimum(spread * self.multiplier / NOMINAL, LARGEST_LOG_SPREAD), parts

    def _parts(self, at: Places, step_s: Floats) -> Floats:
        """Compute as if alone, in proportion to the step; the exchange that it does not hide, by size."""
        form = parts_of(self.fit.theta, at)
        compute = step_s * np.exp(np.minimum(form.log_compute - form.log_step, 0.0))
        exposed = step_s - compute
        exchange = form.intra + form.inter
        intra = np.divide(form.intra, exchange, out=np.ones(len(step_s)), where=exchange > 0.0) * exposed
        return np.stack([compute, intra, exposed - intra])

    def _as_measured(self, keys: Floats, step_s: Floats, spread: Floats, parts: Floats) -> None:
        """A configuration that was measured is answered as measured."""
        points = self.measured
        known = {tuple(key): index for index, key in enumerate(points.keys.tolist())}
        candidates = np.ones(len(keys), dtype=bool)
        for column, seen in zip(keys.T.astype(np.int64), points.keys.T.astype(np.int64), strict=True):
            candidates &= np.isin(column, seen)
        for row in np.flatnonzero(candidates).tolist():
            index = known.get(tuple(keys[row].tolist()))
            if index is not None:
                parts[:, row] *= points.step_s[index] / step_s[row]
                step_s[row], spread[row] = points.step_s[index], FLOOR_LOG_SPREAD

    def log_covariance(self, keys: Floats) -> Floats:
        """(rows, rows) covariance of ln(true step) about the prediction."""
        at = self.fit.points.places(keys)
        _, unsure, _ = self.fit.predicted(at)
        covariance = self.fit.residual_covariance(at) + unsure.T @ unsure
        return np.asarray((covariance + covariance.T) * (0.5 * (self.multiplier / NOMINAL) ** 2))

    def extrapolation(self, keys: Floats) -> Floats:
        """How far outside the measured range of nodes, workers and batch, the largest of the ratios; at least 1."""
        seen = self.fit.points.keys
        beyond = keys[:, [0, 1, 3]] / seen[:, [0, 1, 3]].max(axis=0)
        below = seen[:, 3].min() / keys[:, 3]
        return np.asarray(np.maximum(np.maximum(beyond.max(axis=1), below), 1.0))


class ScalingModel:
    """Fits by device.

    Parameters
    ----------
    devices : mapping of device to DeviceModel
    notices : tuple of Notice
        What holds of every row.
    """

    measurement_log_spread = MEASUREMENT_LOG_SPREAD
    """Noise of one measured ln(step)."""

    def __init__(self, devices: Mapping[str, DeviceModel], notices: tuple[Notice, ...]) -> None:
        self._devices = devices
        self._evidence = {name: model.measured for name, model in devices.items()}
        self._notices = notices

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002 - the protocol's
        """Predict every row; refuse row by row what is no data-parallel all-reduce job, or on another device."""
        rows = len(configurations)
        refusals, groups = refusals_of(configurations, self._evidence)
        status = np.full(rows, int(RowStatus.REFUSED), dtype=np.int64)
        values = np.zeros((3 + len(PARTS), rows))
        notices = list(self._notices)
        for device, members in groups.items():
            model = self._devices[device]
            keys, assumed = _asked(model, configurations, members)
            notices += assumed
            step_s, spread, parts = model.predicted(keys)
            status[members] = int(RowStatus.ANSWERED)
            values[:, members] = np.vstack([step_s, spread, model.extrapolation(keys), parts])
            if not device:
                notices += _assumed(configurations, members)
        breakdown = {name: freeze(values[3 + index]) for index, name in enumerate(PARTS)}
        bottleneck = np.where(status == int(RowStatus.ANSWERED), values[3:].argmax(axis=0), -1)
        return Predictions(
            status=freeze(status),
            step_s=freeze(values[0]),
            log_spread=freeze(values[1]),
            extrapolation=freeze(values[2]),
            breakdown_s=breakdown,
            bottlenecks=PARTS,
            bottleneck_index=freeze(bottleneck),
            refusals=refusals,
            notices=tuple(notices),
        )

    def log_covariance(self, configurations: Configurations, options: Options) -> Floats:  # noqa: ARG002 - the protocol's
        """(rows, rows) covariance of ln(true step) about the prediction; 0 in rows that are refused."""
        covariance = np.zeros((len(configurations), len(configurations)))
        _, groups = refusals_of(configurations, self._evidence)
        for device, members in groups.items():
            keys, _ = _asked(self._devices[device], configurations, members)
            covariance[np.ix_(members, members)] = self._devices[device].log_covariance(keys)
        return covariance


def _asked(model: DeviceModel, configurations: Configurations, members: Ints) -> tuple[Floats, list[Notice]]:
    """What some rows ask; a batch that they do not say is the one that most measured configurations had."""
    keys = keys_of(configurations.take(members))
    unsaid = (configurations.batch_per_worker[members] == 0) & (configurations.global_batch[members] == 0)
    measured = model.measured.keys[:, 3]
    if not unsaid.any() or (measured == 1.0).all():
        return keys, []
    batches, counts = np.unique(measured, return_counts=True)
    usual = float(batches[counts == counts.max()].max())
    keys[unsaid, 3] = usual
    if len(batches) == 1:
        return keys, []
    rows = members[unsaid]
    message = f"the batch is not said and taken as {usual:.0f} samples per worker, which most measured runs had"
    return keys, [Notice("BATCH_ASSUMED", message, tuple(rows.tolist()) if len(rows) < len(configurations) else ())]


def _assumed(configurations: Configurations, members: Ints) -> list[Notice]:
    """That evidence of an unstated device is taken as that of the devices asked about."""
    names = np.array(configurations.device_names())[members]
    stated = names != ""
    if not stated.any():
        return []
    named = ", ".join(sorted(set(names[stated].tolist())))
    rows = members[stated]
    message = f"the evidence does not say its device: it is taken as that of {named}"
    return [Notice("DEVICE_ASSUMED", message, tuple(rows.tolist()) if len(rows) < len(configurations) else ())]


def refusals_of(
    configurations: Configurations, evidence: Mapping[str, Points]
) -> tuple[tuple[RowRefusal, ...], dict[str, Ints]]:
    """Rows that are refused, and the rows that each device's evidence answers."""
    mode = configurations.sync_mode
    parallel = (configurations.tensor_parallel > 1) | (configurations.pipeline_parallel > 1)
    reasons = np.select([mode != SyncMode.ALLREDUCE, parallel, configurations.workers < 1], [1, 2, 3], 0)
    found = [
        RowRefusal(tuple(rows.tolist()), _REFUSALS[number])
        for number in _REFUSALS
        for rows in (np.flatnonzero(reasons == number),)
        if len(rows)
    ]
    groups: dict[str, Ints] = {}
    devices = tuple(evidence)
    for index, name in enumerate(configurations.devices):
        rows = np.flatnonzero((configurations.device_index == index) & (reasons == 0))
        if not len(rows):
            continue
        device = _answering(name, devices)
        if device is None:
            known = ", ".join(each or "a device that is not stated" for each in devices) or "no device"
            refusal = Refusal(
                Reason.EVIDENCE_MISSING,
                f"all-reduce runs are known of {known}, not of {name or 'a device that is not stated'}",
                ("observations",),
            )
            found.append(RowRefusal(tuple(rows.tolist()), refusal))
        else:
            link = configurations.link_bytes_per_s[rows]
            same = (link == 0.0) | np.isin(link, list(evidence[device].links))
            if not same.all():
                found.append(RowRefusal(tuple(rows[~same].tolist()), _OTHER_LINK))
                rows = rows[same]
            if len(rows):
                known_rows = groups.get(device)
                groups[device] = rows if known_rows is None else np.sort(np.concatenate((known_rows, rows)))
    return tuple(sorted(found, key=lambda each: each.rows)), groups


def _answering(asked: str, devices: tuple[str, ...]) -> str | None:
    """The device whose evidence answers: its own, else that of an unstated one, else the only one if none is asked."""
    if asked in devices:
        return asked
    if "" in devices:
        return ""
    return devices[0] if not asked and len(devices) == 1 else None


_OTHER_LINK: Final = Refusal(
    Reason.EVIDENCE_MISSING,
    "a link is asked about that no measured run had: exchange is not scaled to another link",
    ("observations",),
)

_REFUSALS: Final = {
    1: Refusal(
        Reason.UNSUPPORTED_CONFIGURATION,
        "the scaling model describes synchronous all-reduce: sync mode must be ALLREDUCE",
    ),
    2: Refusal(
        Reason.UNSUPPORTED_CONFIGURATION,
        "the scaling model describes data parallelism: tensor_parallel and pipeline_parallel must be 1",
    ),
    3: Refusal(Reason.UNSUPPORTED_CONFIGURATION, "the scaling model answers from 1 worker on"),
}
