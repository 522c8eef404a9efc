"""Replies whose columns are written as bytes: what they hold is what the contract has fields for."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from questions import Asked, call_of
from serving import inline, workers

from nodewise.rpc.options import ALL_COLUMNS
from nodewise.rpc.wire_predictions import _NAMED, _PLAIN, _USUAL
from nodewise_protos.v1 import configuration_pb2, objective_pb2, options_pb2, prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

EVERYTHING = options_pb2.PredictOptions(columns=sorted(ALL_COLUMNS))
WORK = objective_pb2.Work(samples=1e5)
OFFER = objective_pb2.Offer(price_per_node_hour=1.0)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def hybrids(rows: int) -> configuration_pb2.Configurations:
    """Rows that have columns of all groups, of more than one digit each."""
    return configuration_pb2.Configurations(
        workers=range(120, 120 + rows),
        sync_modes=[4],
        hybrid_sync_fractions=[0.5],
        hybrid_switch_seconds=[3.0],
        batch_per_worker_samples=[32],
    )


def unknown(message: Any) -> list[str]:
    """Messages that hold a field which the contract does not have."""
    found = [message.DESCRIPTOR.full_name] if len(UnknownFieldSet(message)) else []
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else (value,):
                found += unknown(part)
    return found


def checked(reply: bytes, kind: type[Any]) -> Any:
    """The reply as read; written anew it is as long as it was: nothing is said twice or empty."""
    message = kind.FromString(reply)
    assert not unknown(message)
    assert len(message.SerializeToString()) == len(reply)
    return message


@pytest.mark.parametrize("rows", [1, 16, 300])
def test_a_reply_holds_what_the_contract_has_fields_for(asked: Asked, rows: int) -> None:
    request = pb.PredictRequest(
        profile=inline(), configurations=hybrids(rows), options=EVERYTHING, work=WORK, offers=[OFFER]
    )
    found = checked(asked.run(asked.predictions.predict(request, call_of())), pb.PredictResponse).predictions
    columns = {field.name: value for field, value in found.ListFields() if field.type == field.TYPE_DOUBLE}
    assert {len(value) for name, value in columns.items() if name != "interval_coverage"} == {rows}
    assert columns.keys() >= {"step_seconds", "samples_per_second", "once_seconds", "finish_seconds", "costs"}
    assert {len(column.values) for column in (*found.breakdown_seconds, *found.extra)} == {rows}
    assert list(found.workers) == list(range(120, 120 + rows))


def test_a_batch_holds_the_rows_of_its_jobs_one_after_the_other(asked: Asked) -> None:
    few = workers(1, 2, 4)
    one = asked.predict(configurations=few).predictions
    request = pb.BatchPredictRequest(jobs=[pb.BatchJob(profile=inline())] * 2, configurations=few)
    batch = checked(asked.run(asked.batches.batch_predict(request, call_of())), pb.BatchPredictResponse).predictions
    assert list(batch.step_seconds) == 2 * list(one.step_seconds)
    assert [(each.name, list(each.values)) for each in batch.breakdown_seconds] == [
        (each.name, 2 * list(each.values)) for each in one.breakdown_seconds
    ]


def test_every_column_that_is_written_has_a_field() -> None:
    fields = prediction_pb2.Predictions.DESCRIPTOR.fields_by_name
    plain = {*_USUAL, *(name for columns in _PLAIN.values() for name in columns)}
    assert {fields[name].type for name in plain} <= {fields["costs"].TYPE_DOUBLE, fields["costs"].TYPE_INT32}
    assert all(fields[name].is_repeated for name in plain)
    assert {fields[name].message_type.name for name, _ in _NAMED.values()} == {"NamedColumn"}
