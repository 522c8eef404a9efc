"""What the recorder does apart from PyTorch: step times, where a process stands, traces as files, deliveries."""

from __future__ import annotations

import gzip
import json
import logging
import threading

import pytest

from nodewise_client import Client, configurations, prepared_trace
from nodewise_client._delivery import Delivery, Place, place_of_environment
from nodewise_client._redaction import own_names
from nodewise_client._step_times import StepTimes

RAN = configurations(nodes=1, workers=2)
LAUNCHERS = (
    *("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    *("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NNODES"),
)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def timed(durations, *, most=50, compute=None):
    clock = Clock()
    waits = []
    times = StepTimes(most, lambda: waits.append(clock.now), clock)
    times.end_step(next_counts=True)
    for duration in durations:
        times.begin_step()
        if compute is not None:
            with times.phase("compute"):
                clock.now += compute
        clock.now += duration - (compute or 0.0)
        times.end_step(next_counts=True)
        clock.now += 17.0  # what happens between two steps is part of neither
    return times, waits


def test_the_throughput_is_that_of_the_mean_step():
    times, waits = timed([0.1, 0.2, 0.3])
    found = times.observation(RAN)
    assert found.steps_per_second == pytest.approx((5.0,))
    assert found.step_variation == pytest.approx((0.5,))
    assert found.steps_counts == (3,)
    assert waits == [100.0]  # the device is waited for where timing begins, not in every step


def test_too_few_steps_say_nothing():
    times, _ = timed([0.1, 0.2], compute=0.05)
    assert times.observation(RAN) is None
    assert times.timings(RAN) is None


def test_the_newest_steps_are_kept():
    times, _ = timed([9.0, 0.5, 0.5, 0.5, 0.5], most=4)
    assert times.observation(RAN).steps_per_second == pytest.approx((2.0,))


def test_phases_add_up_within_a_step():
    times, _ = timed([0.5, 0.5, 0.5], compute=0.2)
    found = times.timings(RAN)
    assert found.compute_seconds == (pytest.approx(0.2),)
    assert found.steps_counts == (3,)
    with pytest.raises(ValueError, match="download, compute, upload, update"), times.phase("thinking"):
        pass


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, Place(nodes=1)),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}, Place(rank=5, world_size=8, nodes=2)),
        ({"RANK": "1", "WORLD_SIZE": "8"}, Place(rank=1, world_size=8)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "6", "SLURM_NNODES": "3"}, Place(rank=3, world_size=6, nodes=3)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, Place(nodes=1)),
        ({"RANK": "9", "WORLD_SIZE": "8"}, Place(nodes=1)),
        ({"RANK": "x", "WORLD_SIZE": "8"}, Place(nodes=1)),
    ],
)
def test_the_launcher_says_where_a_process_stands(monkeypatch, variables, place):
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert place_of_environment() == place


@pytest.mark.parametrize("packed", [False, True])
def test_a_prepared_trace_is_clean_and_always_the_same_bytes(tmp_path, packed):
    text = json.dumps({"traceName": "/home/mallory/run/rank0.json", "traceEvents": []}).encode()
    (tmp_path / "trace").write_bytes(gzip.compress(text) if packed else text)
    with prepared_trace(tmp_path / "trace") as first, prepared_trace(tmp_path / "trace") as second:
        content = first.read()
        assert content == second.read()
    assert json.loads(gzip.decompress(content)) == {"traceName": "rank0.json", "traceEvents": []}
    with prepared_trace(tmp_path / "trace", redact=False) as whole:
        assert gzip.decompress(whole.read()) == text


def test_a_trace_that_is_cut_off_is_an_error(tmp_path):
    (tmp_path / "trace").write_bytes(gzip.compress(b"{}" * 500)[:-9])
    with pytest.raises(EOFError):
        prepared_trace(tmp_path / "trace")


def test_names_that_say_nothing_are_no_names(monkeypatch):
    monkeypatch.setenv("USER", "mallory")
    monkeypatch.setenv("LOGNAME", "root")
    monkeypatch.setenv("HOSTNAME", "gpu-17.cluster.example")
    assert {"mallory", "gpu-17.cluster.example", "gpu-17"} <= own_names()
    assert "root" not in own_names()


def delivered(delivery: Delivery) -> None:
    delivery.wait()
    for thread in threading.enumerate():
        if thread.name == "nodewise-delivery":
            thread.join()


def test_copies_never_replace_each_other(tmp_path):
    delivery = Delivery(None, "job", redact=True, keep=tmp_path / "kept", timeout_s=5.0)
    for content in ("1", "2", "3"):
        delivery.trace(lambda path, content=content: path.write_text(content), Place(rank=3, world_size=4, nodes=1))
        delivered(delivery)
    found = {path.name: gzip.decompress(path.read_bytes()) for path in (tmp_path / "kept").iterdir()}
    assert found == {"rank3.json.gz": b"1", "rank3-2.json.gz": b"2", "rank3-3.json.gz": b"3"}


def test_a_delivery_complains_once_and_leaves_nothing_behind(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with caplog.at_level(logging.WARNING, logger="nodewise_client"), Client("127.0.0.1:1") as client:
        delivery = Delivery(client, "job", redact=True, keep=None, timeout_s=0.1)
        for _ in range(3):
            delivery.trace(lambda path: path.write_text("{}"), Place(nodes=1))
        delivered(delivery)
    assert len(caplog.records) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_is_told_to_the_caller(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    delivery = Delivery(None, "job", redact=True, keep=tmp_path / "kept", timeout_s=0.1)
    with pytest.raises(OSError, match="full"):
        delivery.trace(fail, Place(nodes=1))
    assert list(tmp_path.iterdir()) == []


def fail(path):
    raise OSError("the disk is full")
