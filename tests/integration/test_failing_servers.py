"""What integrations do where Nodewise is absent, slow, wrong or refuses: nothing is raised, and nothing changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import stdio_agent, text_of
from failing_servers import FAILURES
from mcp.client.client import Client as Agent
from mcp.shared.exceptions import MCPError
from patience import PATIENCE_S

from nodewise_cli.agents.server import mcp_server
from nodewise_client import Client, ProfileContent, configurations, observations
from nodewise_integrations.advice import Adviser, NoAdvice, NoAnswer, question
from nodewise_integrations.ray import WorkerCounts
from nodewise_integrations.slurm.sbatch import main
from nodewise_integrations.trials import TrialTimes

COLUMNS: dict[str, Any] = {"sync_modes": "allreduce", "batch_per_worker_samples": 32}
RAN = ProfileContent(
    observations=observations(configurations=configurations(nodes=1, workers=1, **COLUMNS), steps_per_second=1.0)
)
RUNS = [{"nodes": 1, "throughput": 100}, {"nodes": 2, "throughput": 190}]
MEASURED = {"measured": RUNS, "device": "V100", "devices_per_node": 8}
MODEL = {"model": {"parameters": "7B"}, "device": "A100-80GB", "sequence_length": 2048}
TOOLS: dict[str, dict[str, Any]] = {
    "fits": MODEL | {"devices": 8},
    "predict": MEASURED | {"nodes": "1-8"},
    "recommend": MEASURED | {"nodes": "1-8"},
    "plan": MODEL | {"nodes": 2, "global_batch": 64, "tokens": 1e9},
    "card": MODEL | {"devices": 8, "global_batch": 64, "tokens": 1e9},
    "diagnose": {"profile": "team-a/job"},
    "suggest_measurement": MEASURED | {"nodes": "1-8"},
    "record": MEASURED | {"profile": "team-a/job"},
}
REASONS = {
    "absent": NoAdvice.UNANSWERED,
    "silent": NoAdvice.UNANSWERED,
    "hanging": NoAdvice.UNANSWERED,
    "another protocol": NoAdvice.UNANSWERED,
    "exhausted": NoAdvice.UNANSWERED,
    "unauthenticated": NoAdvice.REJECTED,
    "invalid": NoAdvice.REJECTED,
}
"""Of other failures the reason is FAULT."""


@pytest.fixture(params=FAILURES)
def failure(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(failure: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("GRPC_VERBOSITY", "NONE")
    with FAILURES[failure]() as target:
        yield target


def test_callers_get_the_reason_as_a_value(failure: str, target: str) -> None:
    def asked_by(adviser: Adviser) -> Iterator[object]:
        yield adviser.advise(question("team/job", nodes=[2, 3, 4], workers_per_node=8, columns=COLUMNS))
        yield adviser.predict(question("team/job", nodes=[2], columns=COLUMNS))
        yield adviser.append("team/job", RAN, request_id="run-1")
        times = TrialTimes("team/job", adviser, user_agent="tests")
        yield times.expected({"nodes": 2, "workers": 2, **COLUMNS})
        yield times.measured("study", "1", {"nodes": 2, "workers": 2, **COLUMNS}, steps=100, seconds=10.0)

    first, *others = asked_by(adviser := Adviser(target, timeout_seconds=0.3))
    adviser.close()
    reason = REASONS.get(failure, NoAdvice.FAULT)
    assert isinstance(first, NoAnswer)
    assert first.reason is reason, first
    for each in others:
        assert isinstance(each, NoAnswer)
        assert each.reason is (NoAdvice.RESTING if reason is NoAdvice.UNANSWERED else reason), each


def test_workers_are_all_that_there_is_room_for(target: str) -> None:
    counts = WorkerCounts("team/job", columns=COLUMNS, target=target, timeout_seconds=0.3)
    assert counts.within(5, fewest=2, most=8) == 5
    assert counts.within(5, fewest=2, most=8, running=3) == 5


def test_a_submission_is_unchanged(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NODEWISE_STATE_FOLDER", str(tmp_path))
    script = tmp_path / "train.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH --nodes=2 --gpus-per-node=4\n#NODEWISE --profile=team/job --nodes=2-8 --steps=1e6\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["--nodewise-explain", "--nodewise-timeout-s=0.3", f"--nodewise-server={target}", str(script)])
    out, said = capfd.readouterr()
    assert (ended.value.code, out) == (0, f"sbatch {script}\n")
    assert said.startswith("nodewise-sbatch: no answer; the job is submitted unchanged (")
    assert os.environ["GRPC_VERBOSITY"] == "NONE"


async def test_agents_get_an_error_that_says_why(failure: str, target: str) -> None:
    """By the server that `nodewise mcp` runs, and one of the failures by the command itself."""
    protocol = mcp_server(lambda _token: Client(target, timeout_s=0.5), 0.5, allow_writes=True)
    command = stdio_agent("--timeout-s", "0.5", "--allow-writes", "--server", target)
    async with command if failure == "absent" else Agent(protocol, read_timeout_seconds=PATIENCE_S) as agent:
        answers = await asyncio.gather(*(agent.call_tool(tool, arguments) for tool, arguments in TOOLS.items()))
        for tool, answer in zip(TOOLS, answers, strict=True):
            assert answer.is_error, (tool, text_of(answer))
            assert text_of(answer).startswith("No answer: "), tool
            assert "fault" not in text_of(answer), tool
        if failure in REASONS:  # wrong answers name wrong profiles, or none
            for uri in ("nodewise://profiles/team-a/job", "nodewise://devices"):
                with pytest.raises(MCPError, match="No answer: "):
                    await agent.read_resource(uri)
