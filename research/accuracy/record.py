"""The committed figures: scores of the last accepted run, and what is worse than they are beyond their noise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from accuracy.scoring import Score, Scored, resampled_means
from nodewise.domain.columns import Floats

__all__ = ["RECORD", "paired", "recorded", "worsened", "written"]

RECORD: Final = Path(__file__).parent / "accepted.json"
DIGITS: Final = 4
LEAST: Final = 0.005
"""Half a point: what is worse by less is not worse."""
NOISE_LEVEL: Final = 0.05
"""Share of bootstrap samples that may say that nothing is worse."""
LEAST_COVERAGE: Final = 0.85
"""Intervals that cover more may become narrower."""
MEMORY: Final = {"memory_mape": LEAST, "false_fits": 0.0, "false_refusals": LEAST}
"""Scores of memory, and by how much each may rise: runs that run out of memory cost most."""


def recorded(found: Iterable[Scored]) -> dict[str, Any]:
    """Scores as a document: no figure of a table. Errors are columns over the units that a part has."""
    return {part.name: _part(part.scores) for part in found}


def _part(scores: Mapping[str, Score]) -> dict[str, Any]:
    units = sorted({unit for score in scores.values() for unit in score.units})
    return {
        "units": units,
        "estimators": {name: _document(each, units) for name, each in scores.items() if _told(each)},
    }


def _told(score: Score) -> bool:
    return any(score.metrics.get(name) for name in ("rows_count", "refused_count", "groups_count", "memory_mape"))


def _document(score: Score, units: Sequence[str]) -> dict[str, Any]:
    errors, missed = _rounded(score.units), _rounded(score.missed)
    return {
        "metrics": {name: value for name, value in _rounded(score.metrics).items() if value is not None},
        "errors": [errors.get(unit) for unit in units] if errors else [],
        "missed": [missed.get(unit) for unit in units] if missed else [],
        "regrets": _rounded(score.regrets),
    }


def _rounded(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in figures.items()}


def written(document: Mapping[str, Any]) -> str:
    """A line for each estimator, so that changes are seen where they are."""
    parts = []
    for name, part in sorted(document.items()):
        lines = [f"   {json.dumps(each)}: {json.dumps(score)}" for each, score in sorted(part["estimators"].items())]
        estimators = "{\n" + ",\n".join(lines) + "}" if lines else "{}"
        parts.append(
            f' {json.dumps(name)}: {{\n  "units": {json.dumps(part["units"])},\n  "estimators": {estimators}}}'
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def worsened(accepted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """What is worse than accepted in the parts that were scored, line by line."""
    for name, part in found.items():
        before = accepted.get(name, {"units": [], "estimators": {}})
        for estimator, scores in before["estimators"].items():
            if estimator not in part["estimators"]:
                yield f"{name}: {estimator} is gone"
                continue
            now = _by_unit(part["estimators"][estimator], part["units"])
            for line in _worse(_by_unit(scores, before["units"]), now):
                yield f"{name}: {estimator} {line}"


def _by_unit(scores: Mapping[str, Any], units: Sequence[str]) -> dict[str, Any]:
    """Columns over units as mappings of those that have a figure."""
    return {
        **scores,
        **{
            column: {unit: value for unit, value in zip(units, scores[column]) if value is not None}
            for column in ("errors", "missed")
        },
    }


def _worse(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    was, is_ = before["metrics"], now["metrics"]
    refused = is_.get("refused_count", 0) - was.get("refused_count", 0)
    if refused > 0:
        yield f"refuses {refused} rows more"
    for figures, words in (("errors", "errs by {:.3f} more in |ln|"), ("regrets", "loses {:.3f} more in decisions")):
        mean, low, _ = paired(now[figures], before[figures])
        if mean > LEAST and low > 0.0:
            yield words.format(mean)
    mean, low, _ = paired(now["missed"], before["missed"])
    if is_.get("coverage90", 1.0) < LEAST_COVERAGE and mean > LEAST and low > 0.0:
        yield f"covers {is_['coverage90']:.0%} instead of {was['coverage90']:.0%}"
    for name, most in MEMORY.items():
        if name in was and name not in is_:
            yield f"has no {name} any more"
        elif name in was and is_[name] > was[name] + most:
            yield f"has {name} {is_[name]:.3f} instead of {was[name]:.3f}"


def paired(first: Mapping[str, float], second: Mapping[str, float]) -> tuple[float, float, float]:
    """Mean difference of what both have, and the bootstrap's quantiles at NOISE_LEVEL from either end; 0 = none."""
    both = sorted(first.keys() & second.keys())
    if not both:
        return 0.0, 0.0, 0.0
    difference: Floats = np.array([first[unit] - second[unit] for unit in both])
    low, high = np.quantile(resampled_means(difference), [NOISE_LEVEL, 1.0 - NOISE_LEVEL])
    return float(difference.mean()), float(low), float(high)
