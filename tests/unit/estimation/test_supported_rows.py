from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from estimators import Fake, asked, other_than_doubts, predictions_of, profile_of, record_of, refusing

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import WorkerGroup, WorkerGroups
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Notice, RowStatus
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Question, Terms
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.plugin import BASIC_COLUMNS

DEVICES = ("", "K80")


def groups_of(*rows: list[WorkerGroup]) -> WorkerGroups:
    return WorkerGroups.of(rows, DEVICES)


STATED: list[dict[str, Any]] = [
    {"tensor_parallel": as_ints([1, 2, 1])},
    {"zero_stage": as_ints([0, 3, 0])},
    {"recomputation": as_ints([0, 3, 0])},
    {"data_parallel": as_ints([0, 1, 4])},
    {"hybrid_sync_fraction": as_floats([0.0, 0.5, 0.0]), "sync_mode": as_ints([3, 4, 3])},
    {"hybrid_switch_s": as_floats([0.0, 9.0, 0.0]), "sync_mode": as_ints([3, 4, 3])},
    {"worker_groups": groups_of([], [WorkerGroup("", 1), WorkerGroup("", 1, 2.0)], [WorkerGroup("", 4)])},
    {
        "worker_groups": groups_of([WorkerGroup("", 1)], [WorkerGroup("", 1), WorkerGroup("K80", 1)], []),
        "devices": DEVICES,
    },
    {"precisions": ("", "fp8", "fp32"), "precision_index": as_ints([0, 1, 2])},
]


def engine_of(*columns: str, **estimators: Any) -> Answers:
    loaded = {
        name: LoadedPlugin(replace(record_of(name, fake), columns=BASIC_COLUMNS | set(columns)), "tests 1.0", "inline")
        for name, fake in estimators.items()
    }
    return Answers(Registry(estimators=loaded, policies={}, trace_readers={}, diagnosers={}))


@pytest.mark.parametrize("stated", STATED)
def test_rows_that_state_what_an_estimator_ignores_are_refused(stated: dict[str, Any]) -> None:
    seen: list[list[int]] = []

    def look(rows: Any, _: Any) -> Any:
        seen.append(rows.workers.tolist())
        slack_s = as_floats([-1.0] * len(rows))
        return predictions_of(
            1.0 / rows.workers, extra={"slack_s": slack_s}, notices=(Notice("ALL", "x"), Notice("LAST", "x", (1,)))
        )

    profile = replace(profile_of(), workload=Workload(precision="fp32"))
    question = Question(profile=profile, configurations=asked(1, 2, 4).replaced(**stated))
    found = engine_of(one=Fake(look)).answer(question)
    assert seen[-1] == [1, 4]
    assert found.predictions.status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED, RowStatus.ANSWERED]
    assert found.steps_per_s.tolist() == [1.0, 0.0, 4.0]
    assert len(found.predictions.extra["slack_s"]) == 3
    (refusal,) = found.predictions.refusals
    assert (refusal.rows, refusal.refusal.reason) == ((1,), Reason.UNSUPPORTED_CONFIGURATION)
    name = {"precisions": "precision", "worker_groups": "groups"}.get(next(iter(stated)), next(iter(stated)))
    assert f"does not take {name} into account" in refusal.refusal.message
    assert {notice.reason: notice.rows for notice in other_than_doubts(found.notices)} == {"ALL": (0, 2), "LAST": (2,)}
    everything = engine_of(name, one=Fake()).answer(question)
    assert everything.predictions.all_answered


def test_a_question_of_which_no_row_is_left_is_refused_or_goes_to_another() -> None:
    rows = asked(2, 4).replaced(zero_stage=as_ints([1, 2]))
    question = Question(profile=profile_of(), configurations=rows)
    with pytest.raises(NodewiseError) as caught:
        engine_of(one=Fake(), no=refusing()).answer(replace(question, terms=Terms(estimator="one")))
    assert caught.value.reason == Reason.UNSUPPORTED_CONFIGURATION
    engine = engine_of(one=Fake())
    knowing = LoadedPlugin(
        replace(record_of("two", Fake()), columns=BASIC_COLUMNS | {"zero_stage"}), "tests 1.0", "inline"
    )
    both = Registry(
        estimators={**engine.registry.estimators, "two": knowing}, policies={}, trace_readers={}, diagnosers={}
    )
    assert Answers(both).answer(question).basis.estimator == "two"
