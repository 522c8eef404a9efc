"""Runs beside other jobs as evidence: appended, shown, exported, retracted, and predicted from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from serving import Stubs, failure_of, one_worker_phases
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_protos.v1 import profile_pb2, profile_service_pb2, sharing_pb2
from nodewise_protos.v1beta1 import sharing_service_pb2 as pb


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    with EmbeddedServer() as server, Stubs(server.target) as found:
        found.target = server.target  # type: ignore[attr-defined]
        yield found


def beside(partner: str, **stated: Any) -> sharing_pb2.SharedDeviceRun:
    values = {"device_name": "V100", "mode": "SHARING_MODE_TIME_SLICED", "share": 0.8, "partner_share": 0.6, **stated}
    return sharing_pb2.SharedDeviceRun(partner_profile_id=partner, **values)


def append(stubs: Stubs, profile_id: str, request_id: str, *runs: sharing_pb2.SharedDeviceRun) -> profile_pb2.Profile:
    content = one_worker_phases()
    content.shared_runs.extend(runs)
    request = profile_service_pb2.AppendProfileRequest(profile_id=profile_id, request_id=request_id, content=content)
    return stubs.profile.AppendProfile(request, timeout=PATIENCE_S).profile


def read(stubs: Stubs, profile_id: str, **which: Any) -> profile_pb2.Profile:
    request = profile_service_pb2.GetProfileRequest(profile_id=profile_id, **which)
    return stubs.profile.GetProfile(request, timeout=PATIENCE_S).profile


def predicted(stubs: Stubs, *names: str, **stated: Any) -> pb.SetShares:
    jobs = [pb.SharingJob(name=name[-1], profile=profile_pb2.ProfileSource(profile_id=name)) for name in names]
    request = pb.PredictSharingRequest(**{"device": pb.SharedDevice(device_name="V100"), "jobs": jobs, **stated})
    return stubs.sharing.PredictSharing(request, timeout=PATIENCE_S).sets[0]


def test_a_pair_that_is_kept_needs_not_be_sent(stubs: Stubs) -> None:
    append(stubs, "kept/a", "1", beside("kept/b"))
    append(stubs, "kept/b", "1")
    for names, shares in ((("kept/a", "kept/b"), [0.8, 0.6]), (("kept/b", "kept/a"), [0.6, 0.8])):
        found = predicted(stubs, *names)
        assert found.basis == sharing_basis("MEASURED")
        assert list(found.middle_shares) == shares
    other_mode = predicted(stubs, "kept/a", "kept/b", mode="SHARING_MODE_MPS")
    other_device = predicted(stubs, "kept/a", "kept/b", device=pb.SharedDevice(device_name="P100"))
    assert other_mode.basis == other_device.basis == sharing_basis("SOLO")


def sharing_basis(name: str) -> int:
    return pb.SharingBasis.Value(f"SHARING_BASIS_{name}")


def test_runs_are_shown_at_every_revision_and_retracted(stubs: Stubs) -> None:
    first = append(stubs, "kept/c", "1", beside("kept/d"), beside("kept/d"), beside("kept/e", mode="SHARING_MODE_MPS"))
    second = append(stubs, "kept/c", "2", beside("kept/d", share=0.7), beside("kept/d"))
    assert first.digest != second.digest
    runs = read(stubs, "kept/c").content.shared_runs
    # The same run sent again is one.
    assert [(run.partner_profile_id, run.share) for run in runs] == [("kept/d", 0.8), ("kept/e", 0.8), ("kept/d", 0.7)]
    assert len(read(stubs, "kept/c", revision=1).content.shared_runs) == 2
    request = profile_service_pb2.RetractEvidenceRequest(
        profile_id="kept/c", request_id="3", shared_run_sha256s=[runs[0].content_sha256]
    )
    stubs.profile.RetractEvidence(request, timeout=PATIENCE_S)
    assert [run.share for run in read(stubs, "kept/c").content.shared_runs] == [0.8, 0.7]
    assert len(read(stubs, "kept/c", revision=2).content.shared_runs) == 3
    request.request_id = "4"
    assert failure_of(stubs.profile.RetractEvidence, request).reason == "EVIDENCE_NOT_FOUND"
    append(stubs, "kept/c", "5", beside("kept/d"))
    assert len(read(stubs, "kept/c").content.shared_runs) == 3


def test_a_run_alone_is_a_profile(stubs: Stubs) -> None:
    content = profile_pb2.ProfileContent(shared_runs=[beside("kept/b")])
    request = profile_service_pb2.AppendProfileRequest(profile_id="kept/f", request_id="1", content=content)
    assert stubs.profile.AppendProfile(request, timeout=PATIENCE_S).profile.revision == 1


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"device_name": ""}, "device_name"),
        ({"mode": 7}, "mode"),
        ({"share": -0.1}, "share"),
        ({"partner_share": 11.0}, "partner_share"),
        ({"partner": "no name"}, "partner_profile_id"),
    ],
)
def test_what_is_wrong_is_named(stubs: Stubs, stated: dict[str, Any], field: str) -> None:
    run = beside(stated.pop("partner", "kept/b"), **stated)
    assert f"content.shared_runs[0].{field}" in failure_of(append, stubs, "kept/g", "1", run).fields


def test_the_command_line_shows_exports_and_retracts(stubs: Stubs, tmp_path: Path) -> None:
    def ran(*arguments: str) -> str:
        server: str = stubs.target  # type: ignore[attr-defined]
        found = CliRunner().invoke(app, ["profiles", *arguments, "--server", server])
        assert found.exit_code == 0, found.stderr
        return found.stdout

    append(stubs, "kept/h", "1", beside("kept/b", measured_time={"seconds": 1_700_000_000}))
    shown = " ".join(ran("show", "kept/h").split())
    assert "Shared a V100 (time sliced): kept 0.8 of its solo speed beside kept/b, which kept 0.6" in shown
    ran("export", "kept/h", "--output", str(tmp_path / "profile.json"))
    (run,) = json.loads((tmp_path / "profile.json").read_text())["sharedRuns"]
    assert (run["partnerProfileId"], run["measuredTime"]) == ("kept/b", "2023-11-14T22:13:20Z")
    (kept,) = read(stubs, "kept/h").content.shared_runs
    ran("retract", "kept/h", "--shared-run", kept.content_sha256)
    assert not read(stubs, "kept/h").content.shared_runs
