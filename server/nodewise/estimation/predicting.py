"""Predicting with fitted models: one, or the parts of a mixture; a plugin that fails or lies is told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Notice, Options, Predictions
from nodewise.estimation.assessing import shown_of
from nodewise.estimation.check import checked
from nodewise.estimation.ignored import merged
from nodewise.estimation.mixture import Part, mixed
from nodewise.estimation.models import Fitted
from nodewise.estimation.question import Question
from nodewise.hosting.calls import call
from nodewise.hosting.registry import Loaded
from nodewise.plugin import EstimatorRecord, Model

__all__ = ["lost_part", "predicted", "predicted_by"]

Lookup = Callable[[str], Loaded[EstimatorRecord]]


def predicted(lookup: Lookup, fitted: Fitted, configurations: Configurations, question: Question) -> Predictions:
    """What a fitted model, or a mixture, predicts of every row.

    Parameters
    ----------
    lookup : callable
        From an estimator's name to what is loaded of it.
    configurations : Configurations
        As resolved.

    Raises
    ------
    NodewiseError
        As the estimator refused, ESTIMATOR_FAILED or ESTIMATOR_INVALID_RESULT.
    """
    if fitted.parts:
        return _predicted_by_all(lookup, fitted, configurations, question)
    loaded = lookup(fitted.basis.estimator)
    shown = shown_of(loaded, question.profile, configurations)
    own = predicted_by(loaded, fitted.model, shown.configurations, question.options)
    return merged(fitted.calibration.applied(own), shown, len(configurations))


def predicted_by(
    loaded: Loaded[EstimatorRecord],
    model: Model,
    configurations: Configurations,
    options: Options,
    *,
    quiet: bool = False,
) -> Predictions:
    """What one model says of rows that it is shown; as ``hosting.calls.call``."""
    check = partial(checked, configurations=configurations)
    return call(loaded, model, "predict", configurations, options, check=check, quiet=quiet)


def _predicted_by_all(
    lookup: Lookup, fitted: Fitted, configurations: Configurations, question: Question
) -> Predictions:
    """What the parts of a mixture predict together; one that fails has no part in it."""
    able = []
    failures = []
    for part in fitted.parts:
        name = part.share.estimator
        try:
            predictions = predicted(lookup, part.fitted, configurations, question)
        except NodewiseError as error:
            failures.append((name, error))
            continue
        able.append(Part(name, predictions, part.share.weight, part.share.expected_log_error))
    if not able:
        raise failures[0][1]
    together = mixed(able)
    lost = tuple(lost_part(name, error) for name, error in failures)
    return replace(together, notices=(*together.notices, *lost)) if lost else together


def lost_part(estimator: str, error: NodewiseError) -> Notice:
    """That a mixture is without one of its parts."""
    return Notice("PART_MISSING", f"{estimator} has no part in the mixture ({error.reason}): {error.message}")
