"""Generations of plugins: installed into folders of their own, tried, swapped, shared out, and rolled back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from patience import PATIENCE_S
from plugin_installs import installed, pip_offline
from serving import Failure, Stubs, failure_of, inline, one_worker_phases, workers
from tiny_wheels import wheel

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.generations.folder import PluginsFolder
from nodewise.runtime.generations.operating import Operating
from nodewise.runtime.groups_of_settings import HostSettings
from nodewise.runtime.settings import Settings
from nodewise.runtime.starting import StartError
from nodewise_cli.failures import CommandError
from nodewise_protos.v1 import options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1beta1 import admin_service_pb2 as admin

HANGS_S = 4.0
"""Budget of a call of a plugin: one hangs here, and the others take milliseconds of CPU."""


@dataclass
class Site:
    """A server, its folder of plugins, and wheels to install."""

    stubs: Stubs
    folder: PluginsFolder
    wheels: Path
    settings: Settings

    def install(self, version: str, **more: Any) -> int:
        return installed(self.folder, str(wheel(self.wheels, version, **more)))

    def reload(self, **request: Any) -> admin.ReloadResponse:
        found: admin.ReloadResponse = self.stubs.admin.Reload(admin.ReloadRequest(**request), timeout=PATIENCE_S)
        return found

    def predict(self, job: int = 0, estimator: str = "told", workers_count: int = 2) -> pb.PredictResponse:
        request = pb.PredictRequest(
            profile=inline(one_worker_phases(compute_s=0.1 + job / 1000)),
            configurations=workers(1, workers_count),
            options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator)),
        )
        reply: pb.PredictResponse = self.stubs.prediction.Predict(request, timeout=PATIENCE_S)
        return reply

    def version(self, job: int = 0) -> str:
        """Of the estimator that answers, whose steps take as many seconds as its major version says."""
        reply = self.predict(job)
        told: str = reply.basis.estimator_version
        assert set(reply.predictions.step_seconds) == {float(told.split(".", maxsplit=1)[0])}
        return told


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("site")
    catalogue = root / "own.toml"
    catalogue.write_text("")
    settings = Settings(
        store="memory:",
        plugins_folder=str(root / "plugins"),
        admin=True,
        grace_s=1.0,
        catalogue=str(catalogue),
        learn_interval_s=0.0,
        hosts=HostSettings(call_budget_s=HANGS_S),
    )
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:
        site = Site(stubs, PluginsFolder(root / "plugins"), root / "wheels", settings)
        site.install("9.0", seconds=9.0)  # so that no test leans on one before it
        assert site.reload().outcome == admin.RELOAD_OUTCOME_TAKEN
        yield site


@pytest.mark.long
def test_a_version_takes_over_and_is_rolled_back(site: Site) -> None:
    first = site.install("1.0", seconds=1.0)
    found = site.reload()
    assert found.outcome == admin.RELOAD_OUTCOME_TAKEN, found
    assert found.trial.checks_passed_count > 5
    assert site.version() == "1.0"
    second = site.install("2.0", seconds=2.0)
    assert site.version() == "1.0"
    found = site.reload()
    assert (found.outcome, found.generation, found.generation_before) == (admin.RELOAD_OUTCOME_TAKEN, second, first)
    (difference,) = [each for each in found.trial.differences if each.estimator == "told"]
    assert (difference.version_before, difference.version_after) == ("1.0", "2.0")
    assert difference.median_log_ratio == pytest.approx(0.6931, abs=1e-3)
    assert site.version() == "2.0"
    assert site.predict().basis.generation.startswith(f"{second}.")
    back = site.stubs.admin.Rollback(admin.RollbackRequest(), timeout=PATIENCE_S)
    assert (back.outcome, back.generation) == (admin.RELOAD_OUTCOME_TAKEN, first)
    assert site.version() == "1.0"
    assert site.reload(generation=second).outcome == admin.RELOAD_OUTCOME_TAKEN
    assert site.reload().outcome == admin.RELOAD_OUTCOME_UNCHANGED


RECENT = 59
"""Workers that the test's own requests alone ask about: what fails there passes its conformance checks."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"inside": "steps = steps * float('nan')"}, "told"),
        ({"inside": "import os; os._exit(3)"}, "told"),
        ({"inside": f"assert {RECENT} not in configurations.workers"}, "1 of .* recent requests fail"),
        ({"inside": f"while {RECENT} in configurations.workers: pass"}, "1 of .* recent requests fail"),
        ({"module": "import os; os._exit(3)"}, "told is left out: .*status 3"),
        ({"module": "raise ValueError('no')"}, "told is left out: .*ValueError"),
    ],
    ids=["an impossible answer", "exit", "shadow raises", "shadow hangs", "exit at import", "raises at import"],
)
def test_a_candidate_that_fails_changes_nothing(site: Site, more: dict[str, str], why: str) -> None:
    before = site.version()
    site.predict(workers_count=RECENT)
    site.install("3.0", seconds=3.0, **more)
    found = site.reload()
    assert found.outcome == admin.RELOAD_OUTCOME_FAILED
    assert len(found.trial.failures) == 1
    assert re.search(why, found.trial.failures[0])
    assert site.version() == before
    listed = site.stubs.admin.ListGenerations(admin.ListGenerationsRequest())
    assert list(listed.generations[0].trial.failures) == list(found.trial.failures)
    assert listed.tracks.stable_generation == found.generation_before
    assert not site.folder.state().candidate  # else the next start would take it untried
    assert site.reload().outcome == admin.RELOAD_OUTCOME_UNCHANGED


@pytest.mark.long
def test_a_canary_answers_its_share_of_the_jobs(site: Site) -> None:
    stable = site.version()
    number = site.install("4.0", seconds=4.0)
    request = admin.SetCanaryRequest(generation=number, share=0.5)
    found = site.stubs.admin.SetCanary(request, timeout=PATIENCE_S)
    assert found.outcome == admin.RELOAD_OUTCOME_TAKEN, found
    told = [site.version(job) for job in range(40)]
    assert set(told) == {stable, "4.0"}
    assert 8 <= told.count("4.0") <= 32
    assert [site.version(job) for job in range(40)] == told
    batch = pb.BatchPredictRequest(
        jobs=[pb.BatchJob(profile=inline(one_worker_phases(compute_s=0.1 + job / 1000))) for job in range(40)],
        configurations=workers(1, 2),
        options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator="told")),
    )
    reply = site.stubs.prediction.BatchPredict(batch, timeout=PATIENCE_S)
    bases = [reply.bases[outcome.basis_index] for outcome in reply.outcomes]
    assert [basis.estimator_version for basis in bases] == told
    assert {(basis.estimator_version, basis.track) for basis in bases} == {(stable, ""), ("4.0", "canary")}
    states = site.stubs.admin.ListPluginStates(admin.ListPluginStatesRequest())
    assert {(each.track, each.plugin.version) for each in states.plugins if each.plugin.name == "told"} == {
        ("", stable),
        ("canary", "4.0"),
    }
    promoted = site.stubs.admin.Promote(admin.PromoteRequest(), timeout=PATIENCE_S)
    assert promoted.generation == number
    assert {site.version(job) for job in range(10)} == {"4.0"}
    assert failure_of(site.stubs.admin.Promote, admin.PromoteRequest()).reason == "GENERATION_NOT_FOUND"


@pytest.mark.long
def test_the_catalogue_is_swapped_and_rolled_back(site: Site) -> None:
    before = site.stubs.prediction.ListDevices(pb.ListDevicesRequest()).catalog_digest
    assert site.reload().outcome == admin.RELOAD_OUTCOME_UNCHANGED
    Path(site.settings.catalogue).write_text(
        '[devices.X9]\nfp32_flops_per_s = 1e12\nmemory_bytes = 1e9\nmemory_bytes_per_s = 1e9\nsource = "by hand"\n'
    )
    assert site.reload().outcome == admin.RELOAD_OUTCOME_TAKEN
    assert site.stubs.prediction.ListDevices(pb.ListDevicesRequest()).catalog_digest != before
    site.stubs.admin.Rollback(admin.RollbackRequest(), timeout=PATIENCE_S)
    assert site.stubs.prediction.ListDevices(pb.ListDevicesRequest()).catalog_digest == before
    Path(site.settings.catalogue).write_text("[devices.X9]\nmemory_bytes = -1\n")
    found = site.reload()
    assert found.outcome == admin.RELOAD_OUTCOME_FAILED
    assert "X9" in found.trial.failures[0]
    Path(site.settings.catalogue).write_text("")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (admin.SetCanaryRequest(generation=1, share=0.0), "share"),
        (admin.SetCanaryRequest(generation=1, share=1.0), "share"),
        (admin.SetCanaryRequest(share=0.5), "generation"),
    ],
)
def test_canaries_that_cannot_be(site: Site, request_: admin.SetCanaryRequest, field: str) -> None:
    failure = failure_of(site.stubs.admin.SetCanary, request_)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == [field]


def test_a_generation_that_is_not_there(site: Site) -> None:
    failure = failure_of(site.stubs.admin.Reload, admin.ReloadRequest(generation=999))
    assert failure.code is grpc.StatusCode.NOT_FOUND
    assert failure.reason == "GENERATION_NOT_FOUND"


@pytest.mark.long
def test_one_change_at_a_time(site: Site) -> None:
    site.install("6.0", seconds=6.0)
    trying = [site.stubs.admin.Reload.future(admin.ReloadRequest(), timeout=PATIENCE_S) for _ in range(2)]
    errors = [each.exception(PATIENCE_S) for each in trying]
    refused = [Failure(error) for error in errors if isinstance(error, grpc.RpcError)]
    assert [failure.reason for failure in refused] == ["GENERATION_BUSY"]
    assert site.version() == "6.0"


def test_admin_is_off_unless_enabled() -> None:
    with EmbeddedServer() as server, Stubs(server.target) as stubs:
        failure = failure_of(stubs.admin.Reload, admin.ReloadRequest())
    assert failure.code is grpc.StatusCode.PERMISSION_DENIED


# --- the folder


@pytest.mark.long
def test_what_pip_installs_lies_apart(tmp_path: Path) -> None:
    operating = Operating(folder := PluginsFolder(tmp_path / "plugins"))
    wheels = tmp_path / "wheels"
    wheel(wheels, "1.0", distribution="beside", group="nothing")
    needing = str(wheel(wheels, "1.0", requires=("numpy", "nodewise", "beside")))
    pip = pip_offline("--find-links", str(wheels))
    operating.install([needing], pip)
    (told,) = folder.generation(1).distributions
    names = {path.name for path in folder.folder_of(told).iterdir()}
    assert {"told_plugin.py", "beside.py"} <= names
    assert not {"numpy", "nodewise"} & names
    operating.install([needing], pip)
    assert folder.generation(2).distributions == (told,)
    wheel(wheels, "2.0")
    second = operating.install(["told-plugin==2.0"], pip)
    assert second["distributions"] == [{"name": "told-plugin", "version": "2.0"}]
    assert folder.state().candidate == second["generation"]
    assert operating.remove(["Told_Plugin"])["distributions"] == []
    assert [each["generation"] for each in operating.generations()] == [4, 3, 2, 1]


@pytest.mark.long
def test_what_cannot_be_installed(tmp_path: Path) -> None:
    operating, pip = Operating(folder := PluginsFolder(tmp_path / "plugins")), pip_offline()
    other = wheel(tmp_path, "1.0", distribution="other", group="nothing")
    with pytest.raises(StartError, match="must install one distribution"):
        operating.install([str(other)], pip)
    newer = wheel(tmp_path, "1.0", requires=("numpy>=99",))
    with pytest.raises(CommandError, match="pip could not install it"):
        operating.install([str(newer)], pip)
    with pytest.raises(CommandError, match="no such thing"):
        operating.install(["no such thing"], pip)
    with pytest.raises(StartError, match="not in the newest generation"):
        operating.remove(["numpy"])
    assert folder.generations() == []
    assert not any((tmp_path / "plugins" / "distributions").iterdir())
