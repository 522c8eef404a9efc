"""A published model as an estimator: fits each kind of row apart and refuses what was not measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Configurations,
    Context,
    Network,
    Options,
    Predictions,
    Profile,
    Query,
    Refusal,
    RowRefusal,
    as_ints,
)

from .form import LEAST_STEP_S, Curve, Form
from .points import points_by_kind
from .rows import Kind, kinds_of, plain, rows_of

__all__ = ["STRENGTH", "FormEstimator", "FormModel"]

STRENGTH: Final = 0.01
"""Below every shipped estimator's: ``auto`` asks a baseline only where nobody else answers."""

_OBSERVATIONS: Final = ("observations",)
_NOT_PLAIN: Final = Refusal.unsupported(
    "the published models know data-parallel rows of alike workers with one micro-step per step"
)


@dataclass(frozen=True, slots=True, eq=False)
class FormModel:
    """Fitted curves by kind, and why the other kinds that were measured have none."""

    form: Form
    network: Network
    curves: Mapping[Kind, Curve]
    most_workers: Mapping[Kind, float]
    lacking: Mapping[Kind, Refusal]

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002  # the protocol's
        """Predict every row at once; a row of a kind that was not measured, or beyond the form's reach, is refused."""
        rows, simple = rows_of(configurations), plain(configurations)
        refused: dict[Refusal, list[int]] = {}
        places: dict[Kind, list[int]] = {}
        for row, kind in enumerate(kinds_of(configurations, self.network)):
            if not simple[row]:
                refused.setdefault(_NOT_PLAIN, []).append(row)
            elif kind in self.curves:
                places.setdefault(kind, []).append(row)
            else:
                refused.setdefault(self.lacking.get(kind) or unmeasured(self.form, kind), []).append(row)
        beyond = Refusal.missing(f"the form answers {self.form.reach}", *_OBSERVATIONS)
        pieces = []
        for kind, found in places.items():
            own = rows.take(as_ints(found))
            step_s = np.maximum(self.curves[kind](own), LEAST_STEP_S)
            answer = Predictions.of(
                step_s,
                extrapolation=np.maximum(own.workers / self.most_workers[kind], 1.0),
                refusals=RowRefusal.first(len(own), [(~np.isfinite(step_s), beyond)]),
            )
            pieces.append((as_ints(found), answer))
        refusals = tuple(RowRefusal(tuple(out), refusal) for refusal, out in refused.items())
        return Predictions.joined(len(configurations), pieces, refusals=refusals)


@dataclass(frozen=True, slots=True, eq=False)
class FormEstimator:
    """Assesses by counting, fits by the form's own rule."""

    form: Form

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Agree if the runs of any kind that is asked about suffice for the form."""
        refusals: list[Refusal] = []
        evidence: list[str] = []
        asked = query.configurations.take(as_ints(np.flatnonzero(plain(query.configurations))))
        if len(query.configurations) and not len(asked):
            return Assessment(refusal=_NOT_PLAIN)
        points = points_by_kind(profile)
        for kind in dict.fromkeys(kinds_of(asked, profile.network)):
            if kind not in points:
                refusals.append(unmeasured(self.form, kind))
                continue
            refusal = _insufficient(self.form, kind, self.form.lacks(points[kind], kind.sync_mode))
            if refusal is not None:
                refusals.append(refusal)
            else:
                evidence.append(f"{len(points[kind])} measured configurations, {_named(kind)}")
        if not evidence and refusals:
            return Assessment(refusal=refusals[0])
        return Assessment(evidence=tuple(evidence), strength=STRENGTH)

    def fit(self, profile: Profile, context: Context) -> FormModel:  # noqa: ARG002  # the protocol's
        """Fit every kind whose runs suffice."""
        curves: dict[Kind, Curve] = {}
        most_workers: dict[Kind, float] = {}
        lacking: dict[Kind, Refusal] = {}
        for kind, points in points_by_kind(profile).items():
            refusal = _insufficient(self.form, kind, self.form.lacks(points, kind.sync_mode))
            if refusal is not None:
                lacking[kind] = refusal
                continue
            curves[kind] = self.form.fitted(points, kind.sync_mode)
            most_workers[kind] = float(points.rows.workers.max())
        return FormModel(self.form, profile.network, curves, most_workers, lacking)


def unmeasured(form: Form, kind: Kind) -> Refusal:
    """Why a kind without any run is refused."""
    if kind.sync_mode not in form.sync_modes:
        return Refusal.unsupported(f"the form does not cover {kind.sync_mode.name}")
    return Refusal.missing(f"nothing was measured, {_named(kind)}", *_OBSERVATIONS)


def _insufficient(form: Form, kind: Kind, lacks: str) -> Refusal | None:
    if kind.sync_mode not in form.sync_modes:
        return unmeasured(form, kind)
    if not lacks:
        return None
    return Refusal.missing(f"the form needs {lacks}, {_named(kind)}", *_OBSERVATIONS)


def _named(kind: Kind) -> str:
    return f"{kind.sync_mode.name} on {kind.device or 'an accelerator that is not stated'}"
