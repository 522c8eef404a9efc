"""What counts as the same, which rows columns make, how statuses are told and planted, and the table of languages."""

from pathlib import Path

import grpc
import pytest
from google.protobuf import json_format

from nodewise_conformance.checks import compared
from nodewise_conformance.contract import filled, methods
from nodewise_conformance.http_statuses import connect_error, read_error, rest_error
from nodewise_conformance.languages import TableError, read_languages
from nodewise_conformance.newer import as_newer, as_released
from nodewise_conformance.rows import rows_of
from nodewise_conformance.statuses import Details, planted, status_of
from nodewise_protos.v1 import prediction_service_pb2 as predictions

STATUS = {
    "code": "RESOURCE_EXHAUSTED",
    "message": "later",
    "reason": "OVERLOADED",
    "metadata": {"a": "b"},
    "violations": [{"field": "f", "description": "d"}],
    "retry_delay_seconds": 0.25,
}


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": 0}, {}, True),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 2, 3], False),
        ("<any>", None, False),
        ("<any>", "x", True),
        ("<absent>", None, True),
        ("<absent>", [1], False),
        ("<contains b>", "abc", True),
        ("<contains z>", "abc", False),
        (0.1 + 0.2, 0.3, True),
        (1, "1", True),
        (None, 0.5, False),
        (0.0, None, True),
    ],
)
def test_what_counts_as_the_same(expected: object, found: object, same: bool) -> None:
    assert (compared(expected, found, "it") == []) is same


def test_differences_are_named_by_their_place() -> None:
    assert compared({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "reply") == ["reply.a[0].b is 2, expected 1"]


def test_statuses_are_read_as_they_were_written() -> None:
    details = Details(status_of(STATUS))
    assert {name: getattr(details, name) for name in STATUS} == STATUS
    assert Details(status_of({**STATUS, "domain": "proxy"})).reason == ""


def test_every_plant_changes_what_it_says() -> None:
    status = status_of(STATUS)
    assert Details(planted(status, None)).__dict__ == Details(status).__dict__
    assert Details(planted(status, "wrong-code")).code == "DATA_LOSS"
    without = Details(planted(status, "missing-reason"))
    assert (without.reason, without.retry_delay_seconds) == ("", 0.25)
    assert Details(planted(status, "wrong-delay")).retry_delay_seconds == 1.5


@pytest.mark.parametrize("write", [connect_error, rest_error])
@pytest.mark.parametrize("code", [each.name for each in grpc.StatusCode if each is not grpc.StatusCode.OK])
def test_http_tells_statuses_whole(write: object, code: str) -> None:
    status = status_of({**STATUS, "code": code})
    http, body = write(status)  # type: ignore[operator]
    assert http >= 400
    read = read_error(body)
    assert read is not None
    assert Details(read).__dict__ == Details(status).__dict__
    assert read_error([]) is None


def test_rows_are_what_the_columns_say() -> None:
    reply = json_format.ParseDict(
        {
            "predictions": {
                "rows_count": 2,
                "statuses": ["ROW_STATUS_ANSWERED", "ROW_STATUS_REFUSED"],
                "refusals": [{"rows": [1], "problem": {"reason": "EVIDENCE_MISSING"}}],
                "step_seconds": [0.5, 0.0],
                "steps_per_second": [2.0, 0.0],
                "samples_per_second": [64.0, 0.0],
                "lower_steps_per_second": [1.0, 0.0],
                "upper_steps_per_second": [4.0, 0.0],
            }
        },
        predictions.PredictResponse(),
    )
    first, second = rows_of(reply)
    assert (first["lower_samples_per_second"], first["upper_samples_per_second"]) == (32.0, 128.0)
    assert (second["status"], second["reason"], second["step_seconds"]) == (
        "ROW_STATUS_REFUSED",
        "EVIDENCE_MISSING",
        None,
    )


def test_newer_and_older_messages() -> None:
    descriptor = methods()["nodewise.v1.PredictionService/Predict"].reply
    message = filled(descriptor)
    newer = as_newer(message, {"at": ["", "predictions"], "enums": {"predictions.statuses[1]": 77}})
    read = predictions.PredictResponse.FromString(newer)
    assert read.predictions.statuses[1] == 77
    older = predictions.PredictResponse.FromString(as_released(descriptor, newer))
    assert older == predictions.PredictResponse.FromString(as_released(descriptor, read.SerializeToString()))
    assert older.predictions.statuses[1] == 77
    assert older.ByteSize() < len(newer)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tilte = 'x'", "unknown key 'tilte'"),
        ("[steps]\nbuidl = []", "unknown step 'buidl'"),
        ("[steps]\nbuild = [[]]", "steps.build is empty"),
        ("needs = 'go'", "needs is 'go'"),
        ("[[conformance]]\nover = 'udp'", "conformance.over is 'udp'"),
        ("[[conformance]]\nover = 'grpc'", "conformance.command is missing"),
        ("= 1", "is not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "go").mkdir()
    (tmp_path / "go" / "client.toml").write_text(text)
    with pytest.raises(TableError, match=said):
        read_languages(tmp_path)


def test_what_is_absent_is_told(tmp_path: Path) -> None:
    (tmp_path / "go").mkdir()
    table = "needs = ['no-such-program']\n[[conformance]]\ncommand = ['x']\n"
    (tmp_path / "go" / "client.toml").write_text(table)
    (language,) = read_languages(tmp_path)
    assert language.columns[0].absent == "no no-such-program on PATH"
    (tmp_path / "go" / "client.toml").write_text("[[conformance]]\ncommand = ['build/x']\n")
    (language,) = read_languages(tmp_path)
    assert language.columns[0].absent == "build/x is not built"
