"""The fitted model: groups the rows of a question by curve, looks each up, and refuses the others."""

from __future__ import annotations

import contextlib
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
from nodewise_queueing.heterogeneous import mixed_columns
from nodewise_queueing.hybrid import hybrid_columns
from nodewise_queueing.phase_model import PhaseModel
from nodewise_queueing.rows import Class, CurveKey, Group, plan_of
from nodewise_queueing.simulation import SimulationRow, simulated_columns
from nodewise_queueing.situation import Situation
from nodewise_queueing.support import RefusalError, Support
from nodewise_queueing.tables import Columns, Curve

__all__ = ["QueueingModel"]

KEPT_CURVES: Final = 512
"""Most curves, and points of workers of different classes, that a model caches; beyond that it starts anew. A curve of
KEPT_WORKERS takes 1.2 MB."""


MOST_STEP_S: Final = 1e9
"""A step of 30 years: phases that make one are wrong."""

_TOO_LONG: Final = Refusal.unsupported(
    f"a step would take more than {MOST_STEP_S:g} s: check the units of the phase timings"
)


_RowAnswers = tuple[Ints | None, Columns]
"""Rows of a question, None = all of it, with their answers."""


class QueueingModel:
    """Curves over workers, one per device, mode and setting, made at their first use.

    Shared between threads: a curve is stored as a whole, and two that are made at once are equal.

    Parameters
    ----------
    support : Support
        What the evidence supports.
    fits : mapping of (device, mode) to CurveModel
        Fits where only throughputs are known.
    phases : mapping of device to PhaseModel
        Fits where phases were timed.
    devices_per_worker : int
        Devices that add up their gradients before they push them.
    """

    def __init__(
        self,
        support: Support,
        *,
        phases: Mapping[str, PhaseModel],
        fits: Mapping[tuple[str, int], CurveModel],
        devices_per_worker: int = 1,
    ) -> None:
        self._support = support
        self._devices_per_worker = devices_per_worker
        self._phases = phases
        self._fits = fits
        self._curves: dict[CurveKey, Curve] = {}
        self._points: dict[CurveKey, Columns] = {}

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict every row; rows outside the model or the evidence are refused one by one."""
        plan = plan_of(configurations, self._devices_per_worker)
        simulate = options.fidelity == Fidelity.SIMULATE
        refusals = [RowRefusal(rows, refusal) for rows, refusal in plan.refusals]
        answers: list[_RowAnswers] = []
        for group in plan.groups:
            if simulate:
                self._simulate(group, configurations, options, answers, refusals)
            else:
                self._answer(group, configurations, answers, refusals)
        answers = [_possible(each, len(configurations), refusals) for each in answers]
        pieces = [(at, columns.predictions()) for at, columns in answers if len(columns.bottleneck)]
        answer = Predictions.joined(len(configurations), pieces, refusals=tuple(refusals))
        return replace(answer, simulated=True) if simulate and pieces else answer

    def prepare(self, key: CurveKey) -> None:
        """Make the first table of a curve ahead of questions; nothing where the evidence supports none."""
        with contextlib.suppress(RefusalError):
            self._curve(key).reaching(1)

    # --- by the laws

    def _answer(
        self, group: Group, configurations: Configurations, answers: list[_RowAnswers], refusals: list[RowRefusal]
    ) -> None:
        """Answer the rows of one curve, or refuse them with the reason."""
        keys = group.key.by_mode()
        try:
            for key in keys:
                group = self._answerable_part(key, group, len(configurations), refusals)
            parts = [
                self._point(key) if key.classes else self._curve(key).reaching(group.largest).take(group.workers)
                for key in keys
            ]
        except RefusalError as refused:
            refusals.append(RowRefusal(_members(group, len(configurations)), refused.refusal))
            return
        if group.key.classes:
            parts = [_repeat(columns, len(group.workers)) for columns in parts]
        rows = slice(None) if group.rows is None else group.rows
        answers.append((group.rows, _join(parts, configurations, rows)))

    def _answerable_part(self, key: CurveKey, group: Group, rows: int, refusals: list[RowRefusal]) -> Group:
        """The part of a group that evidence at one number of workers answers: all of it if there are more."""
        only = None if key.classes else self._curve(key).only
        if only is None or (measured := group.workers == only).all():
            return group
        elsewhere = self._support.elsewhere(key.mode, only)
        if not measured.any():
            raise elsewhere
        members = np.array(_members(group, rows), dtype=np.int64)
        refusals.append(RowRefusal(tuple(members[~measured].tolist()), elsewhere.refusal))
        return Group(group.key, freeze(members[measured]), freeze(group.workers[measured]), only)

    def _curve(self, key: CurveKey) -> Curve:
        curve = self._curves.get(key)
        if curve is None:
            device = self._support.device(key)
            phases = self._phases[device].on(key.device) if device in self._phases else None
            model = phases or self._fits[device, key.mode]
            if key.setting.node_shared and not (phases is not None and phases.by_placement):
                # Placement has no effect here: one curve serves both.
                alone = replace(key, setting=replace(key.setting, node_shared=False))
                return self._curves.setdefault(key, self._curve(alone))
            own = self._support.notices(device, key.device)

            def build(population: int) -> Columns:
                table = model.table(key, population)
                return table.with_notices(own) if own else table

            if len(self._curves) >= KEPT_CURVES:
                self._curves.clear()
            curve = self._curves.setdefault(key, Curve(build, self._support.only(device, key)))
        return curve

    def _point(self, key: CurveKey) -> Columns:
        """The answer for workers of different classes: one point, cached."""
        point = self._points.get(key)
        if point is None:
            situations = self._situations(key, key.classes)
            point = mixed_columns(key.mode, situations, [each.workers for each in key.classes], key.backup_workers)
            if len(self._points) >= KEPT_CURVES:
                self._points.clear()
            self._points[key] = point
        return point

    def _situations(self, key: CurveKey, classes: tuple[Class, ...]) -> list[Situation]:
        """Situations of the workers of each class; needs the phases of every device."""
        devices = self._support.devices_of(replace(key, classes=classes), phases_needed=True)
        situations = []
        for device, each in zip(devices, classes, strict=True):
            model = self._phases[device].on(each.device)
            situation = model.situation(key.mode, key.setting).slow_compute(each.compute_factor)
            own = self._support.notices(device, each.device)
            situations.append(replace(situation, notices=(*situation.notices, *own)))
        return situations

    # --- by simulation

    def _simulate(
        self,
        group: Group,
        configurations: Configurations,
        options: Options,
        answers: list[_RowAnswers],
        refusals: list[RowRefusal],
    ) -> None:
        """Simulate the rows of one curve one by one; equal rows are simulated once."""
        done: dict[int, list[Columns]] = {}
        for row, workers in zip(_members(group, len(configurations)), group.workers.tolist(), strict=True):
            try:
                if workers not in done:
                    done[workers] = self._runs(group.key, workers, options)
            except RefusalError as refused:
                refusals.append(RowRefusal((row,), refused.refusal))
                continue
            at = freeze(np.array([row], dtype=np.int64))
            answers.append((at, _join(done[workers], configurations, at)))

    def _runs(self, key: CurveKey, workers: int, options: Options) -> list[Columns]:
        """Simulations of the modes of a row."""
        classes = key.classes or (Class(key.device, workers, 1.0),)
        counts = tuple(alike.workers for alike in classes)
        parts = []
        for each in key.by_mode():
            situations = tuple(self._situations(each, classes))
            parts.append(simulated_columns(SimulationRow(each.mode, situations, counts, key.backup_workers), options))
        return parts


def _join(parts: list[Columns], configurations: Configurations, rows: Ints | slice) -> Columns:
    """The answers of some rows' modes joined into one."""
    if len(parts) == 1:
        return parts[0]
    fraction, switch_s = configurations.hybrid_sync_fraction[rows], configurations.hybrid_switch_s[rows]
    return hybrid_columns(parts[0], parts[1], fraction, switch_s)


def _members(group: Group, rows: int) -> tuple[int, ...]:
    return tuple(range(rows)) if group.rows is None else tuple(group.rows.tolist())


def _repeat(columns: Columns, rows: int) -> Columns:
    """One answer for several rows with the same question."""
    return replace(
        columns,
        values=freeze(np.repeat(columns.values, rows, axis=1)),
        bottleneck=freeze(columns.bottleneck.repeat(rows)),
        unsaid=tuple(each.repeat(rows) for each in columns.unsaid),
    )


def _possible(answered: _RowAnswers, rows: int, refusals: list[RowRefusal]) -> _RowAnswers:
    """The rows without those of implausibly long steps, which would distort the answer to the others."""
    at, columns = answered
    step_s = columns.values[0]
    if not len(step_s) or step_s.max() <= MOST_STEP_S:
        return answered
    is_possible = step_s <= MOST_STEP_S
    members = np.arange(rows) if at is None else at
    refusals.append(RowRefusal(tuple(members[~is_possible].tolist()), _TOO_LONG))
    return freeze(members[is_possible]), columns.take(np.flatnonzero(is_possible))
