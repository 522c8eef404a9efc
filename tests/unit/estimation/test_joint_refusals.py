from __future__ import annotations

from nodewise.estimation.estimators.estimators import joint_refusal
from nodewise.plugin import Reason, Refusal


def test_those_that_lack_only_what_a_question_can_state_come_first() -> None:
    joint = joint_refusal(
        [
            ("law", Refusal.missing("no run is known", "observations")),
            ("other", Refusal.unsupported("not this mode")),
            ("model", Refusal.missing("the batch is not known", "batch_per_worker", "global_batch")),
            ("rule", Refusal.missing("neither is known", "global_batch", "observations")),
        ]
    )
    assert joint.message == (
        "no estimator can answer (model: the batch is not known; law: no run is known; other: not this mode; "
        "rule: neither is known)"
    )
    assert joint.missing_fields == ("batch_per_worker", "global_batch", "observations")


def test_a_value_of_the_question_that_cannot_be_is_no_missing_evidence() -> None:
    joint = joint_refusal(
        [
            ("law", Refusal.missing("no run is known", "observations")),
            ("model", Refusal.unsupported("7 does not divide 100", "global_batch")),
        ]
    )
    assert joint.reason is Reason.UNSUPPORTED_CONFIGURATION
    assert joint.message == "no estimator can answer (model: 7 does not divide 100; law: no run is known)"
    assert joint.missing_fields == ("global_batch",)
