"""Questions of every kind, asked twice: what tools/replay_questions.py compares two versions by."""

from __future__ import annotations

import json

from serving import COMMAND

from nodewise_protos.v1 import prediction_service_pb2 as pb
from replay_questions import Outcome, compare, connected, differing, record
from sample_questions import Sampler

SEED = 3
COUNT = 100


def test_a_server_answers_the_same_questions_alike() -> None:
    sampler = Sampler(SEED)
    with connected(None, COMMAND[0]) as channel:
        record(channel, sampler.setup())
        recorded = record(channel, sampler.questions(COUNT))
        lines = compare(channel, json.loads(json.dumps(recorded)), tolerance=0.0)
    assert lines[-1] == f"{COUNT} questions, 0 differ, 0 too slow to compare"
    assert len({each["kind"] for each in recorded}) >= 12
    answered = sum(each["code"] == "OK" for each in recorded)
    assert COUNT / 2 < answered < COUNT


def test_a_seed_draws_the_same_questions() -> None:
    drawn = [[each.requests for each in Sampler(SEED).questions(COUNT)] for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_the_first_field_that_differs_is_named() -> None:
    before, after = (
        Outcome("OK", {}, [pb.PredictResponse(unchanged=True, predictions={"steps_per_second": rates})])
        for rates in ([1.0, 2.0, 3.0], [1.0, 2.5, 3.0 + 1e-12])
    )
    asked = before.fields(), after.fields()
    assert differing(*asked, 0.0) == ("reply.predictions.steps_per_second[1]: 2.0 became 2.5; 2 of 6 fields differ")
    assert "1 of 6" in differing(*asked, 1e-9)
    assert differing(*asked, 0.5) == ""


def test_a_refusal_by_another_field_differs() -> None:
    before, after = (
        Outcome("INVALID_ARGUMENT", {"details": [{"field_violations": [{"field": field}]}]}, [])
        for field in ("profile", "work")
    )
    assert "problem.details[0].field_violations[0].field: 'profile' became 'work'" in differing(
        before.fields(), after.fields(), 0.0
    )
