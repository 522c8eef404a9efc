"""The estimators that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import BASIC_COLUMNS, DEGREES, Estimator, EstimatorRecord, hookimpl
from nodewise_simple.estimator import RuleEstimator
from nodewise_simple.rules import RULES, last_known
from nodewise_simple.spread import MORE_REPLICAS, SPREADS
from nodewise_simple.utilisation import UtilisationEstimator

__all__ = ["nodewise_estimators"]

VERSION: Final = "1.2"
"""Of the rules and their constants: another version may predict otherwise from the same profile."""

_DESCRIPTIONS: Final = {
    "last-known": "The step of the largest measured scale, at equal samples per worker (ALLREDUCE)",
    "batch-line": "A step is a fixed part and a part in proportion to the samples per worker (ALLREDUCE)",
    "power-law": "Samples/s are a power of the workers (ALLREDUCE)",
    "constant-utilisation": "Devices reach one share of their peak: of runs, or published of transformers (ALLREDUCE)",
}


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Rules that need runs only, and constant utilisation."""
    columns = BASIC_COLUMNS | frozenset(DEGREES) | {"precision"}
    rules: dict[str, Estimator] = {
        name: RuleEstimator(rule, SPREADS[name], MORE_REPLICAS if rule is last_known else None)
        for name, rule in RULES.items()
    }
    return [
        EstimatorRecord(
            name=name,
            version=VERSION,
            description=_DESCRIPTIONS[name],
            estimator=estimator,
            capabilities=frozenset({"observations", "quick", "sync-mode:allreduce"}),
            columns=columns,
        )
        for name, estimator in {**rules, "constant-utilisation": UtilisationEstimator()}.items()
    ]
