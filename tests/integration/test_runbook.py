"""Each entry of the runbook on a real server: the fault, its event in the log, what the commands show, the remedy."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from faults import Faults, one_worker_phases_content
from patience import wait_until
from serving import workers_of
from typer.testing import CliRunner

from nodewise_cli.app import app
from nodewise_client import Client, ListProfilesRequest

pytestmark = pytest.mark.long

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "runbook.md"
CACHE_BYTES = 32 << 20
"""Twice the least."""
COMMANDS = ("nodewise status", "nodewise top", "nodewise estimators")


@dataclass(frozen=True)
class Entry:
    """What the page states: events of the fault and of its end, and the commands that show it."""

    events: frozenset[str]
    last_events: frozenset[str]
    commands: frozenset[str]


def read_entries() -> Iterator[tuple[str, Entry]]:
    for part in PAGE.read_text(encoding="utf-8").split("\n### ")[1:]:
        name, _, text = part.partition("\n")
        text = " ".join(text.partition("\n## ")[0].split())
        said = re.fullmatch(r"(?P<symptom>.+?) - Log: (?P<log>.+) - Look: (?P<look>.+) - Remedy: (?P<remedy>.+)", text)
        assert said is not None, f"{name}: needs a symptom, Log, Look and Remedy, in this order"
        last = frozenset(re.findall(r"`(\w+)` ends it", said["log"]))
        events = frozenset(re.findall(r"`([a-z]+_[a-z_]+)`", said["log"])) - last
        commands = frozenset(re.findall(r"`(nodewise [a-z]+)`", said["look"]))
        assert events or "nothing" in said["log"], f"{name}: Log names no event"
        assert commands <= set(COMMANDS), f"{name}: Look names {commands}"
        assert commands, f"{name}: Look names no command"
        yield name, Entry(events, last, commands)


ENTRIES = dict(read_entries())


class Operator:
    """A server under faults, and the commands of its operator."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    def run(self, command: str) -> dict[str, Any]:
        """What a command of the page shows, by its JSON; empty = it fails."""
        target, http = self.faults.target, self.faults.http
        options = {
            "nodewise status": ["status", target, "--http", http],
            "nodewise top": ["top", "--once", http],
            "nodewise estimators": ["estimators", "--server", target],
        }[command]
        result = CliRunner().invoke(app, [*options, "--json"])
        shown: dict[str, Any] = json.loads(result.stdout) if result.stdout else {}
        return shown

    def top(self, table: str, column: str, **row: str) -> float:
        """The largest figure of a column of `nodewise top`, of the rows with these cells."""
        rows = self.run("nodewise top").get(table, [])
        return max([number(each[column]) for each in rows if row.items() <= each.items()], default=0.0)


def number(cell: str) -> float:
    return 0.0 if cell == "-" else float(cell.replace(",", ""))


Sees = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True)
class Drive:
    """How an entry is driven.

    Attributes
    ----------
    fault : callable
        Called repeatedly in the background until the commands have shown it; then ``remedy`` once.
    shown : mapping
        What each command of the entry shows under the fault.
    well : callable
        Whether all is well after the remedy.
    """

    fault: Callable[[Faults], object]
    shown: Mapping[str, Sees]
    remedy: Callable[[Faults], object]
    well: Callable[[Operator], bool]
    before: Callable[[Faults], object] = field(default=lambda _: None)


@contextmanager
def repeated(fault: Callable[[], object]) -> Iterator[None]:
    """Call it in the background, again and again."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            fault()
            is_over.wait(0.1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def column(table: str, name: str, most: float, **row: str) -> Sees:
    """Whether a figure of `nodewise top` is above this."""

    def sees(shown: dict[str, Any]) -> bool:
        cells = [each[name] for each in shown.get(table, []) if row.items() <= each.items()]
        return any(number(cell) > most for cell in cells)

    return sees


def is_ready(operator: Operator) -> bool:
    return bool(operator.run("nodewise status").get("ready"))


def has_two_workers(operator: Operator) -> bool:
    return len(operator.run("nodewise top").get("workers", [])) == 2


def answers(estimator: str) -> Callable[[Operator], bool]:
    def well(operator: Operator) -> bool:
        return operator.faults.predict(estimator) == ""

    return well


def few_batches(faults: Faults) -> int:
    """Returns how many failed."""
    return faults.flood(10, "queueing")


def kill_workers(faults: Faults) -> None:
    if len(workers_of(faults.server.pid)) == 2:
        faults.kill_a_worker()


def crash(faults: Faults) -> None:
    """Told to stop once, then by crashes of all workers."""
    if not faults.events()["stopped"]:
        faults.server.terminate()
        faults.write_settings(crash_budget=1)
        faults.start()
    while faults.server.running:
        faults.kill_a_worker()


def start_again(faults: Faults) -> None:
    faults.write_settings(cache_bytes=CACHE_BYTES)
    faults.start()


def repair(name: str) -> Callable[[Faults], None]:
    return lambda faults: faults.repair_plugin(name)


def break_(name: str) -> Callable[[Faults], None]:
    return lambda faults: faults.break_plugin(name)


def ask(name: str) -> Callable[[Faults], object]:
    return lambda faults: faults.predict(name)


def observe(team: str, factor: float) -> Callable[[Faults], None]:
    def observed(faults: Faults) -> None:
        for turn in range(4):
            faults.observe(f"{team}/{turn}", factor)

    return observed


def estimator_figure(name: str, is_off: Callable[[float], bool]) -> Sees:
    def sees(shown: dict[str, Any]) -> bool:
        figures = [each[name] for each in shown["estimators"] if each["name"] == "auto" and each["scored"]]
        return any(is_off(figure) for figure in figures)

    return sees


def retract_earlier_runs(team: str) -> Callable[[Faults], None]:
    """Keep the last eight runs of each job."""

    def retract(faults: Faults) -> None:
        with Client(faults.target) as client:
            profiles = list(client.list_profiles(ListProfilesRequest(name_prefix=f"{team}/")))
        for profile in (each for each in profiles if each.observations_count > 8):
            words = ["--observations", f"1-{profile.observations_count - 8}", "--server", faults.target]
            assert CliRunner().invoke(app, ["profiles", "retract", profile.profile_id, *words]).exit_code == 0

    return retract


def predicts_the_runs(job: str) -> Callable[[Operator], bool]:
    """Whether a job is predicted as it runs now."""
    return lambda operator: abs(operator.faults.predicted_rate(job) / (6.0 * 8 / 1.16) - 1.0) < 0.2


DRIVES = {
    "NodewiseServerDown": Drive(crash, {"nodewise status": lambda shown: not shown}, start_again, is_ready),
    "NodewiseWorkerMissing": Drive(
        kill_workers, {"nodewise top": lambda shown: len(shown.get("workers", [])) < 2}, lambda _: None, has_two_workers
    ),
    "NodewiseWorkersRestarting": Drive(
        kill_workers, {"nodewise top": lambda shown: len(shown.get("workers", [])) < 2}, lambda _: None, has_two_workers
    ),
    "NodewiseCacheFull": Drive(
        few_batches,
        {"nodewise top": lambda shown: number(shown["caches"][0]["GiB"]) > 0.9 * number(shown["caches"][0]["of GiB"])},
        lambda faults: faults.reload(cache_bytes=64 << 20),
        lambda operator: operator.top("caches", "GiB") < 0.5 * operator.top("caches", "of GiB"),
    ),
    "NodewiseMemoryNearLimit": Drive(
        few_batches,
        {"nodewise top": column("caches", "GiB", 0.02)},
        lambda faults: faults.reload(cache_bytes=16 << 20),
        lambda operator: operator.top("caches", "of GiB") < 0.04,
    ),
    "NodewiseErrors": Drive(
        ask("exits"),
        {"nodewise top": column("calls", "failed/s", 0.0, method="Predict")},
        repair("exits"),
        answers("exits"),
        before=break_("exits"),
    ),
    "NodewiseSlowPredictions": Drive(
        ask("hangs"),
        {"nodewise top": column("calls", "mean ms", 1000.0, method="Predict")},
        repair("hangs"),
        answers("hangs"),
        before=break_("hangs"),
    ),
    "NodewiseOverloaded": Drive(
        Faults.flood,
        {"nodewise top": column("queues", "refused/s", 0.0)},
        lambda faults: faults.reload(queue_wait_s=60.0),
        lambda operator: not few_batches(operator.faults),
    ),
    "NodewiseQueueLong": Drive(
        lambda faults: faults.flood(150, "queueing"),
        {"nodewise top": lambda shown: any(number(each["waiting"]) > 0 for each in shown.get("queues", []))},
        lambda _: None,
        lambda operator: operator.top("queues", "waiting") == 0.0,
    ),
    "NodewiseStoreDown": Drive(
        Faults.take_store_away,
        {"nodewise status": lambda shown: shown["checks"]["store"] == "deleted"},
        Faults.put_store_back,
        is_ready,
    ),
    "NodewiseStoreSlow": Drive(
        Faults.lock_store,
        {"nodewise top": column("store", "mean ms", 250.0)},
        lambda _: None,
        lambda operator: operator.top("store", "mean ms") < 250.0,
        before=lambda faults: faults.append("locked", one_worker_phases_content()),
    ),
    "NodewisePluginBreakerOpen": Drive(
        ask("exits"),
        {
            "nodewise top": column("plugins", "open breakers", 0.0),
            "nodewise status": lambda shown: shown["open_breakers"] > 0,
        },
        repair("exits"),
        answers("exits"),
        before=break_("exits"),
    ),
    "NodewisePluginHostDead": Drive(
        ask("exits"),
        {"nodewise top": lambda shown: any(number(each["alive"]) < number(each["hosts"]) for each in shown["plugins"])},
        repair("exits"),
        answers("exits"),
        before=break_("exits"),
    ),
    "NodewisePluginFailing": Drive(
        ask("raises"),
        {"nodewise top": column("plugins", "failed/s", 0.0, plugin="raises-plugin")},
        repair("raises"),
        answers("raises"),
        before=break_("raises"),
    ),
    "NodewiseEstimatorDrift": Drive(
        lambda faults: faults.observe("drift/0", 6.0),
        {"nodewise estimators": estimator_figure("bias", lambda bias: bias < -0.1)},
        retract_earlier_runs("drift"),
        predicts_the_runs("drift/0"),
        before=lambda faults: [observe("drift", 1.0)(faults) for _ in range(2)],
    ),
    "NodewiseCoverageLow": Drive(
        lambda faults: faults.observe("coverage/0", 6.0),
        {"nodewise estimators": estimator_figure("coverage90", lambda share: share < 0.9)},
        retract_earlier_runs("coverage"),
        predicts_the_runs("coverage/0"),
        before=observe("coverage", 1.0),
    ),
}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    with Faults(tmp_path_factory.mktemp("faults"), cache_bytes=CACHE_BYTES) as faults:
        yield faults


def test_each_entry_has_a_drive() -> None:
    assert DRIVES.keys() == ENTRIES.keys()


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_of_the_runbook(name: str, faults: Faults) -> None:
    entry, drive, operator = ENTRIES[name], DRIVES[name], Operator(faults)
    assert drive.shown.keys() == entry.commands
    wait_until(lambda: is_ready(operator))
    drive.before(faults)
    logged = faults.events()
    with repeated(lambda: drive.fault(faults)):
        wait_until(lambda: entry.events <= new(faults, logged))
        for command, sees in drive.shown.items():
            wait_until(lambda sees=sees, command=command: sees(operator.run(command)))  # type: ignore[misc]
    logged = faults.events()
    drive.remedy(faults)
    wait_until(lambda: drive.well(operator))
    wait_until(lambda: entry.last_events <= new(faults, logged))
    wait_until(lambda: is_ready(operator))


def new(faults: Faults, logged: Counter[str]) -> set[str]:
    """Events that were logged since."""
    return set(faults.events() - logged)
