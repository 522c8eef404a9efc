"""Assessing: what an estimator is shown of a question, and whether it says that it can answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options
from nodewise.domain.profile import Profile
from nodewise.estimation.faults import failure, is_sound_assessment, told
from nodewise.estimation.ignored import Shown, shown_to
from nodewise.estimation.registry import Loaded
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
    NodewiseError
        ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT.
    """
    shown = shown_of(loaded, profile, configurations)
    if shown.refusals and not len(shown.configurations):
        return Assessment(refusal=shown.refusals[0].refusal)
    query = Query(configurations=shown.configurations, options=options, catalogue=catalogue)
    try:
        assessment: Any = loaded.record.estimator.assess(profile, query)
    except NodewiseError as error:
        sayable = told(loaded, "assess", error)
        if sayable is not error:
            raise sayable from None
        missing = tuple(filter(None, error.metadata.get("missing_fields", "").split(",")))
        return Assessment(refusal=Refusal(error.reason, error.message, missing))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
        raise failure(loaded, "assess", error) from None
    if not is_sound_assessment(assessment):
        raise NodewiseError(
            Reason.ESTIMATOR_INVALID_RESULT,
            f"estimator {loaded.record.name!r} must assess with an Assessment of strength 0 to 1 and an expected error "
            "above 0, if it has one, whose refusal has a Reason and whose evidence is a tuple of texts",
            {"estimator": loaded.record.name},
        )
    return assessment


def joint_refusal(refusals: Sequence[tuple[str, Refusal]]) -> Refusal:
    """What every estimator misses, in one refusal."""
    if not refusals:
        return Refusal(Reason.EVIDENCE_MISSING, "no estimator is loaded")
    if len(refusals) == 1:
        return refusals[0][1]
    fields = tuple(dict.fromkeys(field for _, refusal in refusals for field in refusal.missing_fields))
    text = "; ".join(f"{name}: {refusal.message}" for name, refusal in refusals)
    return Refusal(Reason.EVIDENCE_MISSING, f"no estimator can answer ({text})", fields)
