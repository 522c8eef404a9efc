"""Alerts on a real Prometheus that scrapes a real server under one fault after the other."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
import pytest
from patience import PATIENCE_S, wait_until
from programs import needs
from prometheus import Prometheus
from serving import ServerProcess, Stubs, inline, observed, one_worker_phases, workers
from tiny_wheels import wheel

from nodewise_protos.v1 import options_pb2, profile_pb2, profile_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

pytestmark = [pytest.mark.long, needs("prometheus", "promtool")]

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"


def alert_names() -> set[str]:
    return set(re.findall(r"- alert: (\w+)", RULES.read_text()))


def hasty(rules: str) -> str:
    """The rules, that fire at once."""
    return re.sub(r"\n *for: .*", "", rules)


def queries() -> dict[str, str]:
    """Queries of the dashboard, the page on observability and the autoscaler, by where they stand."""
    panels = json.loads((ROOT / "deploy" / "grafana" / "nodewise.json").read_text())["panels"]
    page = (ROOT / "docs" / "guides" / "observability.md").read_text()
    rows = re.findall(r"^\| ([^|]*) \| `(.*)` \|$", page, re.MULTILINE)
    adapter = RULES.with_name("adapter.yaml").read_text()
    (series,) = re.findall(r"seriesQuery: (\w+)", adapter)
    (autoscaled,) = re.findall(r"metricsQuery: (.*)", adapter)
    # As prometheus-adapter fills it in for the pods of a Deployment.
    for part, text in (("GroupBy", "pod"), ("Series", series), ("LabelMatchers", 'namespace="n",pod=~"a|b"')):
        autoscaled = autoscaled.replace(f"<<.{part}>>", text)
    return {
        "autoscaler": f"{autoscaled} > 0",
        **{f"{each['title']} {i}": query["expr"] for each in panels for i, query in enumerate(each.get("targets", []))},
        **{question: query.replace("\\|", "|") for question, query in rows if "nodewise_" in query},
    }


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_nothing_to_say() -> None:
    promtool("check", "rules", RULES)
    promtool("test", "rules", RULES.with_name("alerts_test.yaml"))


def test_every_alert_has_an_entry_in_the_runbook() -> None:
    page = (ROOT / "docs" / "guides" / "runbook.md").read_text()
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == alert_names()
    links = re.findall(r"runbook: docs/guides/runbook\.md#(\w+)", RULES.read_text())
    assert links == [name.lower() for name in re.findall(r"- alert: (\w+)", RULES.read_text())]


class Faults:
    """A server with two plugins that misbehave once they are told to, and what goes wrong with it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._store = folder, folder / "store.db"
        site = folder / "site"
        for name, does in (("exits", "__import__('os')._exit(3)"), ("hangs", "__import__('time').sleep(1000)")):
            inside = f"__import__('os').path.exists({str(folder / name)!r}) and {does}"
            made = wheel(folder / "wheels", "1.0", distribution=f"{name}-plugin", name=name, inside=inside)
            with zipfile.ZipFile(made) as archive:
                archive.extractall(site)
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.server = ServerProcess(
            *("--store", f"sqlite:{self._store}", "--workers", "2", "--http", "127.0.0.1:0"),
            environment={
                "PYTHONPATH": os.pathsep.join(paths),
                "NODEWISE_CACHE_BYTES": str(16 << 20),
                "NODEWISE_HOSTS__CALL_BUDGET_S": "2",
                "NODEWISE_QUEUE_WAIT_S": "0.2",
                "NODEWISE_CRASH_BUDGET": "100",
            },
        )

    def append(self, job: str, content: profile_pb2.ProfileContent) -> None:
        request = profile_service_pb2.AppendProfileRequest(
            profile_id=job, request_id=str(random.random()), content=content
        )
        with Stubs(self.server.target) as stubs:
            stubs.profile.AppendProfile(request, timeout=PATIENCE_S)

    def observe(self, job: str, factor: float) -> None:
        """More runs of a job, so many times as fast as those before."""
        counts = list(range(1, 9))
        rates = [factor * count / (1.0 + 0.02 * count) for count in counts]
        self.append(job, profile_pb2.ProfileContent(observations=observed(counts, rates)))

    def predict(self, estimator: str = "") -> None:
        options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator))
        request = pb.PredictRequest(profile=inline(), configurations=workers(1, 2), options=options)
        with Stubs(self.server.target) as stubs, suppress(grpc.RpcError):
            stubs.prediction.Predict(request, timeout=PATIENCE_S)

    def lock_store(self) -> None:
        """For longer than a write may take and shorter than the server bears."""
        other = sqlite3.connect(self._store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writing = threading.Thread(target=self.append, args=("locked", one_worker_phases_content()))
        writing.start()
        time.sleep(1.2)  # the fault itself: how long the lock is held
        other.execute("ROLLBACK")
        other.close()
        writing.join()

    @contextmanager
    def without_store(self) -> Iterator[None]:
        aside = self._store.with_suffix(".aside")
        self._store.rename(aside)
        yield
        aside.rename(self._store)

    def break_plugin(self, name: str) -> None:
        (self._folder / name).touch()

    def kill_a_worker(self) -> None:
        with suppress(ProcessLookupError, IndexError):
            os.kill(self.server.workers()[0], signal.SIGKILL)

    def flood(self) -> None:
        """A hundred and fifty batches at once, each about sixty other jobs, to both workers."""

        async def ask() -> None:
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
            channels = [grpc.aio.insecure_channel(self.server.target, options=options) for _ in range(16)]
            methods = [each.unary_unary("/nodewise.v1.PredictionService/BatchPredict") for each in channels]
            calls = [methods[turn % 16](batch(), timeout=PATIENCE_S) for turn in range(150)]
            await asyncio.gather(*calls, return_exceptions=True)
            for channel in channels:
                await channel.close()

        asyncio.run(ask())


def one_worker_phases_content() -> profile_pb2.ProfileContent:
    return one_worker_phases(compute_s=random.uniform(0.1, 1.0))


def batch() -> bytes:
    jobs = [
        pb.BatchJob(profile=inline(one_worker_phases_content()), configurations=workers(*range(1, 17)))
        for _ in range(60)
    ]
    return pb.BatchPredictRequest(jobs=jobs).SerializeToString()


def test_a_fault_fires_its_alert(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    with (
        faults.server,
        Prometheus(
            tmp_path,
            {"nodewise": faults.server.http_target},
            hasty(RULES.read_text()),
            labels={"namespace": "n", "pod": "a"},
        ) as seen,
    ):

        def fires(name: str, again: Callable[[], object] = lambda: None) -> None:

            def fired() -> bool:
                again()
                return name in seen.alerts()

            wait_until(fired)

        wait_until(lambda: seen.query("nodewise_workers == 2"))
        faults.append("locked", one_worker_phases_content())
        fires("NodewiseStoreSlow", faults.lock_store)
        with faults.without_store():
            fires("NodewiseStoreDown")
        wait_until(lambda: seen.query("nodewise_store_up == 1"))
        assert "NodewiseCoverageLow" not in seen.alerts()

        faults.break_plugin("hangs")
        fires("NodewiseSlowPredictions", lambda: faults.predict("hangs"))
        faults.break_plugin("exits")
        for name in ("NodewisePluginFailing", "NodewiseErrors", "NodewisePluginBreakerOpen", "NodewisePluginHostDead"):
            fires(name, lambda: faults.predict("exits"))

        for turn in range(10):
            faults.observe(f"team/{turn}", 1.0)
        fires("NodewiseCoverageLow", lambda: faults.observe(f"team/{random.randrange(10)}", random.uniform(3, 9)))

        for name in ("NodewiseOverloaded", "NodewiseQueueLong", "NodewiseCacheFull"):
            fires(name, faults.flood)
        missing = [name for name, query in queries().items() if not seen.query_all(query)]
        assert not missing

        for name in ("NodewiseWorkerMissing", "NodewiseWorkersRestarting"):
            fires(name, lambda: seen.query("nodewise_workers == 2") and faults.kill_a_worker())
        faults.server.kill()
        fires("NodewiseServerDown")
        # Two weeks of errors and the figures of Kubernetes are tested by promtool alone.
        by_promtool = {"NodewiseEstimatorDrift", "NodewiseMemoryNearLimit"}
        assert alert_names() - seen.alerts() == by_promtool
