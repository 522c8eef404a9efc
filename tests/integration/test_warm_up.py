"""Warm-up: estimators compile or load before a server listens, and nothing of theirs keeps it from listening."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from textwrap import dedent

import pytest
from misbehaving import Constant, record
from patience import PATIENCE_S
from serving import COMMAND, ServerProcess, Stubs, inline, registry_with, workers

from nodewise.estimation.estimators.warm_up import warm_up
from nodewise.plugin import WarmingEstimator
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_protos.v1 import prediction_service_pb2 as pb

pytestmark = pytest.mark.wheel

PLUGIN = """
import os, pathlib, time
from nodewise.plugin import *

class Warm:
    def assess(self, profile, query):
        return Assessment(evidence=("nothing",), strength=0.0)
    def fit(self, profile, context):
        return self
    def predict(self, configurations, options):
        return Predictions.of(constant_floats(len(configurations), 1.0))
    def warm_up(self):
        {body}

@hookimpl
def nodewise_estimators():
    return [EstimatorRecord(name="{name}", version="1.0", description="for tests", estimator=Warm())]
"""
MARKS = "(pathlib.Path(os.environ['WARMED']) / f'{os.getpid()}').touch()"


def put(site: Path, name: str, body: str) -> None:
    """Install a plugin whose estimator warms up like this."""
    (site / f"plugin_{name}.py").write_text(dedent(PLUGIN).format(body=body, name=name), encoding="utf-8")
    info = site / f"plugin_{name}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[nodewise.plugins]\n{name} = plugin_{name}\n", encoding="utf-8")


def environment(site: Path, warmed: Path) -> dict[str, str]:
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    allowed = {"NODEWISE_HOSTS__ENVIRONMENT": '["WARMED"]', "NODEWISE_HOSTS__PATHS": f'["{warmed}"]'}
    return {"PYTHONPATH": os.pathsep.join(paths), "WARMED": str(warmed), **allowed}


@pytest.fixture
def warmed(tmp_path: Path) -> Path:
    folder = tmp_path / "warmed"
    folder.mkdir()
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.mark.long
def test_every_process_warms_up_before_it_listens(tmp_path: Path, site: Path, warmed: Path) -> None:
    put(site, "warm", MARKS)
    put(site, "leaves", "raise SystemExit('a secret of the plugin')")
    settings = ("--store", f"sqlite:{tmp_path}/store.db", "--workers", "2")
    with (
        ServerProcess(*settings, environment=environment(site, warmed)) as server,
        Stubs(server.target) as stubs,
    ):
        pids = [int(path.name) for path in warmed.iterdir()]
        assert len(pids) == 2
        assert server.pid not in pids
        for name in ("warm", "leaves"):
            question = pb.PredictRequest(
                profile=inline(), configurations=workers(1), options={"model": {"estimator": name}}
            )
            assert stubs.prediction.Predict(question).predictions.steps_per_second == [1.0]
        status, log = server.terminate()
    assert status == 0
    assert log.count('"warmed_up"') >= 2
    assert log.count('"warm_up_failed"') == 2


@pytest.mark.long
def test_a_warm_up_that_hangs_can_be_stopped(site: Path, warmed: Path) -> None:
    put(site, "hangs", f"{MARKS}; time.sleep(600)")
    with subprocess.Popen(
        [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--store", "memory:"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment(site, warmed)},
    ) as process:
        try:
            while not list(warmed.iterdir()):
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 0


class Counting(Constant):
    warmed = 0

    def warm_up(self) -> None:
        self.warmed += 1


def test_an_embedded_server_starts_without() -> None:
    counting = Counting()
    assert isinstance(counting, WarmingEstimator)
    assert not isinstance(Constant(), WarmingEstimator)
    registry = registry_with((record("counting", counting),))
    with EmbeddedServer(registry=registry) as server:
        assert server.target
    assert counting.warmed == 0
    warm_up(registry.estimators)
    assert counting.warmed == 1
