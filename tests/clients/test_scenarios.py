"""Scenarios are read strictly, and cover the contract and the catalogue of errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodewise.domain.errors import CATALOGUE
from nodewise_conformance.contract import filled, methods, variants
from nodewise_conformance.coverage import catalogue, gaps
from nodewise_conformance.scenarios import ScenarioError, filled_in, read_scenarios

PREDICT = "nodewise.v1.PredictionService/Predict"
SMALL = {"name": "one", "about": "x", "call": {"face": "call", "method": PREDICT, "requests": [{}]}, "expect": {}}


def test_every_rpc_and_every_reason_is_asked_for() -> None:
    scenarios = read_scenarios()
    assert gaps(scenarios) == []
    without = [each for each in scenarios if each.method != PREDICT and each.expect.get("reason") != "TOKEN_NOT_FOUND"]
    missing = gaps(without)
    assert f"no scenario has an answer of {PREDICT}" in missing
    assert "no scenario tells the reason TOKEN_NOT_FOUND" in missing


def test_a_reason_under_another_code_is_noticed() -> None:
    scenarios = [each for each in read_scenarios() if each.name == "etag-mismatch"]
    scenarios[0].expect["code"] = "NOT_FOUND"  # type: ignore[index]  # as a scenario's file might have it
    assert "etag-mismatch: ETAG_MISMATCH comes with ABORTED, not with NOT_FOUND" in gaps(scenarios)


def test_the_catalogue_is_the_servers() -> None:
    assert catalogue() == {reason.value: entry.kind.value for reason, entry in CATALOGUE.items()}


def test_there_are_both_faces_and_names_are_unique() -> None:
    scenarios = read_scenarios()
    assert len({each.name for each in scenarios}) == len(scenarios)
    assert any("http" in each.faces for each in scenarios)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nmae": "x"}, "unknown key 'nmae'"),
        ({"expect": {"cod": "OK"}}, "unknown expectation 'cod'"),
        ({"faults": [{"statsu": {}}]}, "unknown key 'statsu'"),
        ({"call": {"face": "cal", "method": PREDICT}}, "face 'cal'"),
        ({"call": {"face": "call", "method": "a/B"}}, "no method 'a/B'"),
        ({"setup": [{"method": "a/B", "request": {}}]}, "no method 'a/B'"),
        ({"server": "other"}, "server 'other'"),
    ],
)
def test_what_is_wrong_with_a_scenario_is_named(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{**SMALL, **changed}]))
    with pytest.raises(ScenarioError, match=said):
        read_scenarios(tmp_path)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([SMALL, SMALL]))
    with pytest.raises(ScenarioError, match="used twice"):
        read_scenarios(tmp_path)


def test_places_are_put_in_everywhere() -> None:
    given = {"<run>": ["<run>/a", {"b": "x <run>"}], "c": 1}
    assert filled_in(given, {"run": "r"}) == {"r": ["r/a", {"b": "x r"}], "c": 1}
    assert filled_in("<file examples/architectures.csv>", {})[:4].isalnum()


@pytest.mark.parametrize("name", sorted(methods()))
def test_filled_messages_have_every_field(name: str) -> None:
    for descriptor in (methods()[name].request, methods()[name].reply):
        set_somewhere = {
            field.name
            for variant in range(variants(descriptor))
            for field, _ in filled(descriptor, variant).ListFields()
        }
        assert set_somewhere == {field.name for field in descriptor.fields}
