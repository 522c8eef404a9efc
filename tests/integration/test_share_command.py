"""`nodewise share`, and `nodewise simulate` of jobs that share devices: examples, tables, JSON, what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples"
SPEC = json.loads((EXAMPLES / "share.json").read_text())


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


def ran(target: str, *arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments), "--server", target])


def shared(target: str, folder: Path, document: Any, *options: str | Path) -> tuple[int, dict[str, Any], str]:
    file = folder / "spec.json"
    file.write_text(json.dumps(document))
    found = ran(target, "share", file, "--json", *options)
    return found.exit_code, json.loads(found.stdout) if found.exit_code == 0 else {}, found.stderr


def test_the_example_as_json(target: str) -> None:
    found = ran(target, "share", EXAMPLES / "share.json", "--json")
    assert found.exit_code == 0
    document = json.loads(found.stdout)
    assert document.keys() == {
        "sets", "sharing_model", "sharing_model_version", "device_memory_bytes", "coverage"
    }  # fmt: skip
    assert len(document["sets"]) == 15
    first = document["sets"][0]
    assert first.keys() == {"jobs", "shares", "total", "verdict", "basis", "memory_bytes", "why", "warnings", "problem"}
    assert first["jobs"] == ["resnet50-64", "lm-20"]
    assert first["basis"] == "MEASURED"
    assert first["shares"][0] == {"low": 0.777, "middle": 0.777, "high": 0.777}
    assert {each["basis"] for each in document["sets"]} == {"MEASURED", "COMPLETED"}
    for each in document["sets"]:
        assert each["verdict"] in {"CONCURRENT", "SERIALISED"}
        assert each["total"]["middle"] == pytest.approx(sum(share["middle"] for share in each["shares"]))


def test_the_example_for_people(target: str) -> None:
    found = ran(target, "share", EXAMPLES / "share.json")
    assert found.exit_code == 0
    assert "resnet50-64 + lm-20" in found.stdout
    assert "no certain gain" in found.stdout
    assert "By fitted-sharing 1.0" in found.stdout


def test_pairs_come_from_a_table_too(target: str, tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("first_job,second_job,first_share,second_share,note\nlm-20,a3c,0.43,0.65,Tuesday\n")
    status, document, _ = shared(target, tmp_path, SPEC, "--pairs", table)
    assert status == 0
    (pair,) = [each for each in document["sets"] if each["jobs"] == ["lm-20", "a3c"]]
    assert pair["basis"] == "MEASURED"
    assert [share["middle"] for share in pair["shares"]] == [0.43, 0.65]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("first_job,second_job\na,b\n", "missing: first_share, second_share"),
        ("first_job,second_job,first_share,second_share\nlm-20,a3c,fast,0.5\n", "pairs.csv:2: first_share: must be"),
        ("first_job,second_job,first_share,second_share\nlm-20,x,0.5,0.5\n", "runs[9].second_job: must name one"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(target: str, tmp_path: Path, text: str, told: str) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(text)
    status, _, stderr = shared(target, tmp_path, SPEC, "--pairs", table)
    assert status == 2
    assert told in " ".join(stderr.split())


def test_a_set_without_an_answer_stands_beside_the_others(target: str, tmp_path: Path) -> None:
    sets = [{"jobNames": ["lm-20", "a3c"]}, {"jobNames": ["lm-20", "nobody"]}]
    status, document, _ = shared(target, tmp_path, {**SPEC, "sets": sets})
    assert status == 0
    assert document["sets"][1]["verdict"] is None
    assert document["sets"][1]["problem"]["reason"] == "INVALID_FIELD"
    status, _, stderr = shared(target, tmp_path, {**SPEC, "sets": sets[1:]})
    assert status == 3
    assert "no set was answered" in stderr
    (tmp_path / "all.json").write_text(json.dumps({**SPEC, "sets": sets}))
    assert "must name one of the jobs" in " ".join(ran(target, "share", tmp_path / "all.json").stdout.split())


def test_a_name_that_is_no_field_is_told(target: str, tmp_path: Path) -> None:
    status, _, stderr = shared(target, tmp_path, {**SPEC, "job": []})
    assert status == 2
    assert "is not a field of PredictSharingRequest" in stderr


def test_the_example_of_packing(target: str) -> None:
    found = ran(target, "simulate", EXAMPLES / "simulation" / "packing.json", "--json")
    assert found.exit_code == 0
    policies = json.loads(found.stdout)["policies"]
    alone, packed = policies["alone"], policies["packing"]
    assert alone["finished"] == packed["finished"] == 300
    assert packed["average_jct_s"] < 0.9 * alone["average_jct_s"]


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ({"curves": ["lm-20", "x"], "shares": [0.5, 0.5]}, "shared_pairs.0.curves: must be one of"),
        ({"curves": ["lm-20", "a3c"], "shares": [0.5, 0]}, "shared_pairs.0.shares.1"),
        ({"curves": ["lm-20", "a3c"], "shares": [0.5, 0.5], "pool": "x"}, "shared_pairs.0.pool: must name a pool"),
    ],
)
def test_what_is_wrong_with_pairs_is_named(target: str, tmp_path: Path, pair: dict[str, Any], told: str) -> None:
    spec = json.loads((EXAMPLES / "simulation" / "packing.json").read_text())
    file = tmp_path / "spec.json"
    file.write_text(json.dumps({**spec, "shared_pairs": [pair]}))
    found = ran(target, "simulate", file, "--json")
    assert found.exit_code == 2
    assert told in " ".join(found.stderr.split())
