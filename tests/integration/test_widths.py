"""Whatever the width, people are shown every number whole: the same ones at 40 columns as where there is room."""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from patience import wait_until
from plugin_installs import installed
from tiny_wheels import wheel
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.generations.folder import PluginsFolder
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_cli.commands.options import Call
from nodewise_client import AppendProfileRequest, Client, ListPriorsRequest, ReportStepsRequest, StepWindows

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
OF_HEADINGS = re.compile(r"\b90\s+%\s+(?:interval|covers|range|of)|\b90 %(?=\s{2}|$)|±\s+95\s+%|p9[09]", re.MULTILINE)
ROOM = 1000
WIDTHS = (40, 60, 80, 120, 200)
COMMANDS: dict[str, list[str | Path]] = {
    "predict": ["predict", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "1-4,1024"],
    "predict costs": [
        *("predict", EXAMPLES / "profile.json", "--workers", "pow2:1-4096", "--batch-per-worker", "128"),
        *("--objective", "least-cost", "--samples", "1e9", "--price", "3.06", "--currency", "USD"),
    ],
    "predict a model": [
        *("predict", EXAMPLES / "config.json", "--device", "H100", "--nodes", "1-4,128", "--workers-per-node", "8"),
        *("--global-batch", "1024"),
    ],
    "predict measured": ["predict", "--measured", "1=19800,2=38100,4=72400", "--gpus-per-node", "8"],
    "suggest": ["suggest", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "1-16"],
    "rank": ["rank", EXAMPLES / "architectures.csv", "--device", "V100", "--batch", "128"],
    "backtest": ["backtest", EXAMPLES / "testbed.csv", "--estimator", "all"],
    "schedule": ["schedule", EXAMPLES / "schedule.json"],
    "share": ["share", EXAMPLES / "share.json"],
    "plan": ["plan", EXAMPLES / "plan_22b_64_devices.json", "--memory-timeline"],
    "plan a model": [
        *("plan", EXAMPLES / "config.json", "--cluster", "H100=4x8", "--batch", "512", "--tokens", "15e12"),
    ],
    "card of a model": [
        *("card", EXAMPLES / "config.json", "--device", "H100", "--nodes", "16", "--workers-per-node", "8"),
        *("--global-batch", "1024", "--tokens", "1e12", "--price", "98.32", "--currency", "USD"),
        *("--deadline-h", "2000", "--device-hours-between-failures", "20000", "--grid", "400", "--runs", "500"),
    ],
    "card": [
        *("card", EXAMPLES / "testbed.csv", "--job", "a1", "--nodes", "4", "--batch-per-worker", "64"),
        *("--samples", "1e9", "--price", "3.06", "--currency", "USD", "--deadline-h", "100", "--grid", "400"),
        *("--training-watts", "200", "--runs", "500"),
    ],
    "spot": ["spot", EXAMPLES / "spot.json", "--runs", "500"],
    "simulate": ["simulate", EXAMPLES / "simulation" / "simulate.json", "--repetitions", "2"],
    "sweep": ["sweep", EXAMPLES / "simulation" / "sweep.json", "--seeds", "2"],
    "replay": ["replay", EXAMPLES / "traces"],
    "diagnose a running job": ["diagnose", "--profile", "team/running", "--since", "1h"],
    "record": ["record", "--profile", "a1", "--steps", "1000", "--ranks", "0,17,1024"],
    "diagnose": ["diagnose", EXAMPLES / "traces"],
    "compare": ["diagnose", EXAMPLES / "traces", "--against", EXAMPLES / "traces"],
    "ingest": ["ingest", EXAMPLES / "testbed.csv"],
    "profiles list": ["profiles", "list"],
    "profiles show": ["profiles", "show", "a1"],
    "profiles usage": ["profiles", "usage"],
    "devices": ["devices"],
    "estimators": ["estimators"],
    "plugins": ["plugins"],
    "plugins generations": ["plugins", "generations"],
    "reload": ["reload"],
    "priors list": ["priors", "list"],
    "tokens list": ["tokens", "list"],
    "status": ["status", "--http", "HTTP"],
    "top": ["top", "HTTP", "--once"],
}
SENTENCES = {
    *("serve", "health", "completion", "schema", "demo", "backup", "restore", "copy", "verify", "ui", "mcp"),
    *("failures", "profiles retract", "profiles delete", "profiles undelete", "profiles export"),
    *("plugins install", "plugins remove", "plugins canary", "plugins promote", "plugins rollback", "plugins new"),
    *("priors pin", "priors unpin", "priors rollback", "tokens create", "tokens revoke", "tokens purge"),
}
"""Commands that print no table of their own."""
VIEWS = {"status": ("status", "_show"), "plugins generations": ("generations", "show_generations")}
"""Functions that show the answers of commands that do without `Call.tell`, by module."""
WITHOUT_SERVER = {"plugins generations", "top", "tokens list"}


class Site:
    """A server with profiles, a job that runs, lessons, tokens and two generations of plugins."""

    def __init__(self, folder: Path) -> None:
        self.plugins, self.wheels = PluginsFolder(folder / "plugins"), folder / "wheels"
        self.settings = Settings(
            store=f"sqlite:{folder / 'store.db'}",
            http="127.0.0.1:0",
            plugins_folder=str(folder / "plugins"),
            admin=True,
            grace_s=1.0,
            learn_interval_s=0.05,
        )
        self.arguments: dict[str, list[str]] = {
            "plugins generations": ["--plugins-folder", str(folder / "plugins"), "--store", self.settings.store],
            "tokens list": ["--store", self.settings.store],
        }

    def fill(self, server: EmbeddedServer) -> None:
        """Store what the commands show."""
        table, on_server = str(EXAMPLES / "testbed.csv"), ["--server", server.target]
        token = ["--role", "ingest", "--role", "read", "--prefix", "team", "--description", "12 nodes"]
        for command in (
            ["ingest", table, *on_server],
            ["ingest", table, "--prefix", "team", *on_server],
            ["tokens", "create", *token, "--store", self.settings.store],
        ):
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, result.output
        with Client(server.target) as client:
            client.append_profile(AppendProfileRequest(profile_id="team/running", labels={"kind": "running"}))
            for rank in range(4):
                client.report_steps(reported(rank))
            wait_until(lambda: client.list_priors(ListPriorsRequest()).learned)
        for version in ("1.0", "2.0"):
            installed(self.plugins, str(wheel(self.wheels, version, seconds=float(version))))
            if version == "1.0":
                assert CliRunner().invoke(app, ["reload", "--server", server.target]).exit_code == 0


def reported(rank: int) -> ReportStepsRequest:
    """Steps of a rank; those of the last one take longer from the middle on."""
    windows = range(40)
    own = [0.6 * (1.3 if rank == 3 and window > 20 else 1.0) + 0.001 * (window % 3) for window in windows]
    begin = time.time() - 400
    return ReportStepsRequest(
        profile_id="team/running",
        rank=rank,
        world_size=4,
        node=rank // 2,
        windows=StepWindows(
            first_steps=tuple(10 * window for window in windows),
            steps_counts=tuple(10 for _ in windows),
            begin_unix_seconds=tuple(begin + 10 * window for window in windows),
            step_seconds=tuple(1.0 for _ in windows),
            forward_seconds=tuple(0.4 * each for each in own),
            backward_seconds=tuple(0.6 * each for each in own),
            exchange_seconds=tuple(1.0 - each for each in own),
        ),
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, EmbeddedServer]]:
    site = Site(tmp_path_factory.mktemp("site"))
    with EmbeddedServer(site.settings) as server:
        site.fill(server)
        yield site, server


def shown_by(name: str, site: tuple[Site, EmbeddedServer], monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What a command shows, to be shown again: its times differ from run to run."""
    caught: list[Callable[[], None]] = []
    arguments, (filled, server) = COMMANDS[name], site
    monkeypatch.setattr(Call, "tell", lambda _, document, show, answer, page=None: caught.append(lambda: show(answer)))
    for module_name, view in VIEWS.values():
        module = importlib.import_module(f"nodewise_cli.commands.{module_name}")
        monkeypatch.setattr(module, view, catching(getattr(module, view), caught))
    status: Any = importlib.import_module("nodewise_cli.commands.status")
    if name == "top":  # shows several tables one by one
        rates = status._rates

        def caught_rates(samples: Any) -> Any:
            tables = rates(samples)
            caught.append(lambda: [status.print_table(*of, title) for title, of in tables.items()] and None)
            return {}

        monkeypatch.setattr(status, "_rates", caught_rates)
    words = [server.http_target if each == "HTTP" else str(each) for each in arguments]
    words += filled.arguments.get(name, [])
    if name != "plugins generations":
        words += ["--verbose"]
    if name not in WITHOUT_SERVER and arguments[0] != "sweep":
        words += ["--server", server.target]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, len(caught)) == (0, 1), result.output
    return caught[0]


def catching(view: Callable[[Any], None], caught: list[Callable[[], None]]) -> Callable[[Any], None]:
    return lambda answer: caught.append(lambda: view(answer))


def test_every_command_is_here() -> None:
    """A command that shows a table is in the test below, at every width."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("nodewise", ["--help"], resilient_parsing=True)
    commands = set()
    for name in root.list_commands(context):
        below = getattr(root.resolve_command(context, [name])[1], "commands", None)
        commands |= {f"{name} {each}" for each in below} if below else {name}
    words = {" ".join(map(str, each[:2])) for each in COMMANDS.values()} | {str(each[0]) for each in COMMANDS.values()}
    assert commands - SENTENCES == commands & words


@pytest.mark.parametrize("command", COMMANDS)
def test_every_number_is_whole(
    command: str,
    site: tuple[Site, EmbeddedServer],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    again = shown_by(command, site, monkeypatch)

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
