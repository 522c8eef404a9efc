"""Predicting with fitted models: one, or the parts of a mixture; a plugin that fails or lies is told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Notice, Predictions
from nodewise.estimation.assessing import shown_of
from nodewise.estimation.check import checked
from nodewise.estimation.faults import failure, told
from nodewise.estimation.ignored import merged
from nodewise.estimation.mixture import Part, mixed
from nodewise.estimation.models import Fitted
from nodewise.estimation.question import Question
from nodewise.estimation.registry import Loaded
from nodewise.plugin import EstimatorRecord

__all__ = ["lost_part", "predicted"]

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
    name = fitted.basis.estimator
    loaded = lookup(name)
    shown = shown_of(loaded, question.profile, configurations)
    try:
        predictions = fitted.model.predict(shown.configurations, question.options)
    except NodewiseError as error:
        raise told(loaded, "predict", error) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
        raise failure(loaded, "predict", error) from None
    known = fitted.calibration.applied(checked(predictions, shown.configurations, name))
    return merged(known, shown, len(configurations))


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
