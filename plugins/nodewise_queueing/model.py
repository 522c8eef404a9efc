"""The fitted model: sorts the rows of a question, looks each up in its curve, and refuses the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import (
    Configurations,
    Fidelity,
    Ints,
    Options,
    Predictions,
    Refusal,
    RowRefusal,
    freeze,
)
from nodewise_queueing.curve_model import CurveModel
from nodewise_queueing.hybrid import hybrid_columns
from nodewise_queueing.mixed import mixed_columns
from nodewise_queueing.phase_model import PhaseModel
from nodewise_queueing.rows import Class, CurveKey, Group, plan_of
from nodewise_queueing.simulated import Simulated, refusal_of, simulated_columns
from nodewise_queueing.situation import Situation
from nodewise_queueing.support import Support
from nodewise_queueing.tables import Columns, Curve, Rows, Table

__all__ = ["QueueingModel"]

KEPT_CURVES: Final = 512
"""Curves, and points of workers that are not alike, that a model keeps; when there are more it begins anew. A curve of
KEPT_WORKERS takes 1.2 MB."""


MOST_STEP_S: Final = 1e9
"""A step of 30 years: phases that make one are mistaken."""

_TOO_LONG: Final = Refusal.unsupported(f"a step would take more than {MOST_STEP_S:g} s: the phases cannot be meant so")


class QueueingModel:
    """Curves over workers, one per device, mode and setting, made when first asked for.

    Shared between threads: a curve is put into place whole, and two that are made at once are equal.

    Parameters
    ----------
    support : Support
        What the evidence supports.
    fits : mapping of (device, mode) to CurveModel
        Fits where only throughputs are known.
    phases : mapping of device to PhaseModel
        Fits where phases were timed.
    """

    def __init__(
        self,
        support: Support,
        *,
        phases: Mapping[str, PhaseModel],
        fits: Mapping[tuple[str, int], CurveModel],
    ) -> None:
        self._support = support
        self._phases = phases
        self._fits = fits
        self._curves: dict[CurveKey, Curve] = {}
        self._points: dict[CurveKey, Columns] = {}

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict every row; rows outside the model or the evidence are refused one by one."""
        plan = plan_of(configurations)
        simulate = options.fidelity == Fidelity.SIMULATE
        refusals = [RowRefusal(rows, refusal) for rows, refusal in plan.refused]
        found: list[Rows] = []
        for group in plan.groups:
            if simulate:
                self._simulated(group, configurations, options, found, refusals)
            else:
                self._answered(group, configurations, found, refusals)
        found = [_possible(each, len(configurations), refusals) for each in found]
        pieces = [(each.rows, each.columns.predictions()) for each in found if len(each.columns.bottleneck)]
        answer = Predictions.joined(len(configurations), pieces, refusals=tuple(refusals))
        return replace(answer, simulated=True) if simulate and pieces else answer

    def prepare(self, key: CurveKey) -> None:
        """Make the first table of a curve ahead of questions; nothing where the evidence supports none."""
        curve = self._curve(key)
        if not isinstance(curve, Refusal):
            curve.reaching(1)

    # --- by the laws

    def _answered(
        self, group: Group, configurations: Configurations, found: list[Rows], refusals: list[RowRefusal]
    ) -> None:
        """Answer the rows of one curve, or say why not."""
        keys = group.key.by_mode()
        for key in keys:
            kept = self._kept(key, group, len(configurations), refusals)
            if kept is None:
                return
            group = kept
        parts = []
        for key in keys:
            columns = self._point(key) if key.classes else self._curved(key, group)
            if isinstance(columns, Refusal):
                refusals.append(RowRefusal(_members(group, len(configurations)), columns))
                return
            parts.append(columns)
        if group.key.classes:
            parts = [_repeated(columns, len(group.workers)) for columns in parts]
        rows = slice(None) if group.rows is None else group.rows
        found.append(Rows(group.rows, _joined(parts, configurations, rows)))

    def _kept(self, key: CurveKey, group: Group, rows: int, refusals: list[RowRefusal]) -> Group | None:
        """The part of a group that evidence at one number of workers answers: all of it where there is more."""
        curve = None if key.classes else self._curve(key)
        if not isinstance(curve, Curve) or curve.only is None:
            return group
        measured = group.workers == curve.only
        if measured.all():
            return group
        members = np.array(_members(group, rows), dtype=np.int64)
        refusals.append(RowRefusal(tuple(members[~measured].tolist()), self._support.elsewhere(key.mode, curve.only)))
        if not measured.any():
            return None
        return Group(group.key, freeze(members[measured]), freeze(group.workers[measured]), curve.only)

    def _curved(self, key: CurveKey, group: Group) -> Columns | Refusal:
        curve = self._curve(key)
        return curve if isinstance(curve, Refusal) else curve.reaching(group.largest).at(group.workers)

    def _curve(self, key: CurveKey) -> Curve | Refusal:
        found = self._curves.get(key)
        if found is not None:
            return found
        made = self._new_curve(key)
        if isinstance(made, Refusal):
            return made
        if len(self._curves) >= KEPT_CURVES:
            self._curves.clear()
        return self._curves.setdefault(key, made)

    def _new_curve(self, key: CurveKey) -> Curve | Refusal:
        device = self._support.device(key)
        if isinstance(device, Refusal):
            return device
        model = self._phases.get(device) or self._fits[device, key.mode]
        own = self._support.notices(device, key.device)

        def build(population: int) -> Table:
            table = model.table(key, population)
            return table.noticed(own) if own else table

        return Curve(build, self._support.only(device, key))

    def _point(self, key: CurveKey) -> Columns | Refusal:
        """The answer for workers that are not alike: one point, remembered."""
        known = self._points.get(key)
        if known is not None:
            return known
        situations = self._situations(key, key.classes)
        if isinstance(situations, Refusal):
            return situations
        made = mixed_columns(key.mode, situations, [each.workers for each in key.classes], key.backup_workers)
        if len(self._points) >= KEPT_CURVES:
            self._points.clear()
        self._points[key] = made
        return made

    def _situations(self, key: CurveKey, classes: tuple[Class, ...]) -> list[Situation] | Refusal:
        """What the workers of each class are described by; needs the phases of every device."""
        devices = self._support.devices_of(replace(key, classes=classes), phases_needed=True)
        if isinstance(devices, Refusal):
            return devices
        situations = []
        for device, each in zip(devices, classes, strict=True):
            situation = self._phases[device].situation(key.mode, key.setting).slowed(each.compute_factor)
            own = self._support.notices(device, each.device)
            situations.append(replace(situation, notices=(*situation.notices, *own)))
        return situations

    # --- by simulation

    def _simulated(
        self,
        group: Group,
        configurations: Configurations,
        options: Options,
        found: list[Rows],
        refusals: list[RowRefusal],
    ) -> None:
        """Simulate the rows of one curve one by one; rows alike are simulated once."""
        key = group.key
        done: dict[int, list[Columns] | Refusal] = {}
        for row, workers in zip(_members(group, len(configurations)), group.workers.tolist(), strict=True):
            if workers not in done:
                done[workers] = self._runs(key, workers, options)
            parts = done[workers]
            if isinstance(parts, Refusal):
                refusals.append(RowRefusal((row,), parts))
            else:
                at = freeze(np.array([row], dtype=np.int64))
                found.append(Rows(at, _joined(parts, configurations, at)))

    def _runs(self, key: CurveKey, workers: int, options: Options) -> list[Columns] | Refusal:
        """Simulations of the modes that a row rests on."""
        parts = []
        classes = key.classes or (Class(key.device, workers, 1.0),)
        for each in key.by_mode():
            situations = self._situations(each, classes)
            if isinstance(situations, Refusal):
                return situations
            counts = tuple(alike.workers for alike in classes)
            simulated = Simulated(each.mode, tuple(situations), counts, key.backup_workers)
            refusal = refusal_of(simulated, options)
            if refusal is not None:
                return refusal
            parts.append(simulated_columns(simulated, options))
        return parts


def _joined(parts: list[Columns], configurations: Configurations, rows: Ints | slice) -> Columns:
    """One answer of the modes of some rows."""
    if len(parts) == 1:
        return parts[0]
    fraction, switch_s = configurations.hybrid_sync_fraction[rows], configurations.hybrid_switch_s[rows]
    return hybrid_columns(parts[0], parts[1], fraction, switch_s)


def _members(group: Group, rows: int) -> tuple[int, ...]:
    return tuple(range(rows)) if group.rows is None else tuple(group.rows.tolist())


def _repeated(columns: Columns, rows: int) -> Columns:
    """One answer for several rows that ask the same."""
    return replace(
        columns,
        values=freeze(np.repeat(columns.values, rows, axis=1)),
        bottleneck=freeze(columns.bottleneck.repeat(rows)),
    )


def _possible(answered: Rows, rows: int, refusals: list[RowRefusal]) -> Rows:
    """The rows without those whose step no plausible phase makes: they would spoil the answer to the others."""
    step_s = answered.columns.values[0]
    if not len(step_s) or step_s.max() <= MOST_STEP_S:
        return answered
    kept = step_s <= MOST_STEP_S
    members = np.arange(rows) if answered.rows is None else answered.rows
    refusals.append(RowRefusal(tuple(members[~kept].tolist()), _TOO_LONG))
    return Rows(freeze(members[kept]), answered.columns.take(np.flatnonzero(kept)))
