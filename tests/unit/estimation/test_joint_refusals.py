from __future__ import annotations

from nodewise.estimation.estimators.estimators import joint_refusal
from nodewise.plugin import Refusal


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
