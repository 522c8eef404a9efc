"""Whatever the width, people are shown every number whole: the same ones at 40 columns as where there is room."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_cli.commands.options import Call

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
OF_HEADINGS = re.compile(r"\b90\s+%\s+(?:interval|covers|range)|\b90 %(?=\s{2}|$)|±\s+95\s+%|p9[09]", re.MULTILINE)
ROOM = 1000
WIDTHS = (40, 60, 80, 120, 200)
COMMANDS: dict[str, list[str | Path]] = {
    "predict": ["predict", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "1-4,1024"],
    "predict costs": [
        *("predict", EXAMPLES / "profile.json", "--workers", "pow2:1-4096", "--batch-per-worker", "128"),
        *("--objective", "least-cost", "--samples", "1e9", "--price", "3.06", "--currency", "USD"),
    ],
    "suggest": ["suggest", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "1-16"],
    "rank": ["rank", EXAMPLES / "architectures.csv", "--device", "V100", "--batch", "128"],
    "backtest": ["backtest", EXAMPLES / "testbed.csv", "--estimator", "all"],
    "schedule": ["schedule", EXAMPLES / "schedule.json"],
    "share": ["share", EXAMPLES / "share.json"],
    "plan": ["plan", EXAMPLES / "plan_22b_64_devices.json", "--memory-timeline"],
    "card": [
        *("card", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "4", "--batch-per-worker", "64"),
        *("--samples", "1e9", "--price", "3.06", "--currency", "USD", "--deadline-h", "100", "--grid", "400"),
        *("--training-watts", "200", "--runs", "500"),
    ],
    "spot": ["spot", EXAMPLES / "spot.json", "--runs", "500"],
    "simulate": ["simulate", EXAMPLES / "simulation" / "simulate.json", "--repetitions", "2"],
    "sweep": ["sweep", EXAMPLES / "simulation" / "sweep.json", "--seeds", "2"],
    "replay": ["replay", EXAMPLES / "traces"],
    "diagnose": ["diagnose", EXAMPLES / "traces"],
    "compare": ["diagnose", EXAMPLES / "traces", "--against", EXAMPLES / "traces"],
    "ingest": ["ingest", EXAMPLES / "testbed.csv"],
    "profiles list": ["profiles", "list"],
    "profiles show": ["profiles", "show", "a1"],
    "profiles usage": ["profiles", "usage"],
    "devices": ["devices"],
    "estimators": ["estimators"],
    "plugins": ["plugins"],
    "status": ["status"],
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with EmbeddedServer() as embedded:
        result = CliRunner().invoke(app, ["ingest", str(EXAMPLES / "testbed.csv"), "--server", embedded.target])
        assert result.exit_code == 0, result.output
        yield embedded.target


def shown_by(arguments: list[str | Path], server: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What a command shows, to be shown again: its times differ from run to run."""
    caught: list[Callable[[], None]] = []
    monkeypatch.setattr(Call, "tell", lambda _, document, show, answer, page=None: caught.append(lambda: show(answer)))
    status = importlib.import_module("nodewise_cli.commands.status")
    show_status = status._show  # the only command whose answer is put together of several
    monkeypatch.setattr(status, "_show", lambda report: caught.append(lambda: show_status(report)))
    command = [*map(str, arguments), "--verbose"]
    result = CliRunner().invoke(app, command if arguments[0] == "sweep" else [*command, "--server", server])
    assert (result.exit_code, len(caught)) == (0, 1), result.output
    return caught[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_number_is_whole(
    command: str, server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    again = shown_by(COMMANDS[command], server, monkeypatch)

    def printed(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        again()
        return capsys.readouterr().out

    expected = sorted(NUMBER.findall(OF_HEADINGS.sub("", printed(ROOM))))
    assert expected
    for width in WIDTHS:
        narrow = printed(width)
        assert sorted(NUMBER.findall(OF_HEADINGS.sub("", narrow))) == expected
        assert not [line for line in narrow.splitlines() if len(line) > width and " " in line.strip()]
