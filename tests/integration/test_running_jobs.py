"""Times of steps over a real socket: reported by ranks, diagnosed, told to watchers; requests to record come back."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import grpc
import numpy as np
import pytest
from serving import Stubs
from typer.testing import CliRunner

from nodewise.runtime.compute.pool import ComputePool
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_protos.v1 import profile_pb2, profile_service_pb2
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

WINDOWS = 60
STEPS = 10
STEP_S = 1.0
PATIENCE_S = 30.0


def report(rank: int, *, slow_from: int | None = None, first: int = 0, count: int = WINDOWS) -> pb.ReportStepsRequest:
    """One rank's windows: 0.6 s of its own and an exchange that lasts until the slowest rank is there."""
    rng = np.random.default_rng(rank)
    own = 0.6 * np.exp(rng.normal(0.0, 0.01, WINDOWS))[first : first + count]
    step = np.full(count, STEP_S)
    number = np.arange(first, first + count)
    if slow_from is not None:
        own = np.where(number >= slow_from, own * 1.2, own)
    begin = time.time() - WINDOWS * STEPS * STEP_S
    return pb.ReportStepsRequest(
        profile_id="team/job",
        rank=rank,
        world_size=6,
        node=rank // 2,
        windows=pb.StepWindows(
            first_steps=number * STEPS,
            steps_counts=[STEPS] * count,
            begin_unix_seconds=begin + number * STEPS * STEP_S,
            step_seconds=step,
            forward_seconds=own * 0.4,
            backward_seconds=own * 0.6,
            exchange_seconds=step - own,
        ),
    )


@pytest.fixture
def stubs(tmp_path, monkeypatch):
    monkeypatch.setattr("nodewise.diagnosis.watching.LOOK_EVERY_S", 0.0)
    settings = Settings(store=f"sqlite:{tmp_path / 'store.db'}", scoring=False, learn_interval_s=0, grace_s=1.0)
    with EmbeddedServer(settings) as server, Stubs(server.target) as found:
        append = profile_service_pb2.AppendProfileRequest(profile_id="team/job", request_id="r", labels={"a": "b"})
        found.profile.AppendProfile(append)
        yield found


def diagnosed(stubs: Stubs, **fields: object) -> pb.DiagnosisResult:
    request = pb.DiagnoseRequest(
        profile=profile_pb2.ProfileSource(profile_id="team/job"), since_seconds=3600.0, **fields
    )
    return list(stubs.diagnosis.Diagnose(request, timeout=PATIENCE_S))[-1].result


def answers(reply):
    return reply if hasattr(reply, "__iter__") else [reply]


def refused(call, request) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as error:
        list(answers(call(request, timeout=PATIENCE_S)))
    return error.value


def test_a_slow_rank_is_named_and_who_watches_hears_of_it(stubs):
    watch = stubs.profile.WatchProfiles(
        profile_service_pb2.WatchProfilesRequest(labels=["nodewise.alarm"]), timeout=PATIENCE_S
    )
    assert next(watch).caught_up
    before = stubs.profile.GetProfile(profile_service_pb2.GetProfileRequest(profile_id="team/job")).profile
    for rank in (5, 3, 0, 1, 2, 4):
        stubs.diagnosis.ReportSteps(report(rank, slow_from=40 if rank == 2 else None))
    found = diagnosed(stubs).steps
    (alarm,) = found.alarms
    assert (alarm.kind, list(alarm.ranks), alarm.HasField("node"), alarm.part) == ("rank", [2], False, "backward")
    assert (alarm.first_step, alarm.HasField("end_unix_seconds")) == (400, False)
    assert alarm.lower_slowdown_ratio < 1.2 < alarm.upper_slowdown_ratio
    assert (found.ranks_count, found.steps_count, found.lost_windows_count) == (6, WINDOWS * STEPS, 0)
    (told,) = next(watch).profiles
    assert told.labels["nodewise.alarm"].startswith("rank 2 since 20")
    assert told.digest == before.digest
    watch.cancel()


def test_slow_ranks_of_one_machine_are_its_own(stubs):
    for rank in range(6):
        stubs.diagnosis.ReportSteps(report(rank, slow_from=30 if rank < 2 else None))
    kinds = [(alarm.kind, list(alarm.ranks), alarm.node) for alarm in diagnosed(stubs).steps.alarms]
    assert kinds == [("node", [0, 1], 0)]


def test_the_same_windows_count_once_and_few_tell_nothing(stubs):
    for _ in range(2):
        for rank in range(4):
            stubs.diagnosis.ReportSteps(report(rank, count=10))
    result = diagnosed(stubs)
    assert result.steps.steps_count == 10 * STEPS
    assert result.verdict.startswith("Too few steps:")
    assert not result.steps.alarms


def test_ranks_hear_what_they_are_asked_to_record(stubs):
    assert not stubs.diagnosis.ReportSteps(report(0)).HasField("recording")
    for value, steps, ranks in (("again 3 0,17", 3, [0, 17]), ("more 2", 2, [])):
        append = profile_service_pb2.AppendProfileRequest(
            profile_id="team/job",
            request_id=value.replace(" ", "-").replace(",", "-"),
            labels={"nodewise.record": value},
        )
        stubs.profile.AppendProfile(append)
        recording = stubs.diagnosis.ReportSteps(report(1)).recording
        assert (recording.request_id, recording.steps_count, list(recording.ranks)) == (value.split()[0], steps, ranks)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"rank": 6}, "world_size"),
        ({"profile_id": "no//name"}, "profile_id"),
        ({"windows": pb.StepWindows()}, "windows.first_steps"),
        ({"windows": pb.StepWindows(first_steps=[5], steps_counts=[10], begin_unix_seconds=[1], step_seconds=[1])},
         "windows.first_steps[0]"),
        ({"windows": pb.StepWindows(first_steps=[0], steps_counts=[10], begin_unix_seconds=[1])}, "step_seconds"),
    ],
)  # fmt: skip
def test_wrong_windows_are_named(stubs, wrong, word):
    request = report(1)
    for name, value in wrong.items():
        request.windows.CopyFrom(value) if name == "windows" else setattr(request, name, value)
    error = refused(stubs.diagnosis.ReportSteps, request)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert word in error.details()


def test_a_profile_must_be_there(stubs):
    request = report(0)
    request.profile_id = "team/other"
    assert refused(stubs.diagnosis.ReportSteps, request).code() is grpc.StatusCode.NOT_FOUND
    asked = pb.DiagnoseRequest(profile=profile_pb2.ProfileSource(profile_id="team/other"), since_seconds=60.0)
    assert refused(stubs.diagnosis.Diagnose, asked).code() is grpc.StatusCode.NOT_FOUND
    asked.profile.profile_id = "team/job"
    asked.trace_sha256s.append("0" * 64)
    assert "trace_sha256s" in refused(stubs.diagnosis.Diagnose, asked).details()


def command(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_the_command_line_shows_and_asks(tmp_path):
    settings = Settings(store="memory:", scoring=False, learn_interval_s=0, grace_s=1.0)
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:
        append = profile_service_pb2.AppendProfileRequest(profile_id="team/job", request_id="r", labels={"a": "b"})
        stubs.profile.AppendProfile(append)
        for rank in range(6):
            stubs.diagnosis.ReportSteps(report(rank, slow_from=40 if rank == 2 else None))
        where = ("--profile", "team/job", "--server", server.target)
        status, text, _ = command("diagnose", *where, "--since", "1h")
        assert status == 0
        assert text.startswith("Rank 2 takes 2")
        assert max(map(len, text.splitlines())) <= 80
        found = json.loads(command("diagnose", *where, "--since", "1h", "--json")[1])
        assert [alarm["ranks"] for alarm in found["alarms"]] == [[2]]
        assert command("record", *where, "--steps", "2", "--ranks", "0,5")[0] == 0
        recording = stubs.diagnosis.ReportSteps(report(1)).recording
        assert (recording.steps_count, list(recording.ranks)) == (2, [0, 5])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("diagnose", "--since", "1h"), "--profile"),
        (("diagnose", "--since", "hour", "--profile", "a", "--server", "127.0.0.1:1"), "90s, 30m, 1h or 2d"),
        (("diagnose", "trace.json", "--since", "1h"), "reads no traces"),
        (("record", "--profile", "a"), "--server"),
        (("record", "--profile", "a", "--server", "127.0.0.1:1", "--ranks", "x"), "0,17"),
    ],
)
def test_what_a_command_lacks_is_named(arguments, word):
    status, _, error = command(*arguments)
    assert status == 2
    assert word in error


def test_a_server_that_stops_ends_its_diagnoses(tmp_path, monkeypatch):
    begun, stopping = threading.Event(), threading.Event()
    pending: list[str] = []

    def diagnose_slowly(*_arguments: object) -> None:
        begun.set()
        stopping.wait(PATIENCE_S)

    async def close(pool: ComputePool) -> None:
        pending.extend(name for task in asyncio.all_tasks() if "_look" in (name := repr(task.get_coro())))
        stopping.set()
        await close_pool(pool)

    close_pool = ComputePool.close
    monkeypatch.setattr(ComputePool, "close", close)
    monkeypatch.setattr("nodewise.diagnosis.watching.diagnose_step_times", diagnose_slowly)
    settings = Settings(store=f"sqlite:{tmp_path / 'store.db'}", scoring=False, learn_interval_s=0, grace_s=1.0)
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:
        append = profile_service_pb2.AppendProfileRequest(profile_id="team/job", request_id="r", labels={"a": "b"})
        stubs.profile.AppendProfile(append)
        stubs.diagnosis.ReportSteps(report(0))
        assert begun.wait(PATIENCE_S)
    assert pending == []
    assert stopping.is_set()
