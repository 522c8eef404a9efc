"""Every snippet of the README and of the guides runs as it stands, against a real server."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import json_format
from serving import COMMAND, Stubs

from nodewise.runtime.embedded import EmbeddedServer
from nodewise_protos.v1 import prediction_service_pb2 as pb

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [
    "README.md",
    "docs/plugins.md",
    "docs/reference/profiles.md",
    "docs/guides/simulation.md",
    "clients/python/README.md",
]
SHELL = ["README.md", "docs/guides/planning.md", "docs/reference/profiles.md", "docs/guides/simulation.md"]
ADDRESS = re.compile(r"127\.0\.0\.1:50[05]51")


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", PYTHON)
def test_python_snippets_run_from_top_to_bottom(page: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "snippets"}
    found = blocks(page, "python")
    assert found
    try:
        for source in found:
            exec(compile(ADDRESS.sub(target, source), page, "exec"), names)
    finally:
        client = names.get("client")
        if client is not None:
            client.close()  # type: ignore[attr-defined]
    if page == "README.md":
        printed = capsys.readouterr().out
        assert "queueing" in printed
        assert "first" in printed
        assert "second" in printed


def commands(page: str) -> list[str]:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("nodewise ") and not line.startswith("nodewise serve")]


@pytest.mark.parametrize(("page", "command"), [(page, command) for page in SHELL for command in commands(page)])
def test_commands_of_the_pages_succeed(page: str, command: str, target: str, tmp_path: Path) -> None:
    command = re.sub(
        r"\b(curve\.png|job\.html|job\.json)\b", lambda name: str(tmp_path / name.group()), ADDRESS.sub(target, command)
    )
    finished = run(command)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout


def run(command: str) -> subprocess.CompletedProcess[str]:
    arguments = shlex.split(command)
    assert arguments[0] == "nodewise"
    return subprocess.run(
        [*COMMAND, *arguments[1:]],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "NODEWISE_SERVER"},
    )


ERRORS = re.findall(
    r"^\| `(nodewise [^`]+)` \| `([A-Z_]+)` \| (\d) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
)


def test_the_readme_shows_errors() -> None:
    assert len(ERRORS) >= 5
    assert {status for _, _, status in ERRORS} == {"1", "2", "3"}


@pytest.mark.parametrize(("command", "reason", "status"), ERRORS)
def test_errors_of_the_readme_are_as_it_says(command: str, reason: str, status: str, target: str) -> None:
    # A server named in the command is one that is not there; the others are asked for here, which starts them fast.
    finished = run(command if "--server" in command else f"{command} --server {target}")
    assert reason in finished.stderr
    assert finished.returncode == int(status)
    assert not finished.stdout
    assert "Traceback" not in finished.stderr


def test_the_readmes_grpcurl_call_is_one_of_the_contract(target: str) -> None:
    (block,) = [block for block in blocks("README.md", "sh") if block.startswith("grpcurl")]
    arguments = shlex.split(block)
    body, method = arguments[arguments.index("-d") + 1], arguments[-1]
    assert method == "nodewise.v1.PredictionService/Predict"
    request = json_format.Parse(body, pb.PredictRequest())
    with Stubs(target) as stubs:
        stubs.profile.AppendProfile(_append(request.profile.profile_id))
        reply = stubs.prediction.Predict(request)
    assert list(reply.predictions.workers) == list(range(1, 17))
    assert reply.recommendation.rule == "knee"


def _append(profile_id: str) -> object:
    from serving import one_worker_phases

    from nodewise_protos.v1 import profile_service_pb2

    return profile_service_pb2.AppendProfileRequest(
        profile_id=profile_id, request_id="for-grpcurl", content=one_worker_phases()
    )


def test_the_interpreter_of_the_tests_has_the_command() -> None:
    assert Path(COMMAND[0]).parent == Path(sys.executable).parent


def test_the_transcript_of_the_readme_is_what_the_command_says(target: str) -> None:
    transcript, _ = blocks("README.md", "text")
    said = subprocess.run(
        [*COMMAND, "plan", "examples/plan_mlp_32_machines.json", "--server", target],
        capture_output=True, check=True, cwd=ROOT, text=True, timeout=60,
    ).stdout  # fmt: skip
    # But for how long the search took, and the estimator's version.
    measured = re.compile(r"[\d.]+ s, by \w+ [\d.]+$")
    lines = [measured.sub("", line.rstrip()) for line in said.splitlines()]
    assert [measured.sub("", line) for line in transcript.splitlines()] == lines


def test_the_excerpt_of_a_diagnosis_is_what_the_command_says(target: str) -> None:
    _, excerpt = blocks("README.md", "text")
    said = subprocess.run(
        [*COMMAND, "diagnose", "examples/traces", "--server", target],
        capture_output=True, check=True, cwd=ROOT, text=True, timeout=100, env={**os.environ, "COLUMNS": "200"},
    ).stdout  # fmt: skip
    lines = [" ".join(line.split()) for line in said.splitlines()]
    shown = [" ".join(line.removesuffix("[...]").split()) for line in excerpt.splitlines()]
    rows = [row for row in shown if row and not row.startswith("─")]
    assert len(rows) == 7
    assert [row for row in rows if not any(line.startswith(row) for line in lines)] == []
