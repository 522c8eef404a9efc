"""The recorder of PyTorch steps against a real server: what arrives, and that training never pays for what does not."""

from __future__ import annotations

import getpass
import gzip
import json
import logging
import socket
import threading
from pathlib import Path

import pytest
from serving import ServerProcess

from nodewise_client import AppendProfileRequest, Client, DiagnoseRequest, profile_source

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the recorder cannot run")

from recording_job import train  # noqa: E402 - only where there is PyTorch

from nodewise_client.torch import Recorder, trace_handler  # noqa: E402

pytestmark = pytest.mark.torch


def names_in(path: Path) -> list[str]:
    return [event.get("name", "") for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]]


def steps_in(path: Path) -> list[str]:
    return sorted(name for name in names_in(path) if name.startswith("ProfilerStep#"))


def blob(traces: Path, sha256: str) -> Path:
    return traces / "blobs" / sha256[:2] / sha256


def one_step() -> None:
    weights = torch.ones(4, requires_grad=True)
    (weights * 2).sum().backward()


def steps(recorder: Recorder, count: int) -> None:
    for _ in range(count):
        one_step()
        recorder.step()


def train_and_fail(recorder: Recorder) -> None:
    with recorder:
        steps(recorder, 5)
        raise ZeroDivisionError


def join_deliveries() -> None:
    for thread in threading.enumerate():
        if thread.name == "nodewise-delivery":
            thread.join()


@pytest.fixture
def server(tmp_path):
    with ServerProcess("--store", f"sqlite:{tmp_path / 'store.db'}", "--traces", str(tmp_path / "traces")) as process:
        yield process


def test_every_rank_sends_its_steps_into_one_profile(server, tmp_path):
    torch.multiprocessing.spawn(train, (2, str(tmp_path), server.target, {}), nprocs=2)
    with Client(server.target) as client:
        profile = client.get_profile("team/job")
    traces = sorted(profile.content.traces, key=lambda trace: trace.rank)
    assert [(trace.format, trace.rank, trace.world_size) for trace in traces] == [("kineto", 0, 2), ("kineto", 1, 2)]
    for trace in traces:
        path = blob(tmp_path / "traces", trace.content_sha256)
        assert steps_in(path) == ["ProfilerStep#8", "ProfilerStep#9"]
        assert names_in(path).count("gloo:all_reduce") == 2
        found = json.loads(gzip.decompress(path.read_bytes()))
        assert found["distributedInfo"]["rank"] == trace.rank
        assert found["distributedInfo"]["pg_config"][0]["ranks"] == [0, 1]
    # Two traces, and what rank 0 measured: each is a unit of its own.
    assert profile.revision == 3
    assert profile.observations_count == 1
    observations, timings = profile.content.observations, profile.content.phase_timings
    assert tuple(observations.configurations.workers) == (2,)
    assert observations.configurations.batch_per_worker_samples == (4,)
    assert 0 < observations.steps_per_second[0] < 500
    assert 0.002 < timings.compute_seconds[0] < 1 / observations.steps_per_second[0]


def test_a_trace_handler_sends_what_torch_profiler_recorded(server, tmp_path):
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    handler = trace_handler(server.target, "team/handled", keep=tmp_path / "kept")
    with torch.profiler.profile(schedule=schedule, on_trace_ready=handler, with_stack=True) as profiler:
        for _ in range(4):
            one_step()
            profiler.step()
    join_deliveries()
    with Client(server.target) as client:
        (trace,) = client.get_profile("team/handled").content.traces
    assert (trace.rank, trace.world_size) == (0, 1)
    kept = (tmp_path / "kept" / "rank0.json.gz").read_bytes()
    assert blob(tmp_path / "traces", trace.content_sha256).read_bytes() == kept
    text = gzip.decompress(kept).decode()
    assert "test_recorder.py" in text
    for private in (str(tmp_path), str(Path(__file__).parent), str(Path.home()) + "/", f'"{socket.gethostname()}"'):
        assert private not in text
    assert getpass.getuser() == "root" or getpass.getuser() not in text


def test_steps_without_a_trace_are_timed(server):
    options = {"steps": None, "timed_steps": 5, "device": "cpu", "batch_per_worker": 2}
    with Recorder(server.target, "team/timed", **options) as recorder:
        steps(recorder, 8)
    with Client(server.target) as client:
        content = client.get_profile("team/timed").content
    assert content.traces == ()
    assert content.observations.steps_counts == (5,)
    assert content.observations.configurations.device_names == ("cpu",)


def test_times_of_all_steps_are_reported_with_their_parts(server):
    model, optimizer = parts_job()
    with Recorder(server.target, "team/live", steps=None, live=True, model=model) as recorder:
        for _ in range(62):
            optimizer.zero_grad()
            model(torch.ones(64, 512)).sum().backward()
            optimizer.step()
            recorder.step()
    with Client(server.target) as client:
        asked = DiagnoseRequest(profile=profile_source("team/live"), since_seconds=3600.0)
        steps = client.diagnose(asked).steps
    # The first steps are left out; windows grow until they last a second.
    assert steps.ranks_count == 1
    assert 10 <= steps.steps_count <= 50
    assert 0 < steps.step_seconds < 1


def test_ranks_record_on_demand_and_once_a_request(server, tmp_path, monkeypatch):
    monkeypatch.setattr("nodewise_client.torch.REPORT_EVERY_S", 0.05)
    with Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="team/asked", labels={"nodewise.record": "one 2 0"}))
        kept = tmp_path / "kept"
        with Recorder(server.target, "team/asked", steps=None, live=True, keep=kept) as recorder:
            while not kept.exists():
                steps(recorder, 10)
            steps(recorder, 200)
        traces = client.get_profile("team/asked").content.traces
    assert len(traces) == len(list(kept.iterdir())) == 1
    assert len(steps_in(kept / "rank0.json.gz")) == 2


def parts_job():
    model = torch.nn.Linear(512, 512)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def test_training_goes_on_without_a_server_and_says_so_once(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="nodewise_client"):
        with Recorder("127.0.0.1:1", "team/lost", steps=range(3, 5), keep=tmp_path, timeout_s=0.3) as recorder:
            steps(recorder, 12)
        join_deliveries()
    assert len(caplog.records) == 1
    assert "training goes on" in caplog.text
    assert steps_in(tmp_path / "rank0.json.gz") == ["ProfilerStep#3", "ProfilerStep#4"]


def test_an_exception_of_the_script_leaves_and_nothing_is_sent(server):
    with pytest.raises(ZeroDivisionError):
        train_and_fail(Recorder(server.target, "team/broken", steps=range(1, 50)))
    join_deliveries()
    with Client(server.target) as client:
        assert list(client.list_profiles()) == []


def test_a_loop_that_ends_early_still_gives_the_steps_that_ran(tmp_path):
    with Recorder(None, "team/short", steps=range(1, 50), keep=tmp_path) as recorder:
        steps(recorder, 3)
    join_deliveries()
    assert {"ProfilerStep#1", "ProfilerStep#2"} <= set(steps_in(tmp_path / "rank0.json.gz"))


def test_a_profiler_that_cannot_start_costs_the_trace_alone(tmp_path, caplog, monkeypatch):
    def refuse(*arguments, **options):
        raise RuntimeError("no profiler here")

    monkeypatch.setattr(torch.profiler, "profile", refuse)
    with Recorder(None, "team/none", steps=range(2, 3), keep=tmp_path) as recorder:
        steps(recorder, 3)
    assert "no profiler here" in caplog.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "word"),
    [({"steps": range(5, 5)}, "steps"), ({"steps": range(0, 9, 2)}, "steps"), ({"server": None}, "keep")],
)
def test_what_cannot_work_is_said_at_once(options, word):
    with pytest.raises(ValueError, match=word):
        Recorder(**{"server": "127.0.0.1:1", "profile": "p", **options})
