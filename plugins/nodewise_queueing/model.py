"""The fitted model: sorts the rows of a question, looks each up in its curve, and refuses the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import (
    Configurations,
    Fidelity,
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
    constant_ints,
    freeze,
)
from nodewise_queueing.curve_model import CurveModel
from nodewise_queueing.hybrid import hybrid_columns
from nodewise_queueing.mixed import mixed_columns, slowed
from nodewise_queueing.phase_model import PhaseModel
from nodewise_queueing.rows import Class, CurveKey, Group, Plan, plan_of
from nodewise_queueing.simulated import Simulated, simulated_columns
from nodewise_queueing.situation import Situation
from nodewise_queueing.support import PHASES, Support
from nodewise_queueing.tables import BASIC, Columns, Curve, Rows, Table

__all__ = ["QueueingModel"]

LARGEST_CURVES: Final = 4096
"""Curves that a model keeps; more settings than that are answered and forgotten."""


class QueueingModel:
    """Curves over workers, one per device, mode and setting, made when first asked for.

    Shared between threads: a curve is put into place whole, and two that are made at once are equal.

    Parameters
    ----------
    support : Support
        What the evidence supports.
    curves : mapping of (device, mode) to CurveModel
        Fits where only throughputs are known.
    phases : mapping of device to PhaseModel
        Fits where phases were timed.
    """

    def __init__(
        self,
        support: Support,
        *,
        phases: Mapping[str, PhaseModel],
        curves: Mapping[tuple[str, int], CurveModel],
    ) -> None:
        self._support = support
        self._phases = phases
        self._fits = curves
        self._curves: dict[CurveKey, Curve | Refusal] = {}
        self._points: dict[CurveKey, Columns | Refusal] = {}

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
        if not found and len(refusals) == 1:
            return Predictions.refused(len(configurations), refusals[0].refusal)
        answer = (
            _whole(found[0].columns) if _is_whole(plan, found) else _scattered(found, refusals, len(configurations))
        )
        return replace(answer, simulated=True) if simulate and found else answer

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
        modes = (SyncMode.SYNC, SyncMode.ASYNC) if group.key.mode == SyncMode.HYBRID else (group.key.mode,)
        parts: list[Columns] = []
        for mode in modes:
            key = group.key.of_mode(mode)
            columns = self._point(key) if key.classes else self._curved(key, group)
            if isinstance(columns, Refusal):
                refusals.append(RowRefusal(_members(group, len(configurations)), columns))
                return
            parts.append(columns)
        if group.key.classes:
            parts = [_repeated(columns, len(group.workers)) for columns in parts]
        columns = parts[0]
        if len(parts) == 2:
            rows = slice(None) if group.rows is None else group.rows
            fraction, switch_s = configurations.hybrid_sync_fraction[rows], configurations.hybrid_switch_s[rows]
            columns = hybrid_columns(parts[0], parts[1], fraction, switch_s)
        found.append(Rows(group.rows, columns))

    def _curved(self, key: CurveKey, group: Group) -> Columns | Refusal:
        curve = self._curve(key)
        if isinstance(curve, Refusal):
            return curve
        if curve.only is not None and not np.all(group.workers == curve.only):
            return self._support.elsewhere(key.mode, curve.only)
        return curve.reaching(group.largest).at(group.workers)

    def _curve(self, key: CurveKey) -> Curve | Refusal:
        found = self._curves.get(key)
        if found is None:
            found = self._new_curve(key)
            if len(self._curves) < LARGEST_CURVES:
                found = self._curves.setdefault(key, found)
        return found

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
        if known is None:
            situations = self._situations(key, key.classes)
            if isinstance(situations, Refusal):
                known = situations
            else:
                known = mixed_columns(key.mode, situations, [each.workers for each in key.classes], key.backup_workers)
            if len(self._points) < LARGEST_CURVES:
                self._points[key] = known
        return known

    def _situations(self, key: CurveKey, classes: tuple[Class, ...]) -> list[Situation] | Refusal:
        """What the workers of each class are described by; needs the phases of every device."""
        situations = []
        for each in classes:
            device = self._support.device(replace(key, device=each.device))
            if isinstance(device, Refusal):
                return device
            model = self._phases.get(device)
            if model is None:
                return Refusal(
                    Reason.EVIDENCE_MISSING,
                    f"throughputs alone do not tell the phases of {each.device or 'the workers'}: workers that are not "
                    "alike, and simulations, need phase timings",
                    (PHASES,),
                )
            situation = slowed(model.situation(key.mode, key.setting), each.compute_factor)
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
        members = _members(group, len(configurations))
        key = group.key
        modes = (SyncMode.SYNC, SyncMode.ASYNC) if key.mode == SyncMode.HYBRID else (key.mode,)
        done: dict[tuple[SyncMode, int], Columns] = {}
        for row, workers in zip(members, group.workers.tolist(), strict=True):
            parts = []
            for mode in modes:
                classes = key.classes or (Class(key.device, workers, 1.0),)
                if (mode, workers) not in done:
                    situations = self._situations(key.of_mode(mode), classes)
                    if isinstance(situations, Refusal):
                        refusals.append(RowRefusal(members, situations))
                        return
                    counts = tuple(each.workers for each in classes)
                    simulated = Simulated(mode, tuple(situations), counts, key.backup_workers)
                    done[mode, workers] = simulated_columns(simulated, options, workers)
                parts.append(done[mode, workers])
            columns = parts[0]
            if len(parts) == 2:
                at = slice(row, row + 1)
                fraction, switch_s = configurations.hybrid_sync_fraction[at], configurations.hybrid_switch_s[at]
                columns = hybrid_columns(parts[0], parts[1], fraction, switch_s)
            found.append(Rows(freeze(np.array([row], dtype=np.int64)), columns))


def _members(group: Group, rows: int) -> tuple[int, ...]:
    return tuple(range(rows)) if group.rows is None else tuple(group.rows.tolist())


def _repeated(columns: Columns, rows: int) -> Columns:
    """One answer for several rows that ask the same."""
    return replace(
        columns,
        values=freeze(np.repeat(columns.values, rows, axis=1)),
        bottleneck=freeze(columns.bottleneck.repeat(rows)),
    )


def _is_whole(plan: Plan, found: list[Rows]) -> bool:
    return len(found) == 1 and found[0].rows is None and not plan.refused


def _whole(columns: Columns) -> Predictions:
    """All rows from one curve."""
    return Predictions(
        status=constant_ints(len(columns.bottleneck), int(RowStatus.ANSWERED)),
        **columns.basic,  # type: ignore[arg-type]  # the names of BASIC are columns of Predictions
        breakdown_s=columns.breakdown_s,
        utilisation=columns.utilisation,
        bottlenecks=columns.parts,
        bottleneck_index=columns.bottleneck,
        once_s=columns.once_s,
        extra=columns.extras,
        notices=columns.notices,
    )


def _scattered(found: list[Rows], refusals: list[RowRefusal], rows: int) -> Predictions:
    """Rows from several curves; what a curve does not have is 0 in its rows."""
    parts = tuple(dict.fromkeys(name for each in found for name in each.columns.parts))
    stations = tuple(dict.fromkeys(name for each in found for name in each.columns.stations))
    extra = tuple(dict.fromkeys(name for each in found for name in each.columns.extra))
    status = np.full(rows, int(RowStatus.REFUSED), dtype=np.int64)
    bottleneck = np.full(rows, -1, dtype=np.int64)
    basic: dict[str, Floats] = {name: np.zeros(rows) for name in BASIC}
    breakdown: dict[str, Floats] = {name: np.zeros(rows) for name in parts}
    utilisation: dict[str, Floats] = {name: np.zeros(rows) for name in stations}
    extras: dict[str, Floats] = {name: np.zeros(rows) for name in extra}
    once_s = np.zeros(rows)
    notices: dict[Notice, list[Ints]] = {}
    for each in found:
        columns = each.columns
        at = np.arange(rows) if each.rows is None else each.rows
        status[at] = int(RowStatus.ANSWERED)
        for target, source in (
            (basic, columns.basic),
            (breakdown, columns.breakdown_s),
            (utilisation, columns.utilisation),
            (extras, columns.extras),
        ):
            for name, values in source.items():
                target[name][at] = values
        if columns.once_s is not None:
            once_s[at] = columns.once_s
        place = np.array([parts.index(name) for name in columns.parts])
        bottleneck[at] = place[columns.bottleneck]
        for notice in columns.notices:
            notices.setdefault(notice, []).append(at)
    return Predictions(
        status=freeze(status),
        **{name: freeze(column) for name, column in basic.items()},  # type: ignore[arg-type]  # as above
        breakdown_s={name: freeze(column) for name, column in breakdown.items()},
        utilisation={name: freeze(column) for name, column in utilisation.items()},
        bottlenecks=parts,
        bottleneck_index=freeze(bottleneck),
        once_s=freeze(once_s) if once_s.any() else None,
        extra={name: freeze(column) for name, column in extras.items()},
        refusals=tuple(sorted(refusals, key=lambda each: each.rows)),
        notices=tuple(
            replace(notice, rows=() if sum(map(len, at)) == rows else tuple(np.sort(np.concatenate(at)).tolist()))
            for notice, at in notices.items()
        ),
    )
