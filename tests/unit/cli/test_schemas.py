"""JSON Schemas of specifications: an independent validator accepts every example and refuses mistakes."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from nodewise_cli.app import app

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
# The commands that read each example; files that hold no specification are left out.
SPECIFICATIONS = {
    "plan": sorted(EXAMPLES.glob("plan_*.json")),
    "profile": [EXAMPLES / name for name in ("mlp.json", "profile.json", "vgg16.json")],
    "schedule": sorted(EXAMPLES.glob("schedule*.json")),
    "share": [EXAMPLES / "share.json"],
    "simulate": [EXAMPLES / "simulation" / name for name in ("packing.json", "simulate.json")],
    "spot": [EXAMPLES / "spot.json"],
    "sweep": [EXAMPLES / "simulation" / "sweep.json"],
}
FILES = [(name, path) for name, paths in SPECIFICATIONS.items() for path in paths]


@cache
def validator(name: str) -> Any:
    result = CliRunner().invoke(app, ["schema", name])
    assert result.exit_code == 0, result.output
    schema = json.loads(result.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_example_is_of_a_specification() -> None:
    named = {path for _, path in FILES}
    of_models = {EXAMPLES / "config.json"}
    assert named == {*EXAMPLES.glob("*.json"), *(EXAMPLES / "simulation").glob("*.json")} - of_models


@pytest.mark.parametrize(("name", "path"), FILES, ids=lambda each: getattr(each, "name", each))
def test_examples_fit_their_schema(name: str, path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert not [error.message for error in validator(name).iter_errors(document)]
    assert not validator(name).is_valid(document | {"no_such_field": 1})


def test_specifications_in_documents_fit_their_schema() -> None:
    text = (ROOT / "docs" / "reference" / "profiles.md").read_text(encoding="utf-8")
    documents = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    assert documents
    for document in documents:
        validator("profile").validate(document)


def test_a_field_may_be_stated_in_each_way_that_the_reader_takes() -> None:
    document = json.loads((EXAMPLES / "schedule.json").read_text(encoding="utf-8"))
    check = validator("schedule")
    mistakes: tuple[dict[str, Any], ...] = ({"modelOptions": {}}, {"options": {"seed": "many"}}, {"jobs": {}})
    for wrong in mistakes:
        assert not check.is_valid(document | wrong)
    for options in ({"seed": 1, "intervalCoverage": 0.9}, {"interval_coverage": 0.9}):
        check.validate(document | {"options": options})
    for source in (
        {"table": "testbed.csv", "job": "a1"},
        {"profileId": "a1", "minimumRevision": 3},
        {"profile_id": "a1", "minimum_revision": "3"},
        {"content": {"workload": {"hugging_face": "config.json", "sequence_length_tokens": 4096}}},
    ):
        jobs = deepcopy(document["jobs"])
        jobs[0]["profile"] = source
        check.validate(document | {"jobs": jobs})


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": "v100=8,t4=2x4"},
        {"cluster": {"v100": 8, "t4": "2x4"}},
        {"cluster": [{"name": "v100", "nodes": 8}]},
        {"policy": "fifo"},
        {"policy": ["fifo", {"name": "srpt"}]},
        {"seeds": 3},
        {"seeds": [0, 7]},
    ],
)
def test_short_forms_of_a_sweep(changes: dict[str, Any]) -> None:
    document = json.loads((EXAMPLES / "simulation" / "sweep.json").read_text(encoding="utf-8"))
    validator("sweep").validate(document | changes)
    assert not validator("sweep").is_valid(document | {key: {"x": []} for key in changes})
