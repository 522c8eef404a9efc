"""Assessing: what an estimator is shown of a question, and whether it says that it can answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options
from nodewise.domain.profile import Profile
from nodewise.estimation.ignored import Shown, shown_to
from nodewise.hosting.calls import ImpossibleAnswerError, PluginError, call
from nodewise.hosting.registry import Loaded
from nodewise.hosting.soundness import is_a, is_sound_refusal, is_text
from nodewise.plugin import Assessment, Catalogue, EstimatorRecord, Query

__all__ = ["assessed", "joint_refusal", "shown_of"]


def shown_of(loaded: Loaded[EstimatorRecord], profile: Profile, configurations: Configurations) -> Shown:
    """The rows of which an estimator takes every stated column into account."""
    return shown_to(loaded.record.columns, configurations, profile.workload.precision or "")


def assessed(
    loaded: Loaded[EstimatorRecord],
    profile: Profile,
    configurations: Configurations,
    options: Options,
    catalogue: Catalogue,
) -> Assessment:
    """What an estimator says of a question; a refusal that it raises is one that it returns.

    Raises
    ------
    PluginError
        ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT.
    """
    shown = shown_of(loaded, profile, configurations)
    if shown.refusals and not len(shown.configurations):
        return Assessment(refusal=shown.refusals[0].refusal)
    query = Query(configurations=shown.configurations, options=options, catalogue=catalogue)
    try:
        return call(loaded, loaded.record.estimator, "assess", profile, query, check=_checked)
    except PluginError:
        raise
    except NodewiseError as error:
        missing = tuple(filter(None, error.metadata.get("missing_fields", "").split(",")))
        return Assessment(refusal=Refusal(error.reason, error.message, missing))


def _checked(assessment: Any) -> Assessment:
    """A plugin's assessment, if it can be used and told."""
    sound = (
        isinstance(assessment, Assessment)
        and (is_a(assessment.strength, float) or is_a(assessment.strength, int))
        and 0.0 <= assessment.strength <= 1.0
        and _is_error(assessment.expected_log_error)
        and (assessment.refusal is None or is_sound_refusal(assessment.refusal))
        and is_a(assessment.evidence, tuple)
        and all(is_text(text) for text in assessment.evidence)
    )
    if not sound:
        raise ImpossibleAnswerError(
            "it must assess with an Assessment of strength 0 to 1 and an expected error above 0, if it has one, whose "
            "refusal has a Reason and whose evidence is a tuple of texts"
        )
    found: Assessment = assessment
    return found


def _is_error(value: Any) -> bool:
    """An expected error, or none."""
    return value is None or ((is_a(value, float) or is_a(value, int)) and 0.0 < value < math.inf)


def joint_refusal(refusals: Sequence[tuple[str, Refusal]]) -> Refusal:
    """What every estimator misses, in one refusal."""
    if not refusals:
        return Refusal(Reason.EVIDENCE_MISSING, "no estimator is loaded")
    if len(refusals) == 1:
        return refusals[0][1]
    fields = tuple(dict.fromkeys(field for _, refusal in refusals for field in refusal.missing_fields))
    text = "; ".join(f"{name}: {refusal.message}" for name, refusal in refusals)
    return Refusal(Reason.EVIDENCE_MISSING, f"no estimator can answer ({text})", fields)
