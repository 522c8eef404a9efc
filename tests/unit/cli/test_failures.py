"""`nodewise failures`: events of nodes as Slurm and Kubernetes record them, the mean and its interval."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise_cli.app import app
from nodewise_cli.commands.failures import _rate
from nodewise_cli.inputs.node_events import Outage

OPTIONS = ("--nodes", "64", "--devices-per-node", "8", "--hours", "720")
SLURM = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
tests||2026-01-01T00:00:00|Unknown||Cluster Registered TRES|
tests|n1|2026-01-03T10:00:00|2026-01-03T11:00:00|DOWN*|Not responding|slurm(64030)
tests|n1|2026-01-03T11:00:00|2026-01-03T14:00:00|DRAIN|"fan | broken|root(0)
tests|n2|2026-01-09T00:00:00|Unknown|FAIL|GPU lost|root(0)
tests|n3|2026-01-10T00:00:00|2026-01-10T06:00:00|DRAIN|kernel update|root(0)
tests|n3|2026-01-10T06:00:00|2026-01-11T00:00:00|DOWN|reboot|root(0)
"""
"""As Slurm 22.05 with slurmdbd prints it."""


def event(node: str, reason: str = "NodeNotReady", **changes: Any) -> dict[str, Any]:
    return {
        "involvedObject": {"kind": "Node", "name": node},
        "reason": reason,
        "firstTimestamp": "2026-01-03T10:00:00Z",
        "lastTimestamp": "2026-01-03T12:00:00Z",
        "count": 1,
        **changes,
    }


KUBERNETES = {
    "kind": "List",
    "items": [
        event("n1", count=3, source={"component": "node-controller"}),
        event("n1", source={"component": "kubelet", "host": "n1"}),
        event("n2", firstTimestamp=None, lastTimestamp=None, count=None, eventTime="2026-01-04T10:00:00.000000Z"),
        event("n3", "NodeHasDiskPressure"),
        event("pod", involvedObject={"kind": "Pod", "name": "pod"}),
    ],
}


def answer(path: Path, *options: str) -> dict[str, Any]:
    command = ["failures", str(path), *OPTIONS, "--json", *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_events_of_slurm(tmp_path: Path) -> None:
    found = answer(write(tmp_path / "events.txt", SLURM))
    # One of n1, whose second event follows the first without a gap, and one of n2; n3 was drained before it went down.
    assert (found["failures"], found["nodes"]) == (2, 2)
    assert found["device_hours"] == 8 * (64 * 720 - 4)
    assert found["device_hours_between_failures"] == found["device_hours"] / 2
    assert found["mean_outage_s"] == 4 * 3600
    assert found["lower_device_hours"] < found["device_hours_between_failures"] < found["upper_device_hours"]


def test_events_of_kubernetes(tmp_path: Path) -> None:
    found = answer(write(tmp_path / "events.json", json.dumps(KUBERNETES)))
    assert (found["failures"], found["nodes"], found["device_hours"]) == (4, 2, 8 * 64 * 720)
    assert found["mean_outage_s"] is None


def test_no_failure_gives_a_bound(tmp_path: Path) -> None:
    path = write(tmp_path / "events.txt", SLURM.splitlines()[0] + "\n")
    found = answer(path)
    assert (found["failures"], found["upper_device_hours"]) == (0, None)
    assert (
        found["lower_device_hours"]
        == found["device_hours_between_failures"]
        == pytest.approx(8 * 64 * 720 / -math.log(0.05))
    )
    text = CliRunner().invoke(app, ["failures", str(path), *OPTIONS]).stdout
    assert "No failure in 368,640 device-hours: more than 123,055 device-hours" in text
    assert "--device-hours-between-failures 123055" in text


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("a,b\n1,2\n", (), "must be what `sacctmgr show event -P format=NodeName,TimeStart,TimeEnd,State` prints"),
        ('{"kind": "List"}', (), "must be what `kubectl get events -A -o json` prints"),
        ('{"items": [{"involvedObject": "n1"}]}', (), "must be what `kubectl get events -A -o json` prints"),
        ('{"items": ["n1"]}', (), "must be what `kubectl get events -A -o json` prints"),
        (SLURM.replace("2026-01-09T00:00:00", "soon"), (), "line 5: TimeStart: must be a time"),
        (SLURM + "tests|n9", (), "line 8: TimeStart: must be a time"),
        (SLURM, ("--nodes", "1"), "--nodes: must be at least 2"),
        (SLURM, ("--nodes", "2", "--hours", "1"), "--hours: must be at least 134, the hours between"),
        (SLURM.replace("2026-01-03T14", "2026-02-09T14"), ("--nodes", "2", "--hours", "140"), "--hours: must be more"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, content: str, options: tuple[str, ...], words: str) -> None:
    path = write(tmp_path / "events", content)
    command = ["failures", str(path), *OPTIONS, *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize("mean", [0.05, 0.5, 2.0, 7.3, 40.0])
def test_the_interval_covers_the_truth_as_often_as_it_says(mean: float) -> None:
    """Over all counts of a Poisson law, of which the truth is known: Garwood's interval covers at least 90 %."""
    true = 64 * 8 * 720 / mean
    covered, chance, count = 0.0, math.exp(-mean), 0
    while count < 10 or count < 4 * mean:
        rate = _rate([Outage(f"n{number % 60}", 1e6 * number) for number in range(count)], 64, 8, 720)
        if rate.lower <= true and (rate.upper is None or true <= rate.upper):
            covered += chance
        count += 1
        chance *= mean / count
    assert 0.9 <= covered <= 1.0
