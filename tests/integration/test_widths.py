"""Whatever the width, people are shown every number whole: the same ones at 40 columns as where there is room."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
OF_HEADINGS = re.compile(r"90\s+%\s+(?:interval|covers)|±\s+95\s+%|p9[09]")
ROOM = 1000
# Arguments, and the views that are shown.
COMMANDS: dict[str, tuple[list[str | Path], str]] = {
    "predict": (["predict", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "1-4,1024"], "predict"),
    "predict costs": (
        [
            *("predict", EXAMPLES / "profile.json", "--workers", "pow2:1-4096", "--batch-per-worker", "128"),
            *("--objective", "least-cost", "--samples", "1e9", "--price", "3.06", "--currency", "USD"),
        ],
        "predict",
    ),
    "suggest": (["suggest", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "1-16"], "suggest"),
    "backtest": (["backtest", EXAMPLES / "testbed.csv", "--estimator", "all"], "backtest"),
    "schedule": (["schedule", EXAMPLES / "schedule.json"], "schedule"),
    "plan": (["plan", EXAMPLES / "plan_22b_64_devices.json"], "plan"),
    "card": (
        [
            *("card", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "4", "--batch-per-worker", "64"),
            *(
                "--samples",
                "1e9",
                "--price",
                "3.06",
                "--currency",
                "USD",
                "--deadline-h",
                "100",
                "--grid",
                "400",
                "--training-watts",
                "200",
                "--runs",
                "500",
            ),
        ],
        "card",
    ),
    "spot": (["spot", EXAMPLES / "spot.json", "--runs", "500"], "spot"),
    "simulate": (["simulate", EXAMPLES / "simulation" / "simulate.json", "--repetitions", "2"], "simulation"),
    "replay": (["replay", EXAMPLES / "traces"], "replay"),
    "diagnose": (["diagnose", EXAMPLES / "traces"], "diagnose"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with EmbeddedServer() as embedded:
        yield embedded.target


def shown_by(
    arguments: list[str | Path], view: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """What a command shows, to be shown again: its times differ from run to run."""
    name, caught = f"nodewise_cli.views.{view}", []
    CliRunner().invoke(app, [str(arguments[0]), "--help"])  # imports the command, which takes its view by name
    module = sys.modules.get(name) or __import__(name, fromlist=["show"])
    show: Callable[..., None] = module.show

    def catch(*values: Any) -> None:
        caught.append(values)

    monkeypatch.setattr(module, "show", catch)
    for command in [each for each in sys.modules if each.startswith("nodewise_cli.commands.")]:
        if getattr(sys.modules[command], "show", None) is show:
            monkeypatch.setattr(sys.modules[command], "show", catch)
    result = CliRunner().invoke(app, [*map(str, arguments), "--server", server])
    assert (result.exit_code, len(caught)) == (0, 1), result.output
    return lambda: show(*caught[0])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_number_is_whole(
    command: str, server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    again = shown_by(*COMMANDS[command], server, monkeypatch)

    def printed(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        again()
        return capsys.readouterr().out

    expected = sorted(NUMBER.findall(OF_HEADINGS.sub("", printed(ROOM))))
    assert expected
    for width in (40, 60, 80, 120):
        narrow = printed(width)
        assert sorted(NUMBER.findall(OF_HEADINGS.sub("", narrow))) == expected
        assert not [line for line in narrow.splitlines() if len(line) > width and " " in line.strip()]
