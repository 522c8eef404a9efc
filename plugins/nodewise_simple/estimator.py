"""A rule as an estimator: it predicts rows of settings with measured runs, and states how far each row extrapolates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Assessment,
    Configurations,
    Context,
    Floats,
    Network,
    Options,
    Predictions,
    Profile,
    Query,
    Refusal,
    RowRefusal,
    as_ints,
    freeze,
)
from nodewise_simple.evidence import (
    KEPT_JOBS,
    MOST_KEPT_ROWS,
    Points,
    Rows,
    asked_of,
    boundaries,
    more_replicas,
    near,
    points_of,
)
from nodewise_simple.rules import Curve, Rule
from nodewise_simple.settings import Setting
from nodewise_simple.spread import DEVIATION_TO_MEAN, Spread

__all__ = ["NOT_WHOLE", "RuleEstimator", "RuleModel", "crosses_more", "not_crossed", "predict_rows"]

NOT_WHOLE: Final = Refusal.unsupported(
    "the simple rules predict all-reduce jobs whose workers are alike and whose samples per step are known",
    "sync_mode",
    "batch_per_worker_samples",
)

STRENGTH: Final = 0.1
"""Strength of evidence for a rule: low, as a rule identifies nothing. Expected errors are stated beside it."""


@dataclass(frozen=True, slots=True, eq=False)
class RuleModel:
    """Curves by setting, and what the others lack; ``replicas`` as of the estimator, None = of no such job."""

    spread: Spread
    replicas: Spread | None
    network: Network
    precision: str
    points: Mapping[Setting, Points]
    curves: Mapping[Setting, Curve | str]

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002  # the protocol's
        """Predict every row at once; a setting that was not run is refused."""
        rule_rows = asked_of(configurations, self.network, self.precision)
        refused: dict[Refusal, list[int]] = {}
        if not rule_rows.usable.all():
            refused[NOT_WHOLE] = np.flatnonzero(~rule_rows.usable).tolist()
        pieces = []
        for setting, (at, rows) in rule_rows.places.items():
            curve = self.curves.get(setting, "")
            if isinstance(curve, str):
                refused.setdefault(lacking(curve, setting), []).extend(at.tolist())
                continue
            points = self.points[setting]
            beyond = crosses_more(points.rows, rows)
            if beyond.any():
                refused.setdefault(not_crossed(points.rows), []).extend(at[beyond].tolist())
            if not beyond.all():
                within = rows.take(~beyond)
                pieces.append(
                    (as_ints(at[~beyond]), predict_rows(curve(within), points, within, self.spread, self.replicas))
                )
        refusals = tuple(RowRefusal(tuple(sorted(out)), refusal) for refusal, out in refused.items())
        return Predictions.joined(len(configurations), pieces, refusals=refusals)


@dataclass(frozen=True, slots=True)
class RuleEstimator:
    """Fits one rule to every setting that was run.

    Attributes
    ----------
    rule : Rule
    spread : Spread
    replicas : Spread or None
        Of transformers' rows that differ from the run they are told by in the number of replicas alone; None = as all.
    """

    rule: Rule
    spread: Spread
    replicas: Spread | None = None

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Accept if runs suffice for some row; expect the errors of such extrapolations on published tables."""
        rows = len(query.configurations)
        rule_rows = asked_of(query.configurations, profile.network, profile.workload.precision or "")
        if rows and not rule_rows.usable.any():
            return Assessment(refusal=NOT_WHOLE, of_profile=not points_of(profile))
        points_by_setting = points_of(profile)
        evidence: list[str] = []
        errors = np.full(rows, np.inf)
        refusal = Refusal.missing("no run of an all-reduce job was observed", "observations")
        for setting, (at, own) in rule_rows.places.items():
            points = points_by_setting.get(setting)
            curve = "" if points is None else draw(self.rule, points)
            if points is None or isinstance(curve, str):
                refusal = lacking(str(curve), setting)
                continue
            beyond = crosses_more(points.rows, own)
            if beyond.all():
                refusal = not_crossed(points.rows)
                continue
            evidence.append(f"{len(points)} measured configurations on {setting.device or 'a device not stated'}")
            expected = DEVIATION_TO_MEAN * _deviations(points, own, self.spread, self._replicas(profile))
            errors[at] = np.where(beyond, np.inf, expected)
        if not evidence:
            return Assessment(refusal=refusal, of_profile=not points_by_setting)
        return Assessment(
            evidence=tuple(dict.fromkeys(evidence)),
            strength=STRENGTH,
            expected_log_error=freeze(errors),
        )

    def fit(self, profile: Profile, context: Context) -> RuleModel:  # noqa: ARG002  # the protocol's
        """Draw the rule's curve through the points of every setting."""
        points = points_of(profile)
        curves = {setting: draw(self.rule, each) for setting, each in points.items()}
        precision = profile.workload.precision or ""
        return RuleModel(self.spread, self._replicas(profile), profile.network, precision, points, curves)

    def _replicas(self, profile: Profile) -> Spread | None:
        """A transformer computes long enough for what data parallelism adds to be little of its step."""
        return None if profile.workload.transformer is None else self.replicas


def draw(rule: Rule, points: Points) -> Curve | str:
    """A rule's curve through points, or what they lack: an assessment and the fit after it need the same."""
    return _draw_curve(rule, points) if len(points) <= MOST_KEPT_ROWS else rule(points)


@lru_cache(KEPT_JOBS)
def _draw_curve(rule: Rule, points: Points) -> Curve | str:
    return rule(points)


def predict_rows(
    step_s: Floats, points: Points, rows: Rows, spread: Spread, replicas: Spread | None = None
) -> Predictions:
    """Predictions for rows of one setting; measured rows have their measured values."""
    there = near(points, rows)
    return Predictions.of(
        np.where(there.measured, points.step_s[there.point], step_s),
        log_spread=_deviations(points, rows, spread, replicas),
        extrapolation=np.exp(np.maximum(there.reach, 0.0)),
    )


def _deviations(points: Points, rows: Rows, spread: Spread, replicas: Spread | None) -> Floats:
    """Deviation of ln(step) of each row; ``replicas``: of those where nothing but the number of replicas grows."""
    reach = near(points, rows).reach
    deviations = spread.at(reach)
    if replicas is None:
        return deviations
    return np.where((reach >= 0.0) & more_replicas(points, rows), replicas.at(reach), deviations)


def crosses_more(runs: Rows, rows: Rows) -> NDArray[np.bool_]:
    """Rows whose exchange crosses a boundary that no run crosses: rules have no term for exchange."""
    return np.asarray(boundaries(rows) > boundaries(runs).max())


def not_crossed(runs: Rows) -> Refusal:
    """Why rows beyond the runs' boundary are refused."""
    where = "one node" if boundaries(runs).max() else "one device"
    text = f"every observed run is on {where}, and the rule has no term for exchange beyond it: measure a run on two"
    return Refusal.missing(text, "observations")


def lacking(what: str, setting: Setting) -> Refusal:
    """Why a setting has no curve."""
    where = f"on {setting.device or 'a device that is not stated'} over this link, in this format and partition"
    return Refusal.missing(f"{what or 'a run'} {where} must be measured first", "observations")
