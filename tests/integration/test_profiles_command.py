"""`nodewise profiles`: what was stored is listed, shown, corrected, exported and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import AppendProfileRequest, Client

ROWS = """job,device,sync,nodes,workers,batch_per_worker,steps_per_s,split
resnet,V100,allreduce,1,1,32,10,train
resnet,V100,allreduce,2,2,32,9.5,train
resnet,V100,allreduce,4,4,32,90,train
bert,V100,allreduce,1,1,16,5,train
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "jobs.csv").write_text(ROWS)
    with EmbeddedServer() as embedded:
        assert ran("ingest", tmp_path / "jobs.csv", "--server", embedded.target).exit_code == 0
        yield embedded.target


def ran(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def profiles(*arguments: str | Path) -> list[dict[str, Any]]:
    result = ran("profiles", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)["profiles"]
    assert isinstance(found, list)
    return found


def test_profiles_are_listed_by_name(server: str) -> None:
    found = profiles("list", "--server", server)
    assert [(each["profile"], each["observations"]) for each in found] == [("bert", 1), ("resnet", 3)]
    assert all(each["revision"] and each["etag"] and each["created"] and each["updated"] for each in found)
    assert [each["profile"] for each in profiles("list", "res", "--server", server)] == ["resnet"]
    assert "resnet" in ran("profiles", "list", "--server", server).stdout


def test_a_wrong_observation_is_found_and_retracted(server: str) -> None:
    table = ran("profiles", "show", "resnet", "--server", server).stdout
    (line,) = [line for line in table.splitlines() if "90.00" in line]
    number = line.split()[0]
    (left,) = profiles("retract", "resnet", "--observations", number, "--reason", "typing", "--server", server)
    assert (left["profile"], left["observations"]) == ("resnet", 2)
    (shown,) = profiles("show", "resnet", "--server", server)
    assert shown["content"]["observations"]["stepsPerSecond"] == [10, 9.5]
    again = ran("profiles", "retract", "resnet", "--observations", "77", "--server", server, "--json")
    assert (again.exit_code, json.loads(again.stderr)["error"]["reason"]) == (2, "EVIDENCE_NOT_FOUND")


def test_what_is_exported_can_be_asked_about(server: str, tmp_path: Path) -> None:
    file = tmp_path / "resnet.json"
    assert ran("profiles", "export", "resnet", "--output", file, "--server", server).exit_code == 0
    printed = ran("profiles", "export", "resnet", "--server", server)
    assert json.loads(printed.stdout) == json.loads(file.read_text())
    stored = ran("predict", "--profile", "resnet", "--nodes", "1-4", "--server", server, "--json")
    inline = ran("predict", file, "--nodes", "1-4", "--json")
    assert (stored.exit_code, inline.exit_code) == (0, 0)
    assert json.loads(stored.stdout)["predictions"] == json.loads(inline.stdout)["predictions"]


def test_a_deleted_profile_is_gone_and_a_changed_one_is_not_deleted(server: str) -> None:
    stale = ran("profiles", "delete", "bert", "--etag", "other", "--server", server, "--json")
    assert stale.exit_code == 1
    assert json.loads(stale.stderr)["error"]["code"] == "ABORTED"
    (gone,) = profiles("delete", "bert", "--server", server)
    assert gone["profile"] == "bert"
    assert [each["profile"] for each in profiles("list", "--server", server)] == ["resnet"]
    missing = ran("profiles", "show", "bert", "--server", server)
    assert (missing.exit_code, missing.stderr) == (2, "nodewise: PROFILE_NOT_FOUND: no profile is named 'bert'\n")


def test_a_deleted_profile_comes_back(server: str) -> None:
    (gone,) = profiles("delete", "bert", "--server", server)
    assert gone["deleted"] < gone["purged"]
    listed = profiles("list", "--deleted", "--server", server)
    assert [(each["profile"], each["deleted"] is None) for each in listed] == [("bert", False), ("resnet", True)]
    (back,) = profiles("undelete", "bert", "--server", server)
    assert (back["profile"], back["deleted"], back["uid"]) == ("bert", None, gone["uid"])
    assert len(profiles("list", "--server", server)) == 2


def test_labels_are_shown_and_listed_by(server: str) -> None:
    with Client(server) as client:
        client.append_profile(AppendProfileRequest(profile_id="bert", labels={"team": "text", "old": "yes"}))
    (found,) = profiles("list", "--label", "team=text", "--label", "old", "--server", server)
    assert (found["profile"], found["labels"]) == ("bert", {"team": "text", "old": "yes"})
    assert profiles("list", "--label", "team=vision", "--server", server) == []
    assert "old=yes, team=text" in ran("profiles", "list", "--server", server).stdout


def test_facts_and_timed_phases_are_taken_out(server: str, tmp_path: Path) -> None:
    (tmp_path / "timed.csv").write_text(
        "job,device,nodes,workers,steps_per_s,split,compute_s,parameter_bytes\ntimed,V100,1,1,2,train,0.4,1000\n"
    )
    assert ran("ingest", tmp_path / "timed.csv", "--server", server).exit_code == 0
    table = ran("profiles", "show", "timed", "--server", server).stdout
    assert "Phase timings of 1 runs, numbers 1." in table
    profiles("retract", "timed", "--phases", "1", "--fact", "workload.parameter_bytes", "--server", server)
    (shown,) = profiles("show", "timed", "--server", server)
    assert set(shown["content"]) == {"observations"}
    nothing = ran("profiles", "retract", "timed", "--server", server)
    assert (nothing.exit_code, "--observations: state what to remove" in nothing.stderr) == (2, True)


def test_a_job_that_no_profile_can_be_called_is_known_by_its_name(server: str, tmp_path: Path) -> None:
    table = tmp_path / "named.csv"
    table.write_text("job,device,nodes,workers,steps_per_s,split\nResNet (large),V100,1,1,2,train\n")
    first = ran("ingest", table, "--server", server, "--json")
    again = ran("ingest", table, "--server", server, "--json")
    assert first.stdout == again.stdout.replace('"already_there":1', '"already_there":0')
    ((name, held),) = json.loads(first.stdout)["profiles"].items()
    assert (name.rpartition("-")[0], held["observations"]) == ("ResNet-large", 1)
    (stored,) = profiles("show", "ResNet (large)", "--server", server)
    assert (stored["profile"], stored["display_name"]) == (name, "ResNet (large)")
    assert "ResNet (large)" in ran("profiles", "list", "--server", server).stdout
    asked = ran("predict", "--profile", "ResNet (large)", "--nodes", "1-2", "--server", server, "--json")
    assert asked.exit_code == 0


def test_a_server_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODEWISE_SERVER", raising=False)
    result = ran("profiles", "list")
    assert result.exit_code == 2
    assert result.stderr.startswith("nodewise: --server: must name the server that stores the profiles")
