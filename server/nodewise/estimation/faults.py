"""What a plugin says when it does not answer: checked, and told without its insides."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.check import is_a, is_sound_error, is_sound_refusal
from nodewise.estimation.registry import Loaded
from nodewise.plugin import Assessment, EstimatorRecord

__all__ = ["failure", "is_sound_assessment", "told"]

_log = structlog.get_logger(__name__)


def is_sound_assessment(assessment: Any) -> TypeGuard[Assessment]:
    """Whether a plugin's assessment can be used and told."""
    return (
        isinstance(assessment, Assessment)
        and (is_a(assessment.strength, float) or is_a(assessment.strength, int))
        and 0.0 <= assessment.strength <= 1.0
        and _is_error(assessment.expected_log_error)
        and (assessment.refusal is None or is_sound_refusal(assessment.refusal))
        and is_a(assessment.evidence, tuple)
        and all(is_a(text, str) for text in assessment.evidence)
    )


def _is_error(value: Any) -> bool:
    """An expected error, or none."""
    return value is None or ((is_a(value, float) or is_a(value, int)) and 0.0 < value < math.inf)


def told(loaded: Loaded[EstimatorRecord], method: str, error: NodewiseError) -> NodewiseError:
    """An error that a plugin raised, if it can be told to a caller as it is; else that the plugin failed."""
    return error if is_sound_error(error) else failure(loaded, method, error)


def failure(loaded: Loaded[EstimatorRecord], method: str, error: BaseException) -> NodewiseError:
    """An error that names the plugin and keeps the exception's text in the log."""
    record = loaded.record
    _log.error("estimator_failed", estimator=record.name, version=record.version, method=method, exc_info=error)
    return NodewiseError(
        Reason.ESTIMATOR_FAILED,
        f"estimator {record.name!r} {record.version} of {loaded.distribution} failed in {method}",
        {"estimator": record.name, "version": record.version, "distribution": loaded.distribution, "method": method},
    )
