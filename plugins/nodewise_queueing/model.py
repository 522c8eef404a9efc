"""The fitted model: sorts the rows of a question, looks each up in its curve, and refuses the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from nodewise.plugin import (
    Configurations,
    Floats,
    Ints,
    Notice,
    Options,
    Predictions,
    Refusal,
    RowRefusal,
    RowStatus,
    constant_ints,
    freeze,
)
from nodewise_queueing.curve_model import CurveModel
from nodewise_queueing.phase_model import PhaseModel
from nodewise_queueing.rows import CurveKey, Group, Plan, plan_of
from nodewise_queueing.support import Support
from nodewise_queueing.tables import Curve, Table

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

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002 - part of the protocol
        """Predict every row; rows outside the model or the evidence are refused one by one."""
        plan = plan_of(configurations)
        if len(plan.groups) == 1 and plan.groups[0].rows is None:
            group = plan.groups[0]
            curve = self._curve(group.key)
            if isinstance(curve, Refusal):
                return Predictions.refused(len(configurations), curve)
            return _looked_up(curve.reaching(group.largest), group.workers)
        return self._mixed(plan, len(configurations))

    def prepare(self, key: CurveKey) -> None:
        """Make the first table of a curve ahead of questions; nothing where the evidence supports none."""
        curve = self._curve(key)
        if not isinstance(curve, Refusal):
            curve.reaching(1)

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
            table = model.table(key.mode, key.setting, population)
            return table.noticed(own) if own else table

        return Curve(build)

    def _mixed(self, plan: Plan, rows: int) -> Predictions:
        """Several curves, or none, scattered over the rows."""
        refusals = [RowRefusal(found, refusal) for found, refusal in plan.refused]
        found: list[tuple[Group, Table]] = []
        for group in plan.groups:
            curve = self._curve(group.key)
            if isinstance(curve, Refusal):
                members = range(rows) if group.rows is None else group.rows.tolist()
                refusals.append(RowRefusal(tuple(members), curve))
            else:
                found.append((group, curve.reaching(group.largest)))
        return _scattered(found, tuple(sorted(refusals, key=lambda each: each.rows)), rows)


def _looked_up(table: Table, workers: Ints) -> Predictions:
    """All rows from one table."""
    values = freeze(table.values[:, workers])
    parts = 4 + len(table.parts)
    return Predictions(
        status=constant_ints(len(workers), int(RowStatus.ANSWERED)),
        step_s=values[0],
        log_spread=values[1],
        extrapolation=values[2],
        staleness_mean=values[3],
        breakdown_s=dict(zip(table.parts, values[4:parts])),
        utilisation=dict(zip(table.stations, values[parts:])),
        bottlenecks=table.parts,
        bottleneck_index=freeze(table.bottleneck[workers]),
        notices=table.notices,
    )


def _scattered(found: list[tuple[Group, Table]], refusals: tuple[RowRefusal, ...], rows: int) -> Predictions:
    """Rows from several tables; what a table does not have is 0 in its rows."""
    parts = tuple(dict.fromkeys(name for _, table in found for name in table.parts))
    stations = tuple(dict.fromkeys(name for _, table in found for name in table.stations))
    status = np.full(rows, int(RowStatus.REFUSED), dtype=np.int64)
    bottleneck = np.full(rows, -1, dtype=np.int64)
    common = np.zeros((4, rows))
    breakdown: dict[str, Floats] = {name: np.zeros(rows) for name in parts}
    utilisation: dict[str, Floats] = {name: np.zeros(rows) for name in stations}
    notices: list[Notice] = []
    for group, table in found:
        at = np.arange(rows) if group.rows is None else group.rows
        values = table.values[:, group.workers]
        status[at] = int(RowStatus.ANSWERED)
        common[:, at] = values[:4]
        for name, column in zip(table.parts, values[4:]):
            breakdown[name][at] = column
        for name, column in zip(table.stations, values[4 + len(table.parts) :]):
            utilisation[name][at] = column
        place = np.array([parts.index(name) for name in table.parts])
        bottleneck[at] = place[table.bottleneck[group.workers]]
        where = () if group.rows is None else tuple(group.rows.tolist())
        notices += [Notice(notice.reason, notice.message, where) for notice in table.notices]
    return Predictions(
        status=freeze(status),
        step_s=freeze(common[0]),
        log_spread=freeze(common[1]),
        extrapolation=freeze(common[2]),
        staleness_mean=freeze(common[3]),
        breakdown_s={name: freeze(column) for name, column in breakdown.items()},
        utilisation={name: freeze(column) for name, column in utilisation.items()},
        bottlenecks=parts,
        bottleneck_index=freeze(bottleneck),
        refusals=refusals,
        notices=tuple(notices),
    )
