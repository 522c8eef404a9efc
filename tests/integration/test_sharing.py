"""PredictSharing over a real socket: answers, what profiles tell, problems of single sets, refusals, caps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from patience import PATIENCE_S
from serving import Stubs, failure_of, registry_with

from nodewise.plugin import Budget, DeviceShares, SharingModelRecord, SharingQuestion
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import AsyncClient, Client, NotFoundError, PredictSharingRequest, SharedDevice, SharingJob
from nodewise_protos.v1 import configuration_pb2, profile_pb2, sharing_pb2
from nodewise_protos.v1.plugin_pb2 import PLUGIN_KIND_SHARING_MODEL
from nodewise_protos.v1.prediction_service_pb2 import ListPluginsRequest
from nodewise_protos.v1beta1 import sharing_service_pb2 as pb

BUSY = pb.SharingJob(name="busy", device_utilization_ratio=0.9, memory_bytes=7e9, step_seconds=0.2)
LIGHT = pb.SharingJob(name="light", device_utilization_ratio=0.2, memory_bytes=2e9, step_seconds=0.02)
LARGE = pb.SharingJob(name="large", device_utilization_ratio=0.8, memory_bytes=11e9)
RAN = pb.SharedRun(first_job="busy", second_job="light", first_share=0.8, second_share=0.7)
V100 = pb.SharedDevice(device_name="V100")


class Wild:
    """Answers what cannot be true."""

    def predict_shares(self, question: SharingQuestion, budget: Budget) -> list[DeviceShares]:
        return []


class Broken:
    """Does not answer."""

    def predict_shares(self, question: SharingQuestion, budget: Budget) -> list[DeviceShares]:
        raise RuntimeError("a secret")


def record(name: str, model: Any) -> SharingModelRecord:
    return SharingModelRecord(name=name, version="1.0", description="for tests", model=model)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    others = (record("wild", Wild()), record("broken", Broken()))
    with EmbeddedServer(registry=registry_with(sharing_models=others, mode="thread")) as found:
        yield found


@pytest.fixture(scope="module")
def stubs(server: EmbeddedServer) -> Iterator[Stubs]:
    with Stubs(server.target) as found:
        yield found


def asked(*jobs: pb.SharingJob, **stated: Any) -> pb.PredictSharingRequest:
    return pb.PredictSharingRequest(**{"device": V100, "jobs": jobs, **stated})


def predicted(stubs: Stubs, *jobs: pb.SharingJob, **stated: Any) -> pb.PredictSharingResponse:
    return stubs.sharing.PredictSharing(asked(*jobs, **stated), timeout=PATIENCE_S)


def test_every_pair_is_answered_with_what_it_rests_on(stubs: Stubs) -> None:
    found = predicted(stubs, BUSY, LIGHT, LARGE, runs=[RAN])
    assert [list(each.job_names) for each in found.sets] == [["busy", "light"], ["busy", "large"], ["light", "large"]]
    measured, large, partner = found.sets
    assert measured.basis == pb.SHARING_BASIS_MEASURED
    assert list(measured.low_shares) == list(measured.middle_shares) == list(measured.high_shares) == [0.8, 0.7]
    assert measured.verdict == pb.SHARING_VERDICT_CONCURRENT
    assert "as measured, together they reach 1.500 times" in measured.why
    assert large.verdict == pb.SHARING_VERDICT_DOES_NOT_FIT
    assert large.memory_bytes == 18e9
    assert partner.basis == pb.SHARING_BASIS_PARTNER
    for low, middle, high in zip(partner.low_shares, partner.middle_shares, partner.high_shares, strict=True):
        assert 0.0 <= low < middle < high
    assert partner.low_total <= partner.middle_total <= partner.high_total
    assert found.device_memory_bytes == 16e9  # of the catalogue
    assert (found.sharing_model, found.coverage) == ("fitted-sharing", 0.9)


def test_one_set_that_is_wrong_does_not_fail_the_others(stubs: Stubs) -> None:
    sets = [["busy", "light"], ["busy", "nobody"], [], ["busy", "light", "large"], ["light"], ["light"] * 2, ["x"] * 17]
    found = predicted(stubs, BUSY, LIGHT, LARGE, sets=[pb.SharingSet(job_names=names) for names in sets])
    good, unknown, empty, three, alone, copies, many = found.sets
    assert unknown.problem.reason == "INVALID_FIELD"
    assert unknown.problem.violations[0].field == "sets[1].job_names[1]"
    assert empty.problem.violations[0].field == "sets[2].job_names"
    assert many.problem.violations[0].field == "sets[6].job_names"
    assert not unknown.middle_shares
    assert len(good.middle_shares) == 2
    assert len(three.middle_shares) == 3
    assert any("more than two jobs" in warning for warning in three.warnings)
    assert list(alone.middle_shares) == [1.0]
    assert alone.basis == pb.SHARING_BASIS_UNSPECIFIED
    assert copies.middle_shares[0] == pytest.approx(copies.middle_shares[1])


def profile(*rows: tuple[str, int, float, float]) -> profile_pb2.ProfileSource:
    """Runs of (device, workers, steps/s, bytes held)."""
    content = profile_pb2.ProfileContent(
        observations=profile_pb2.Observations(
            configurations=configuration_pb2.Configurations(
                nodes=[1 for _ in rows],
                workers=[row[1] for row in rows],
                device_names=list(dict.fromkeys(row[0] for row in rows)),
                device_indexes=[list(dict.fromkeys(row[0] for row in rows)).index(row[0]) for row in rows],
                sync_modes=[configuration_pb2.SYNC_MODE_ALLREDUCE] * len(rows),
            ),
            steps_per_second=[row[2] for row in rows],
            measured_memory_bytes=[row[3] for row in rows],
        )
    )
    return profile_pb2.ProfileSource(content=content)


def test_a_profile_tells_steps_and_memory_of_single_workers(stubs: Stubs) -> None:
    known = profile(("V100", 1, 5.0, 12e9), ("P100", 1, 3.0, 0.0), ("V100", 4, 16.0, 0.0))
    stated = pb.SharingJob(
        name="job",
        step_seconds=0.2,
        memory_bytes=12e9,
        steps_elsewhere=[pb.StepElsewhere(device_name="P100", step_seconds=1.0 / 3.0)],
    )
    ours = predicted(stubs, LIGHT, pb.SharingJob(name="job", profile=known))
    theirs = predicted(stubs, LIGHT, stated)
    assert ours.sets[0].middle_shares == theirs.sets[0].middle_shares
    assert ours.sets[0].memory_bytes == 14e9


def test_a_profile_that_is_missing_is_told_with_its_sets_alone(stubs: Stubs) -> None:
    missing = pb.SharingJob(name="gone", profile=profile_pb2.ProfileSource(profile_id="nobody/knows/it"))
    found = predicted(stubs, BUSY, LIGHT, missing, runs=[RAN])
    assert [each.problem.reason for each in found.sets] == ["", "PROFILE_NOT_FOUND", "PROFILE_NOT_FOUND"]
    assert list(found.sets[1].job_names) == ["busy", "gone"]


def test_modes_are_told_apart(stubs: Stubs) -> None:
    turns = predicted(stubs, BUSY, LIGHT).sets[0]
    overlap = predicted(stubs, BUSY, LIGHT, mode=sharing_pb2.SHARING_MODE_MPS).sets[0]
    slices = predicted(stubs, BUSY, LIGHT, mode=sharing_pb2.SHARING_MODE_MIG).sets[0]
    assert turns.middle_shares != overlap.middle_shares
    assert any("MPS without measured pairs" in warning for warning in overlap.warnings)
    # Half a device each: a busy job keeps 1 / (0.1 + 0.9 / 0.5) at least, and all of it if its kernels fit the slice.
    assert slices.low_shares[0] == pytest.approx(1.0 / 1.9)
    assert slices.high_shares[0] == pytest.approx(1.0)
    taught = predicted(stubs, BUSY, LIGHT, LARGE, mode=sharing_pb2.SHARING_MODE_MPS, runs=[RAN])
    assert taught.sets[0].basis == pb.SHARING_BASIS_MEASURED
    assert taught.sets[2].basis == pb.SHARING_BASIS_PARTNER


def test_slices_have_to_fit_the_device_and_jobs_their_slices(stubs: Stubs) -> None:
    def verdict(first: float, second: float, **stated: float) -> int:
        one, other = pb.SharingJob(), pb.SharingJob()
        one.CopyFrom(BUSY)
        other.CopyFrom(LIGHT)
        one.slice_ratio, other.slice_ratio = first, second
        for name, value in stated.items():
            setattr(one, name, value)
        return predicted(stubs, one, other, mode=sharing_pb2.SHARING_MODE_MIG).sets[0].verdict

    assert verdict(4 / 7, 3 / 7) != pb.SHARING_VERDICT_DOES_NOT_FIT
    assert verdict(4 / 7, 4 / 7) == pb.SHARING_VERDICT_DOES_NOT_FIT
    assert verdict(3 / 7, 3 / 7) == pb.SHARING_VERDICT_DOES_NOT_FIT  # 7 GB do not fit 3/7 of 16
    assert verdict(3 / 7, 3 / 7, slice_memory_bytes=8e9) != pb.SHARING_VERDICT_DOES_NOT_FIT


def test_kernels_that_fill_the_device_leave_no_room_beside_them(stubs: Stubs) -> None:
    sm = pb.DeviceProcessors(
        processors_count=80, threads_count=2048, blocks_count=32, registers_count=65536, shared_bytes=98304
    )
    device = pb.SharedDevice(device_name="V100", processors=sm)

    def shares(blocks: int) -> pb.SetShares:
        job = pb.SharingJob(name="half", device_utilization_ratio=0.6)
        job.kernels.append(pb.KernelLaunch(blocks_count=blocks, threads_per_block=256))
        return predicted(stubs, job, LIGHT, device=device, mode=sharing_pb2.SHARING_MODE_MPS).sets[0]

    full, small = shares(80 * 8), shares(80)
    assert list(full.low_shares) == list(full.high_shares)
    assert small.high_shares[0] > small.low_shares[0]


@pytest.mark.parametrize(
    ("jobs", "stated", "field"),
    [
        ([], {}, "jobs"),
        ([BUSY], {}, "sets"),
        ([BUSY, BUSY], {}, "jobs[1].name"),
        ([BUSY, pb.SharingJob()], {}, "jobs[1].name"),
        ([BUSY, LIGHT], {"mode": 9}, "mode"),
        ([BUSY, LIGHT], {"coverage": 1.0}, "coverage"),
        ([BUSY, LIGHT], {"device": pb.SharedDevice(memory_bytes=0.0)}, "device.memory_bytes"),
        ([BUSY, pb.SharingJob(name="x", device_utilization_ratio=1.5)], {}, "jobs[1].device_utilization_ratio"),
        ([BUSY, pb.SharingJob(name="x", step_seconds=0.0)], {}, "jobs[1].step_seconds"),
        ([BUSY, pb.SharingJob(name="x", slice_ratio=0.5)], {}, "jobs[1].slice_ratio"),
        ([BUSY, LIGHT], {"runs": [pb.SharedRun(first_job="busy", second_job="x")]}, "runs[0].second_job"),
        (
            [BUSY, LIGHT],
            {"runs": [pb.SharedRun(first_job="busy", second_job="light", first_share=11.0)]},
            "runs[0].first_share",
        ),
        (
            [BUSY, pb.SharingJob(name="x", steps_elsewhere=[pb.StepElsewhere(device_name="Abacus", step_seconds=1.0)])],
            {},
            "jobs[1].steps_elsewhere[0].speed_ratio",
        ),
        (
            [BUSY, pb.SharingJob(name="x", kernels=[pb.KernelLaunch(blocks_count=1)])],
            {},
            "jobs[1].kernels[0].threads_per_block",
        ),
    ],
)
def test_what_is_wrong_is_named(stubs: Stubs, jobs: list[pb.SharingJob], stated: dict[str, Any], field: str) -> None:
    failure = failure_of(predicted, stubs, *jobs, **stated)
    assert failure.reason == "INVALID_FIELD"
    assert field in failure.fields


def test_caps_are_told(stubs: Stubs) -> None:
    many = [pb.SharingJob(name=str(number)) for number in range(183)]
    failure = failure_of(predicted, stubs, *many)
    assert failure.reason == "LIMIT_EXCEEDED"
    assert failure.metadata["limit"] == "sharing_sets_per_call"


def test_plugins_that_are_wrong_cost_their_own_calls(stubs: Stubs) -> None:
    assert failure_of(predicted, stubs, BUSY, LIGHT, sharing_model="wild").reason == "SHARING_MODEL_INVALID_RESULT"
    failure = failure_of(predicted, stubs, BUSY, LIGHT, sharing_model="broken")
    assert failure.reason == "SHARING_MODEL_FAILED"
    assert "secret" not in str(failure.status)
    failure = failure_of(predicted, stubs, BUSY, LIGHT, sharing_model="none")
    assert failure.reason == "SHARING_MODEL_NOT_FOUND"
    assert failure.metadata["available"] == "broken, fitted-sharing, wild"


def test_sharing_models_are_listed(stubs: Stubs) -> None:
    found = stubs.prediction.ListPlugins(ListPluginsRequest(kind=PLUGIN_KIND_SHARING_MODEL), timeout=PATIENCE_S)
    assert [each.name for each in found.plugins] == ["broken", "fitted-sharing", "wild"]


async def test_the_clients_ask(server: EmbeddedServer) -> None:
    jobs = (SharingJob(name="a", device_utilization_ratio=0.9), SharingJob(name="b", device_utilization_ratio=0.1))
    request = PredictSharingRequest(device=SharedDevice(device_name="V100"), jobs=jobs)
    async with AsyncClient(server.target) as client:
        waited = await client.predict_sharing(request)
    with Client(server.target) as client_of_threads:
        assert client_of_threads.predict_sharing(request) == waited
        with pytest.raises(NotFoundError):
            client_of_threads.predict_sharing(PredictSharingRequest(jobs=jobs, sharing_model="none"))
