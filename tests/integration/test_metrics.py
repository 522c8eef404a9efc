"""Metrics and probes of a real server with two workers, as Prometheus and an orchestrator see them."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grpc
import pytest
from patience import PATIENCE_S, wait_until
from programs import needs
from prometheus_client.parser import text_string_to_metric_families
from serving import ServerProcess, Stubs, inline, observed, stored, workers

from nodewise.runtime.metrics import COUNTERS, DURATION, GAUGES
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import profile_pb2, profile_service_pb2

PREDICT = "nodewise.v1.PredictionService/Predict"
JOB = "team-a/job"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@cache
def address(server: ServerProcess) -> str:
    return server.http_target  # tells it once


def got(server: ServerProcess, path: str, verb: str = "GET", body: bytes | None = None) -> tuple[int, str]:
    for _ in range(10):
        try:
            return got_once(server, path, verb, body)
        except ConnectionResetError:  # it had come to a worker that was killed
            continue
    raise AssertionError("ten connections were reset")


def got_once(server: ServerProcess, path: str, verb: str, body: bytes | None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address(server), timeout=PATIENCE_S)
    connection.request(verb, path, body, {"Content-Type": "application/json"} if body else {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def samples(server: ServerProcess) -> Samples:
    families = text_string_to_metric_families(got(server, "/metrics")[1])
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def value(server: ServerProcess, name: str, **labels: str) -> float:
    """The sum of all samples of a name that have these labels."""
    return sum(
        number
        for (found, about), number in samples(server).items()
        if found == name and about >= frozenset(labels.items())
    )


def calls(server: ServerProcess, **labels: str) -> float:
    return value(server, "nodewise_rpc_duration_seconds_count", method=PREDICT, **labels)


def ask(server: ServerProcess, profile_id: str = JOB) -> None:
    with Stubs(server.target) as stubs:
        request = pb.PredictRequest(profile=stored(profile_id), configurations=workers(1, 2, 4))
        stubs.prediction.Predict(request)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    store = tmp_path_factory.mktemp("store") / "store.db"
    with ServerProcess("--store", f"sqlite:{store}", "--workers", "2", "--http", "127.0.0.1:0") as server:
        with Stubs(server.target) as stubs:
            content = inline().content
            stubs.profile.AppendProfile(
                profile_service_pb2.AppendProfileRequest(profile_id=JOB, request_id="1", content=content)
            )
        yield server


def test_calls_are_counted_by_transport_and_code_whichever_worker_is_asked(server: ServerProcess) -> None:
    before = calls(server, transport="grpc", code="OK")
    for _ in range(20):
        ask(server)
    wait_until(lambda: calls(server, transport="grpc", code="OK") == before + 20)
    with pytest.raises(grpc.RpcError):
        ask(server, "team-a/nobody")
    wait_until(lambda: calls(server, transport="grpc", code="NOT_FOUND") == 1)
    body = json.dumps({"profile": {"profileId": JOB}, "configurations": {"workers": [1, 2]}}).encode()
    assert got(server, f"/{PREDICT}", "POST", body)[0] == 200
    assert got(server, f"/{PREDICT}", "POST", b"{")[0] == 400
    wait_until(lambda: calls(server, transport="http", code="OK") == 1)
    wait_until(lambda: calls(server, transport="http", code="INVALID_ARGUMENT") == 1)


def test_every_metric_is_there_and_state_follows_within_seconds(server: ServerProcess) -> None:
    for _ in range(4):
        ask(server)
    wait_until(lambda: value(server, "nodewise_workers") == 2)
    wait_until(lambda: value(server, "nodewise_store_writes_total") > 0)
    wait_until(lambda: value(server, "nodewise_store_profiles") == 1)
    wait_until(lambda: value(server, "nodewise_plugin_calls_total", outcome="ok") > 0)
    assert value(server, "nodewise_store_up") == 1
    assert value(server, "nodewise_queue_permits", queue="ingest") == 2 * 64
    assert value(server, "nodewise_worker_resident_memory_bytes") > 2 * 50e6
    names = {name for name, _ in samples(server)}
    wanted = {f"{name}_total" for name, *_ in COUNTERS} | {name for name, *_ in GAUGES} | {f"{DURATION[0]}_bucket"}
    scored = {name for name in wanted if name.startswith("nodewise_estimator_")}  # of jobs that go on
    assert wanted - scored - names <= {
        f"nodewise_plugin_{each}" for each in ("hosts", "hosts_alive", "breakers_open")
    }, "there are no plugin hosts here"


def test_estimators_are_scored_by_namespace(tmp_path: Path) -> None:
    with ServerProcess("--store", f"sqlite:{tmp_path}/store.db", "--http", "127.0.0.1:0") as server:
        for number, counts in enumerate(([1, 2, 4], [8])):  # the second is scored by what is known of the first
            rates = [10.0 * count**0.9 for count in counts]
            content = profile_pb2.ProfileContent(observations=observed(counts, rates))
            with Stubs(server.target) as stubs:
                stubs.profile.AppendProfile(
                    profile_service_pb2.AppendProfileRequest(profile_id=JOB, request_id=str(number), content=content)
                )
        about = {"namespace": "team-a", "estimator": "auto"}
        wait_until(lambda: value(server, "nodewise_estimator_observations_total", **about) > 0)
        wait_until(lambda: value(server, "nodewise_estimator_intervals_total", **about) > 0)
        names = {name for name, _ in samples(server)}
        assert names >= {f"{name}_total" for name, *_ in COUNTERS if name.startswith("nodewise_estimator_")}


def test_probes_name_what_is_missing(server: ServerProcess) -> None:
    for path in ("/livez", "/healthz", "/readyz"):
        assert got(server, path) == (200, '{"status":"SERVING"}')
    status, text = got(server, "/readyz?verbose")
    assert status == 200
    assert json.loads(text)["checks"] == {"serving": "ok", "store": "ok", "estimators": "ok"}


def test_a_store_that_is_gone_makes_a_server_unready_and_not_dead(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with ServerProcess("--store", f"sqlite:{path}", "--workers", "2", "--http", "127.0.0.1:0") as server:
        path.rename(tmp_path / "elsewhere.db")
        wait_until(lambda: got(server, "/readyz")[0] == 503)
        wait_until(lambda: json.loads(got(server, "/readyz?verbose")[1]).get("checks", {}).get("store") != "ok")
        assert got(server, "/livez")[0] == got(server, "/healthz")[0] == 200
        wait_until(lambda: value(server, "nodewise_store_up") == 0)
        (tmp_path / "elsewhere.db").rename(path)
        wait_until(lambda: value(server, "nodewise_store_up") == 1)
        assert got(server, "/readyz")[0] == 200


def test_counters_outlive_the_worker_that_counted(server: ServerProcess) -> None:
    for _ in range(10):
        ask(server)
    wait_until(lambda: value(server, "nodewise_workers") == 2)
    before = calls(server)
    lost = server.workers()[0]
    os.kill(lost, signal.SIGKILL)
    wait_until(lambda: not value(server, "nodewise_worker_resident_memory_bytes", pid=str(lost)))
    assert calls(server) >= before
    wait_until(lambda: value(server, "nodewise_workers") == 2)


@needs("promtool")
def test_promtool_finds_nothing_to_say(server: ServerProcess) -> None:
    text = got(server, "/metrics")[1]
    said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout + said.stderr) == (0, "")
