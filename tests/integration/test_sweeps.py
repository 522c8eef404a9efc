"""`nodewise sweep`: the same numbers on every engine, faults told with what they were, nothing left behind."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from sweeps import SPEC, WALL, ran, still, written
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.long
def test_the_numbers_depend_on_neither_order_nor_processes(tmp_path: Path) -> None:
    spec = written(tmp_path, prediction_errors=[{}, {"job_sigma": 0.5}])
    one = json.loads(ran(spec, "--processes", "1", "--json").stdout)
    two = json.loads(ran(spec, "--processes", "2", "--csv", tmp_path / "out.csv", "--json").stdout)
    assert still(one) == still(two)
    assert (two["engine"], two["processes"], len(two["simulations"]), len(two["table"])) == ("local", 2, 16, 8)
    with (tmp_path / "out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["average_jct_s"]) for row in rows] == [row["average_jct_s"] for row in two["simulations"]]
    wrong = {row["job_sigma"]: row for row in two["table"] if row["policy"] != "equal-share" and row["load"] == 1.1}
    assert wrong[0.0]["average_jct_s"] != wrong[0.5]["average_jct_s"]
    assert wrong[0.0]["average_jct_s"]["repetitions"] == 2
    assert not multiprocessing.active_children()


@pytest.mark.long
def test_a_sweep_simulates_what_simulate_does(tmp_path: Path) -> None:
    swept = json.loads(ran(written(tmp_path, loads=[0.5], seeds=[3], policy="equal-share"), "--json").stdout)
    alone = {**SPEC, "policy": "equal-share", "load": 0.5, "seed": 3}
    for name in ("loads", "seeds"):
        alone.pop(name)
    (tmp_path / "simulate.json").write_text(json.dumps(alone))
    result = CliRunner().invoke(app, ["simulate", str(tmp_path / "simulate.json"), "--json"])
    (row,) = swept["simulations"]
    found = json.loads(result.stdout)
    assert {name: found[name] for name in row if name in found and name not in WALL} == {
        name: value for name, value in row.items() if name in found and name not in WALL
    }


@pytest.mark.long
def test_a_server_sweeps_to_the_same_numbers(tmp_path: Path) -> None:
    spec = written(tmp_path, prediction_errors=[{}, {"job_sigma": 0.5}], policy=["equal-share", "fifo"])
    here = json.loads(ran(spec, "--json").stdout)
    with EmbeddedServer() as server:
        there = json.loads(ran(spec, "--processes", "2", "--server", server.target, "--json").stdout)
        broken = ran(written(tmp_path, policy=["nobody", "fifo"]), "--server", server.target, "--json")
    assert there["engine"] == "server"
    assert still(there) == still(here)
    assert broken.exit_code == 1
    assert [len(json.loads(broken.stdout)[part]) for part in ("simulations", "failed")] == [4, 4]
    assert "nobody, load 0.5, seed 0: POLICY_NOT_FOUND" in broken.stderr


@pytest.mark.long
def test_profiles_are_predicted_once_for_all(tmp_path: Path) -> None:
    curve = {"profile": {"table": str(EXAMPLES / "testbed.csv"), "job": "a1"}, "allowed_devices": [1, 2, 4]}
    jobs = [{"job": str(number), "arrival_s": 10.0 * number, "samples": 640, "curve": "a1"} for number in range(4)]
    spec = written(tmp_path, curves={"a1": curve}, jobs=jobs, cluster=[{"name": "p", "device": "emulated", "nodes": 8}])
    found = json.loads(ran(spec, "--json").stdout)
    assert {row["finished"] for row in found["simulations"]} == {4}
    stored = ran(written(tmp_path, curves={"a1": {"profile": {"profileId": "x"}}}, jobs=jobs))
    assert stored.exit_code == 2
    assert "a sweep has no store" in stored.stderr


@pytest.mark.long
def test_simulations_that_fail_are_reported_and_the_others_are_not_lost(tmp_path: Path) -> None:
    spec = written(tmp_path, policy=["nobody", "fifo", {"name": "fifo", "parameters": {"nothing": 1}}])
    result = ran(spec, "--json", "--processes", "2")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert {row["policy"] for row in found["simulations"]} == {"fifo"}
    assert len(found["simulations"]) == 4
    assert {row["policy"] for row in found["failed"]} == {"nobody", "fifo(nothing=1)"}
    assert "nobody, load 0.5, seed 0: POLICY_NOT_FOUND" in result.stderr
    assert "policy_parameters['nothing']" in result.stderr


def test_the_table_and_the_picture_of_the_example(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = ran(written(tmp_path), "--plot", tmp_path / "sweep.png")
    assert result.exit_code == 0
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert ran(written(tmp_path), "--plot", tmp_path / "sweep.svg").exit_code == 0
    assert "ratio to equal-share," in (tmp_path / "sweep.svg").read_text()
    lines = [line.split() for line in result.stdout.splitlines() if line.strip().startswith(("equal", "effic"))]
    assert [line[:3] for line in lines] == [
        ["equal-share", "0.5", "2"],
        ["equal-share", "1.1", "2"],
        ["efficiency-srpt-fill", "0.5", "2"],
        ["efficiency-srpt-fill", "1.1", "2"],
    ]


def test_a_resumed_sweep_simulates_only_what_is_missing(tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = json.loads(ran(written(tmp_path, policy=["fifo"]), "--resume", results, "--json").stdout)
    both = json.loads(ran(written(tmp_path, policy=["fifo", "equal-share"]), "--resume", results, "--json").stdout)
    assert len(both["simulations"]) == 8
    # Also the times of the wall, which no second run repeats.
    assert [row for row in both["simulations"] if row["policy"] == "fifo"] == first["simulations"]
    broken = written(tmp_path, policy=["nobody"])
    assert ran(broken, "--resume", results).exit_code == ran(broken, "--resume", results).exit_code == 1
    (tmp_path / "table.csv").write_text("policy,load\n" * 100)
    refused = ran(written(tmp_path), "--resume", tmp_path / "table.csv")
    assert refused.exit_code == 2
    assert "table.csv: must be a file of results" in refused.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"load": 1.0}, "load: a sweep needs a list, under 'loads'"),
        ({"seed": 1}, "seed: a sweep needs a list, under 'seeds'"),
        ({"repetitions": 3}, "repetitions: must be left out in a sweep"),
        ({"loads": [1.0, 1.0]}, "loads: must not contain a value twice"),
        ({"loads": []}, "loads: "),
        ({"seeds": [-1]}, "seeds.0: "),
        ({"policy": [{}]}, "policy: must name the policies to compare"),
        ({"seeds": 100_000}, "must come to at most 100,000 simulations"),
        ({"cluster": {"t4": 0}}, "cluster: t4: "),
    ],
)
def test_what_is_wrong_in_a_sweep_is_said(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    result = ran(written(tmp_path, **changes))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_options_that_cannot_be_are_refused(tmp_path: Path) -> None:
    spec = written(tmp_path)
    for arguments, said in (
        (["--engine", "slurm"], "--engine: must be one of local, ray"),
        (["--processes", "0"], "--processes: must be 1 to 1024"),
        (["--ray-address", "auto"], "--ray-address: needs --engine ray"),
        (["--csv", "/nowhere/at/all.csv"], "--csv: must be a file"),
        (["--resume", "/nowhere/at/all"], "--resume: must be a file"),
        (["--resume", str(tmp_path / "a"), "--server", "127.0.0.1:1"], "--resume: must be left out when --server"),
    ):
        result = ran(spec, *arguments)
        assert result.exit_code == 2
        assert said in result.stderr


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    spec = written(tmp_path, seeds=500)
    command = [sys.executable, "-m", "nodewise", "sweep", str(spec), "--processes", "2"]
    sweep = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    children: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(children) < 2 and time.monotonic() < deadline:
        children = children_of(sweep.pid)
        time.sleep(0.02)
    assert len(children) >= 2
    os.kill(sweep.pid, number)
    sweep.communicate(timeout=PATIENCE_S)
    assert sweep.returncode != 0
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, children))


def children_of(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    if not path.parent.exists():
        pytest.skip("the system has no /proc")
    return [int(child) for child in path.read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
