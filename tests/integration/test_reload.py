"""`nodewise plugins` and `nodewise reload`, and SIGHUP: all workers of a server take over, and nobody notices."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S, wait_until
from serving import ServerProcess, Stubs, failure_of
from swaps import NAME, Load, request_of, version_of
from tiny_wheels import wheel
from typer.testing import CliRunner

from nodewise_cli.app import app
from nodewise_protos.v1 import prediction_service_pb2 as pb

pytestmark = pytest.mark.wheel

CONNECTIONS = 8
"""The kernel spreads connections over the workers: with so many of them each has some."""
PAUSE_S = 0.005
"""Of each of five clients: some hundred calls a second in all, from before the first swap until after the last."""


class Site:
    """A server of two workers, and the command line beside it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.catalogue = root / "own.toml"
        self.catalogue.write_text("")
        self._store = f"sqlite:{root / 'store.db'}"
        self.install(1)
        self.server = ServerProcess(
            *("--workers", "2", "--store", self._store, "--grace-s", "5", "--catalogue", str(self.catalogue)),
            environment={"NODEWISE_ADMIN": "true", "NODEWISE_SWAP_TRIAL_S": "5"},
        )

    def command(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        # In this process, which saves the time to import; tests of commands start them as processes.
        finished = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
        assert finished.exit_code == status, finished.stderr
        found: dict[str, Any] = json.loads(finished.stdout)
        return found

    def install(self, number: int, **more: Any) -> dict[str, Any]:
        options: dict[str, Any] = {"name": NAME, "seconds": float(number), **more}
        made = wheel(self._root / "wheels", version_of(number), **options)
        return self.command("plugins", "install", str(made), "--no-index", "--store", self._store)

    def reload(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        return self.command("reload", "--server", self.server.target, *arguments, status=status)

    def generations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.command("plugins", "generations", "--store", self._store)["generations"]
        return found

    def versions(self) -> set[str]:
        """Of the estimator, over connections to all workers."""
        with ExitStack() as stack:
            stubs = [stack.enter_context(Stubs(self.server.target)) for _ in range(CONNECTIONS)]
            replies = [
                each.prediction.Predict(request_of(0), timeout=PATIENCE_S, wait_for_ready=True) for each in stubs
            ]
        return {reply.basis.estimator_version for reply in replies}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    with site.server:
        yield site


def test_all_workers_take_over_and_nobody_notices(site: Site) -> None:
    assert site.versions() == {"1.0"}
    with Load(site.server.target, pause_s=PAUSE_S) as load:
        made = site.install(2)
        found = site.reload()
        assert found["outcome"] == "taken"
        assert found["generation"] == made["generation"]
        assert {worker["stable_generation"] for worker in found["tracks"]["workers"]} == {made["generation"]}
        assert len(found["tracks"]["workers"]) == 2
        assert site.versions() == {"2.0"}
        assert [each["serves"] for each in site.generations()] == ["stable", ""]
        site.command("plugins", "rollback", "--server", site.server.target)
        assert site.versions() == {"1.0"}
    assert load.seen.failures == []
    assert load.seen.mixed == []
    assert load.seen.versions == {"1.0", "2.0"}


def test_a_hangup_takes_what_waits(site: Site) -> None:
    site.install(3)
    workers_before = set(site.server.workers())
    os.kill(site.server.pid, signal.SIGHUP)
    wait_until(lambda: site.versions() == {"3.0"})
    assert set(site.server.workers()) == workers_before


def test_the_catalogue_is_read_anew(site: Site) -> None:
    with Stubs(site.server.target) as stubs:
        before = stubs.prediction.ListDevices(pb.ListDevicesRequest()).catalog_digest
        site.catalogue.write_text(
            '[devices.X9]\nfp32_flops_per_s = 1e12\nmemory_bytes = 1e9\nmemory_bytes_per_s = 1e9\nsource = "by hand"\n'
        )
        assert site.reload()["outcome"] == "taken"
        assert stubs.prediction.ListDevices(pb.ListDevicesRequest()).catalog_digest != before


@pytest.mark.long
def test_a_canary_and_its_end(site: Site) -> None:
    (before,) = site.versions()
    site.install(4)
    target = ("--server", site.server.target)
    found = site.command("plugins", "canary", "--share", "0.5", *target)
    assert found["outcome"] == "taken"
    with Stubs(site.server.target) as stubs:
        replies = [stubs.prediction.Predict(request_of(job), timeout=PATIENCE_S) for job in range(30)]
    tracks = {(reply.basis.estimator_version, reply.basis.track) for reply in replies}
    assert tracks == {(before, ""), ("4.0", "canary")}
    assert site.command("plugins", "promote", *target)["generation"] == found["generation"]
    assert site.versions() == {"4.0"}


def test_one_that_fails_says_why_and_changes_nothing(site: Site) -> None:
    before = site.versions()
    site.install(5, inside="raise ValueError('no')")
    found = site.reload(status=1)
    assert found["outcome"] == "failed"
    assert "swapped" in found["trial"]["failures"][0]
    assert site.versions() == before


@pytest.mark.long
def test_versions_stay_apart_through_a_crash(site: Site) -> None:
    """A worker that dies comes back with the generation that serves, not with the one that failed."""
    before = site.versions()
    os.kill(min(site.server.workers()), signal.SIGKILL)
    wait_until(lambda: len(site.server.workers()) == 2)
    with Stubs(site.server.target) as stubs:
        for job in range(10):
            stubs.prediction.Predict(request_of(job), timeout=PATIENCE_S, wait_for_ready=True)
    assert site.versions() == before


def test_a_plugin_goes(site: Site) -> None:
    site.command("plugins", "remove", "told-plugin", "--store", site._store)
    found = site.reload()
    assert found["outcome"] == "taken"
    assert found["trial"]["notices"] == [f"estimator '{NAME}' is missing"]
    with Stubs(site.server.target) as stubs:
        assert failure_of(stubs.prediction.Predict, request_of(0)).reason == "ESTIMATOR_NOT_FOUND"
