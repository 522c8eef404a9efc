"""`nodewise status` and `nodewise top` beside a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import wait_until
from serving import ServerProcess, Stubs, inline, workers
from typer.testing import CliRunner

from nodewise_cli.app import app
from nodewise_protos.v1 import prediction_service_pb2 as pb


def run(*arguments: str, status: int = 0) -> str:
    finished = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert finished.exit_code == status, finished.output
    return finished.stdout or finished.stderr


class Site:
    def __init__(self, store: Path) -> None:
        self.store = store
        self.server = ServerProcess(
            *("--store", f"sqlite:{store}", "--workers", "2", "--http", "127.0.0.1:0"),
            environment={"NODEWISE_ADMIN": "true"},
        )
        self.target, self.http = self.server.target, self.server.http_target

    def found(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run("status", self.target, "--json", *arguments, status=status))
        return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("store") / "store.db")
    with site.server:
        yield site


def test_a_server_that_is_ready_is_shown_with_what_it_has(site: Site) -> None:
    wait_until(lambda: site.found("--http", site.http)["workers"] == 2)
    found = site.found("--http", site.http)
    assert found["ready"]
    assert found["checks"] == {"serving": "ok", "store": "ok", "estimators": "ok"}
    assert (found["generation"], found["profiles"]) == (0, 0)
    assert found["estimators"][0]["name"] == "auto"
    text = run("status", site.target, "--http", site.http)
    assert text.startswith(
        f"{site.target} is ready\n  serving: ok\n  store: ok\n  estimators: ok\ngeneration 0, workers 2, "
    )


def test_without_http_grpc_tells(site: Site) -> None:
    found = site.found()
    assert found["checks"] == {"serving": "ok", "store": "ok"}
    assert found["generation"] == 0


def test_a_store_that_is_away_makes_it_fail(site: Site) -> None:
    aside = site.store.with_suffix(".aside")
    site.store.rename(aside)
    wait_until(lambda: CliRunner().invoke(app, ["status", site.target]).exit_code == 1)
    wait_until(lambda: "store: deleted" in CliRunner().invoke(app, ["status", site.target, "--http", site.http]).stdout)
    aside.rename(site.store)
    wait_until(lambda: CliRunner().invoke(app, ["status", site.target]).exit_code == 0)


def test_top_tells_rates(site: Site) -> None:
    with Stubs(site.target) as stubs:
        stubs.prediction.Predict(pb.PredictRequest(profile=inline(), configurations=workers(1, 2)))

    def methods() -> list[str]:
        return [each["method"] for each in json.loads(run("top", site.http, "--json"))["calls"]]

    wait_until(lambda: methods().count("Predict") == 1)
    found = json.loads(run("top", site.http, "--json"))
    assert {each["queue"] for each in found["queues"]} == {"questions", "ingest", "computing", "long_calls"}
    assert len(found["workers"]) == 2
    text = run("top", site.http, "--once")
    assert "calls/s" in text
    assert "refused/s" in text


def test_an_address_that_does_not_answer_is_said(site: Site) -> None:
    assert "http://127.0.0.1:1/metrics does not answer" in run("top", "127.0.0.1:1", status=1)
    assert "--http: must be HOST:PORT" in run("status", site.target, "--http", "nowhere", status=2)
    assert "127.0.0.1:1" in run("status", "127.0.0.1:1", status=1)
