"""Sweeps and backtests on a real Ray cluster of three nodes: where work runs, lost nodes, cancelling, resuming."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S, wait_until
from pieces_of_work import held
from sweeps import ran, still, written
from typer.testing import CliRunner

from nodewise.runtime.executors.ray_engine import RayExecutor
from nodewise.runtime.executors.resumable import ResumableExecutor
from nodewise_cli.app import app

pytestmark = pytest.mark.ray

NODES = 3
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SUPPORT = Path(__file__).resolve().parents[2] / "support"
STORE_BYTES = 80 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """One processor a node, so that as many units at once are on as many nodes."""
    pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(SUPPORT))
        lost = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}  # seconds, not half a minute
        head = {"include_dashboard": False, "_system_config": lost}
        node = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
        nodes = Cluster(initialize_head=True, head_node_args=node | head)
        for _ in range(NODES - 1):
            nodes.add_node(**node)
        nodes.wait_for_nodes()
        yield nodes
        nodes.shutdown()


def marks(folder: Path) -> list[tuple[int, str, int]]:
    """Unit, node and process of every start of a unit."""
    parts = [path.name.split(".") for path in folder.glob("*.mark")]
    return [(int(unit), node, int(process)) for unit, node, process, _ in parts]


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists() and " Z " not in Path(f"/proc/{process}/stat").read_text()


def test_every_node_works(cluster: Any, tmp_path: Path) -> None:
    outcomes = list(RayExecutor(1024, cluster.address).run(held, (str(tmp_path), NODES), range(NODES)))
    assert sorted(outcome.index for outcome in outcomes) == [0, 1, 2]
    assert {outcome.result.hex() for outcome in outcomes if outcome.result} == {
        node.node_id for node in cluster.list_all_nodes()
    }


def test_a_sweep_has_the_numbers_of_one_machine(cluster: Any, tmp_path: Path) -> None:
    spec = written(tmp_path, policy=["fifo", "equal-share", "nobody"])
    local = json.loads(ran(spec, "--processes", "2", "--json").stdout)
    found = json.loads(finished(sweep(cluster, spec, "--json"), 1))
    assert still(found) == still(local)
    assert len(found["failed"]) == 4


def test_a_node_that_is_lost_costs_no_result(cluster: Any, tmp_path: Path) -> None:
    _, _, last = cluster.list_all_nodes()

    def lose_a_node() -> None:
        wait_until(lambda: len(marks(tmp_path)) == NODES)
        (process,) = [process for _, node, process in marks(tmp_path) if node == last.node_id]
        cluster.remove_node(last, allow_graceful=False)
        wait_until(lambda: not is_alive(process))
        (tmp_path / "go").touch()

    units = [-1, -2, -3, -4, -5, -6]
    with ThreadPoolExecutor(1) as pool:
        losing = pool.submit(lose_a_node)
        outcomes = list(RayExecutor(1024, cluster.address).run(held, (str(tmp_path), NODES), units))
        losing.result()
    try:
        assert [outcome.fault for outcome in outcomes if outcome.result is None] == []
        assert sorted(outcome.index for outcome in outcomes) == list(range(6))
        starts = Counter(unit for unit, *_ in marks(tmp_path))
        (lost,) = [unit for unit, node, _ in marks(tmp_path) if node == last.node_id]
        assert starts == {unit: 1 + (unit == lost) for unit in units}
    finally:
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        cluster.wait_for_nodes()


def test_cancelling_ends_the_work_of_all_nodes(cluster: Any, tmp_path: Path) -> None:
    outcomes = RayExecutor(1024, cluster.address).run(held, (str(tmp_path), 1), [0, -1, -2, -3, -4])
    assert next(outcomes).index == 0
    wait_until(lambda: len(marks(tmp_path)) == 1 + NODES)
    outcomes.close()  # type: ignore[attr-defined]
    left = [(unit, node, process) for unit, node, process in marks(tmp_path) if unit]
    assert len({node for _, node, _ in left}) == NODES
    wait_until(lambda: not any(is_alive(process) for *_, process in left))
    assert len(marks(tmp_path)) == 1 + NODES


def test_what_is_done_is_not_done_again(cluster: Any, tmp_path: Path) -> None:
    units = [0, 1, 2, -1, -2]
    shared = (str(tmp_path), 1)
    executor = ResumableExecutor(RayExecutor(1024, cluster.address), tmp_path / "results")
    outcomes = executor.run(held, shared, units)
    done = {next(outcomes).index for _ in range(3)}
    outcomes.close()  # type: ignore[attr-defined]
    assert done == {0, 1, 2}
    (tmp_path / "go").touch()
    for _ in range(2):
        resumed = list(executor.run(held, shared, units))
        assert sorted(outcome.index for outcome in resumed) == list(range(5))
        assert all(outcome.result for outcome in resumed)
    starts = Counter(unit for unit, *_ in marks(tmp_path))
    assert {starts[unit] for unit in (0, 1, 2)} == {1}
    assert {starts[unit] for unit in (-1, -2)} <= {1, 2}


def test_a_sweep_that_was_interrupted_goes_on(cluster: Any, tmp_path: Path) -> None:
    spec, results = written(tmp_path, seeds=100), tmp_path / "results"
    interrupted = sweep(cluster, spec, "--resume", str(results))
    wait_until(lambda: len(stored(results)) > 0)
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=PATIENCE_S)
    assert interrupted.returncode != 0
    before = stored(results)
    assert 0 < len(before) < 400
    resumed = json.loads(finished(sweep(cluster, spec, "--resume", str(results), "--json"), 0))
    after = stored(results)
    # The times of a result would differ if it were another run's.
    assert {unit: after[unit] for unit in before} == before
    assert len(after) == len(resumed["simulations"]) == 400


def test_a_backtest_has_the_figures_of_a_server_and_is_not_repeated(cluster: Any, tmp_path: Path) -> None:
    table, names = EXAMPLES / "testbed.csv", ("queueing", "last-known", "power-law", "auto")
    chosen = [part for name in names for part in ("--estimator", name)]
    command = ["backtest", str(table), *chosen, "--json"]
    server = json.loads(CliRunner().invoke(app, command).stdout)
    resumed = (*chosen, "--json", "--resume", str(tmp_path / "results"))
    first, second = (json.loads(finished(on_ray(cluster, "backtest", table, *resumed), 0)) for _ in range(2))
    assert timeless(first) == timeless(server)
    assert first["prior"] == server["prior"]
    # The times too, which another run would not repeat.
    assert second == first
    assert len(stored(tmp_path / "results")) == len(names)


def timeless(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return {name: timeless(each) for name, each in document.items() if name not in {"fit_s", "predict_s"}}


def sweep(cluster: Any, spec: Path, *options: str) -> subprocess.Popen[str]:
    return on_ray(cluster, "sweep", spec, *options)


def on_ray(cluster: Any, name: str, spec: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "nodewise", name, str(spec), "--engine", "ray"]
    return subprocess.Popen(
        [*command, "--ray-address", cluster.address, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
    )


def finished(process: subprocess.Popen[str], status: int) -> str:
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, errors
    return out


def stored(results: Path) -> dict[bytes, bytes]:
    """Results by unit; none while the file has no table."""
    if not results.exists():
        return {}
    with closing(sqlite3.connect(results)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'results'").fetchall():
            return {}
        return dict(database.execute("SELECT unit, result FROM results"))
