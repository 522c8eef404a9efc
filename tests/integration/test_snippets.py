"""Every snippet of the README and of the guides runs as it stands, against a real server."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import json_format
from pages import ADDRESS, APART, ROOT, blocks
from programs import needs
from serving import COMMAND, Stubs
from typer.testing import CliRunner, Result

from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_protos.v1 import objective_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

PAGES = [
    "README.md",
    "clients/python/README.md",
    *sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")),
]
NEED_TORCH = {"docs/guides/slow_jobs.md", "docs/reference/replay.md"}
"""Parts of a training script: `tests/integration/test_recorder.py` runs the recorder."""
ELSEWHERE = {
    "docs/guides/security.md",
    "docs/guides/running_jobs.md",
    "docs/plugins/any_language.md",
    "docs/guides/observability.md",
    *APART,
}
"""The server of the first has TLS and asks for tokens: `tests/integration/test_tokens_command.py` goes through it. The
second needs a job that runs: `tests/integration/test_running_jobs.py`. The third needs an estimator that is a server:
`tests/integration/test_estimator_servers.py`. The fourth needs HTTP:
`tests/integration/test_status.py`. The others need a cluster manager: `tests/integration/managers`."""
LONG = {"docs/guides/planning.md", "docs/guides/simulation.md"}
"""They search and simulate for a quarter of a minute each."""
OUTPUT = re.compile(r"(--(?:plot|picture|report|timeline|gantt|csv|predictions)|nodewise demo) (\S+)")
TRACES = "tests/fixtures/traces"
STORED = re.compile(r"(nodewise\.db|fresh\.db|backups/\w+)")
"""Files that a page's commands keep; a store that is copied is there before."""


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


def commands(page: str) -> list[str]:
    """Lines of its blocks of shell that call us, but for those that start a server."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("nodewise ") and not line.startswith("nodewise serve")]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] if page in LONG else [])
        for page in PAGES
        if page not in ELSEWHERE and (commands(page) or blocks(page, "python"))
    ],
)
def test_what_a_page_shows_runs_from_top_to_bottom(
    page: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """First what it types, then what it programs."""
    shown = commands(page)
    if any("sqlite:nodewise.db" in command for command in shown):
        SqliteProfileStore(tmp_path / "nodewise.db").close()
        (tmp_path / "backups").mkdir()
    for command in shown:
        succeeds(command, target, tmp_path)
    names: dict[str, object] = {"__name__": "snippets"}
    try:
        for source in blocks(page, "python") if page not in NEED_TORCH else ():
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


def succeeds(command: str, target: str, folder: Path) -> None:
    # A server of its own for each would answer the same, and take the time to start.
    placed = STORED.sub(rf"{folder}/\1", OUTPUT.sub(rf"\1 {folder}/\2", ADDRESS.sub(target, command)))
    finished = run(placed, NODEWISE_SERVER=target)
    assert finished.exit_code == 0, finished.output
    assert finished.stdout


def run(command: str, **variables: str | None) -> Result:
    """A command as a reader types it in the repository's root; in this process, which saves the time to import."""
    arguments = shlex.split(command)
    assert arguments[0] == "nodewise"
    with contextlib.chdir(ROOT):
        # A terminal's width, that pytest's workers or readline may have set, is not the reader's.
        variables = {"NODEWISE_SERVER": None, "COLUMNS": None} | variables
        return CliRunner().invoke(app, arguments[1:], env=variables, catch_exceptions=False)


ERRORS = re.findall(
    r"^\| `(nodewise [^`]+)` \| `([A-Z_]+)` \| (\d) \|$",
    (ROOT / "docs" / "guides" / "predict.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_errors_are_shown() -> None:
    assert len(ERRORS) >= 5
    assert {status for _, _, status in ERRORS} == {"1", "2", "3"}


@pytest.mark.parametrize(("command", "reason", "status"), ERRORS)
def test_errors_are_as_the_page_says(command: str, reason: str, status: str, target: str) -> None:
    # A server named in the command is one that is not there; the others are asked for here, which starts them fast.
    finished = run(command if "--server" in command else f"{command} --server {target}")
    assert reason in finished.stderr
    assert finished.exit_code == int(status)
    assert not finished.stdout
    assert "Traceback" not in finished.stderr


@needs("curl")
def test_the_readmes_curl_call_is_answered() -> None:
    (block,) = [block for block in blocks("README.md", "sh") if block.startswith("curl")]
    with EmbeddedServer(Settings(store="memory:", http="127.0.0.1:0")) as server, Stubs(server.target) as stubs:
        stubs.profile.AppendProfile(_append("team-a/a1"))
        assert server.http_target
        arguments = shlex.split(block.replace("localhost:50552", server.http_target))
        asked = subprocess.run([*arguments, "--silent", "--show-error"], check=True, capture_output=True)
    reply = json_format.Parse(asked.stdout, pb.PredictResponse())
    assert list(reply.predictions.workers) == list(range(1, 17))
    assert reply.recommendation.rule == objective_pb2.OBJECTIVE_RULE_KNEE


def _append(profile_id: str) -> object:
    from serving import one_worker_phases

    from nodewise_protos.v1 import profile_service_pb2

    return profile_service_pb2.AppendProfileRequest(
        profile_id=profile_id, request_id="for-curl", content=one_worker_phases()
    )


def test_the_installed_command_is_what_runs_here(target: str, tmp_path: Path) -> None:
    assert Path(COMMAND[0]).parent == Path(sys.executable).parent
    shown, *_ = commands("README.md")
    arguments = [*shlex.split(OUTPUT.sub(rf"\1 {tmp_path}/\2", shown))[1:], "--server", target]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    installed = subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    assert installed.stdout == run(shlex.join(["nodewise", *arguments])).stdout


@pytest.mark.parametrize(
    ("page", "place", "command", "rows"),
    [
        ("predict", 0, "predict examples/testbed.csv --job a1 --workers 1-16", 13),
        ("planning", 0, "plan examples/plan_mlp_32_machines.json", 9),
        ("suggestions", 0, "suggest examples/testbed.csv --job a1 --nodes 1-16", 7),
        ("slow_jobs", 0, "diagnose examples/traces", 7),
        ("slow_jobs", 1, f"diagnose {TRACES}/ddp_2_ranks_straggler --against {TRACES}/ddp_2_ranks_3_buckets", 5),
    ],
)
def test_excerpts_are_what_the_command_says(page: str, place: int, command: str, rows: int, target: str) -> None:
    excerpt = blocks(f"docs/guides/{page}.md", "text")[place]
    assert said_of(excerpt, f"nodewise {command} --server {target}") == rows


def said_of(excerpt: str, command: str) -> int:
    """How many lines of an excerpt the command prints, all of them: `[...]` stands for what is left out."""
    lines = [" ".join(line.split()) for line in run(command, COLUMNS="200").stdout.splitlines()]
    shown = [" ".join(line.removesuffix("[...]").split()) for line in excerpt.splitlines()]
    rows = [row for row in shown if row and not row.startswith("─")]
    assert [row for row in rows if not any(line.startswith(row) for line in lines)] == []
    return len(rows)


def test_the_error_in_the_readme_is_what_the_backtest_says(target: str) -> None:
    command = "nodewise backtest examples/testbed.csv"
    (line,) = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if f"`{command}`" in line]
    said = json.loads(run(f"{command} --json --server {target}").stdout)["estimators"]["auto"]
    assert f"| {said['n']} runs" in line
    assert f"| {100 * said['mape']:.1f} % |" in line
