"""Traces that profilers wrote, from files to answers: the shipped reader and replayer behind the service."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from measurements import data_path
from serving import registry_with
from tiny_traces import TinyDiagnoser, diagnoser
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_client import Client, ReplayRequest, profile_source
from nodewise_diagnosis.diagnoser import ReplayDiagnoser

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "traces"
FIXTURES = ROOT / "tests" / "fixtures" / "traces"


class Recorded(ReplayDiagnoser):
    """The shipped replayer; its diagnoses are the tests'."""

    def __init__(self) -> None:
        self._tests = TinyDiagnoser()

    def diagnose(self, *arguments: Any) -> Any:
        return self._tests.diagnose(*arguments)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    configure_logging("warning")  # the commands share this process: nothing but their answer goes to standard output
    settings = Settings(store="memory:", traces=str(tmp_path_factory.mktemp("traces")), grace_s=1.0)
    with EmbeddedServer(settings, registry_with(diagnosers=(diagnoser(Recorded(), "recorded"),))) as server:
        yield server.target


def asked(target: str, command: str, *arguments: object) -> dict[str, Any]:
    wanted = [command, *map(str, arguments), "--server", target, "--diagnoser", "recorded", "--json"]
    result = CliRunner().invoke(app, wanted)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_example_is_replayed(target: str, tmp_path: Path) -> None:
    out = tmp_path / "timeline.json"
    found = asked(target, "replay", EXAMPLE, "--in-sample", "--timeline", out)
    assert (found["ranks"], found["world_size"], len(found["steps"])) == ([0, 1], 2, 6)
    assert found["host_error"] < 0.01
    assert {trace["reader"] for trace in found["traces"]} == {"kineto"}
    spans = [event for event in json.loads(out.read_text(encoding="utf-8"))["traceEvents"] if event["ph"] == "X"]
    waited = [event["args"]["waiting_us"] for event in spans if "args" in event]
    # The second rank computes 1.3 times as long: the first one waits.
    assert max(waited) > 10_000
    steps = [event for event in spans if event["name"].startswith("ProfilerStep") and event["pid"] == 1_000_000]
    assert len(steps) == 6


def test_other_files_beside_the_traces_are_no_traces(target: str) -> None:
    found = asked(target, "diagnose", FIXTURES / "ddp_4_ranks_3_buckets")
    assert found["ranks"] == [0, 1, 2, 3]


def test_a_step_is_predicted_from_the_others(target: str) -> None:
    found = asked(target, "replay", EXAMPLE, "--fit-steps", "1-4", "--test-step", "5-6")
    assert [step["step"] for step in found["steps"]] == [5, 6]
    assert found["host_error"] < 0.2
    assert found["persistence_error"] is not None


def test_what_is_ingested_is_read_once(target: str, tmp_path: Path) -> None:
    copy = tmp_path / "job-9"
    shutil.copytree(EXAMPLE, copy)
    result = CliRunner().invoke(app, ["ingest", str(copy), "--server", target, "--json"])
    assert json.loads(result.stdout)["profiles"]["job-9"]["traces"] == 2
    with Client(target, timeout_s=60) as client:
        first = client.replay(ReplayRequest(profile=profile_source("job-9"), diagnoser="recorded", in_sample=True))
        again = client.replay(ReplayRequest(profile=profile_source("job-9"), diagnoser="recorded", in_sample=True))
    assert again.basis.load_seconds < max(0.1 * first.basis.load_seconds, 0.05)
    assert again.steps == first.steps


@pytest.mark.data
def test_eight_ranks_of_a_published_job(target: str) -> None:
    folder = data_path("traces", "dlrm_8rank_v100")
    found = asked(target, "replay", folder, "--in-sample")
    assert (found["ranks"], found["world_size"]) == (list(range(8)), 8)
    exchanges = found["collectives"]
    assert len(exchanges) == 8
    assert all(len(exchange["ranks"]) == 8 for exchange in exchanges)
    assert [exchange["late_ranks"][0] for exchange in exchanges[:4]] == [7, 7, 7, 7]
    assert [clock["rank"] for clock in found["clocks"]] == list(range(8))
    warned = {trace["rank"] for trace in found["traces"] if trace["warnings"]}
    assert warned >= {1, 3}
