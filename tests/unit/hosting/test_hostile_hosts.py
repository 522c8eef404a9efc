"""A host that is a plugin's altogether: what it sends costs its worker neither memory nor time, nor other calls."""

from __future__ import annotations

import io
import socket
import sys
import time
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question, Terms
from nodewise.hosting.calls import PluginError
from nodewise.hosting.processes.codec import HEADER, UndecodableError
from nodewise.hosting.processes.frames import MOST_PARTS, MOST_TREE_BYTES, Pipe
from nodewise.hosting.processes.given import PROFILES_AT_ONCE
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.sending import MOST_READ_BYTES, MOST_ROWS, asked_of_given
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP

SOURCE = """
import os, sys, time
import numpy as np
import orjson
from nodewise.hosting.processes.codec import HEADER
from nodewise.plugin import *

def send(*values, number=None):
    tree = orjson.dumps([*values])
    tree += b" " * (-len(tree) % 8)
    frame = sys._getframe()
    while "pipe" not in frame.f_locals:
        hosted, frame = frame.f_locals.get("self"), frame.f_back
    number = hosted._exchange if number is None else number
    frame.f_locals["pipe"].socket.sendall(HEADER.pack(len(tree), 8, number) + tree + bytes(8))

class Model:
    def predict(self, configurations, options):
        rows = len(configurations)
        step_s = np.ones(rows)
        return Predictions(
            status=constant_ints(rows, 1), step_s=step_s, log_spread=constant_floats(rows, 0.1),
            breakdown_s={"part": step_s}, bottlenecks=("part",), bottleneck_index=constant_ints(rows, 0),
            extrapolation=constant_floats(rows, 1.0),
        )

class Good:
    def assess(self, profile, query):
        return Assessment(evidence=("nothing",), strength=0.0)
    def fit(self, profile, context):
        return Model()

class Unrolled(Good):
    def fit(self, profile, context):
        send(6, ["c", "q", 1 << 62, 0])
        time.sleep(1000)

class Numbers(Good):
    def fit(self, profile, context):
        send(6, ["c", "q", 1000, 0])
        time.sleep(1000)

class Asks(Good):
    def fit(self, profile, context):
        send(10)
        time.sleep(1000)

class Other(Good):
    def fit(self, profile, context):
        send(6, 1, number=1)
        time.sleep(1000)

class Early(Good):
    def assess(self, profile, query):
        send(6, [])
        send(6, [])
        return super().assess(profile, query)

class Signalled(Good):
    def fit(self, profile, context):
        os.kill(os.getpid(), 40)
        time.sleep(1000)

def record(name, estimator):
    return EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator)

@hookimpl
def nodewise_estimators():
    return [record(each.__name__.lower(), each()) for each in (Good, Unrolled, Numbers, Asks, Other, Early, Signalled)]
"""
PROFILE = Profile(digest="a job")


class Distribution:
    """What an entry point needs to know of its own."""

    name, version = "hostile", "1.0"

    def locate_file(self, path: str) -> Path:
        """Somewhere on the path."""
        return Path(sys.path[-1]) / path


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "hostile.py").write_text(SOURCE, encoding="utf-8")
    point = EntryPoint("hostile", "hostile", ENTRY_POINT_GROUP)
    vars(point).update(dist=Distribution())
    hosting = Hosting(limits=HostLimits(call_budget_s=PATIENCE_S, load_budget_s=PATIENCE_S))
    found = load_registry(entry_points=lambda: [point], hosting=hosting)
    yield found
    found.close()


def asked(registry: Registry, name: str) -> Answer:
    rows = Configurations.of(1, nodes=1, workers=1)
    return Answers(registry).answer(Question(profile=PROFILE, configurations=rows, terms=Terms(estimator=name)))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("unrolled", "an array that is too long"),
        ("numbers", "no object"),
        ("asks", "a question that is none"),
        ("other", "an answer to another call"),
        ("signalled", "ended by signal 40 "),
    ],
)
def test_what_makes_no_sense_ends_the_host_that_sent_it(registry: Registry, name: str, found: str) -> None:
    with pytest.raises(PluginError, match=found):
        asked(registry, name)
    assert asked(registry, "good").predictions.step_s[0] == 1.0


def test_what_answers_twice_spoils_no_other_call(registry: Registry) -> None:
    (host,) = registry.hosts
    for _ in range(2):
        pid = host.pid
        with pytest.raises(PluginError):
            asked(registry, "early")
        assert asked(registry, "good").predictions.step_s[0] == 1.0
        assert host.pid != pid


def framed(tree: bytes) -> bytes:
    return HEADER.pack(len(tree), 0, 0) + tree


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (HEADER.pack(MOST_TREE_BYTES + 1, 0, 0), "too large"),
        (framed(b"[" + b"[]," * MOST_PARTS + b"1]"), "too many parts"),
    ],
)
def test_a_tree_is_bounded_before_it_is_read(message: bytes, found: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pipe = Pipe(ours, wary=True)
        pipe._rest = message  # as if it had come: no thread needs to send it
        with pytest.raises(UndecodableError, match=found):
            pipe.receive()


def test_what_comes_in_pieces_has_no_more_time_than_what_comes_whole() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(PATIENCE_S)
        pipe, message = Pipe(ours, wary=True), framed(b"[1]     ")
        for part in (message[:3], message[3:9]):
            theirs.sendall(part)
            with pytest.raises(TimeoutError):
                pipe.receive(time.monotonic())
        assert ours.gettimeout() == PATIENCE_S


@pytest.mark.parametrize(
    ("kind", "method", "arguments"),
    [
        ("corpus", "some", [0, PROFILES_AT_ONCE + 1]),
        ("corpus", "some", [4, 0]),
        ("stream", "read", [-1]),
        ("model", "predict", [Configurations.of(MOST_ROWS + 1, nodes=1, workers=1), None]),
    ],
)
def test_what_a_host_asks_for_is_bounded(kind: str, method: str, arguments: list[Any]) -> None:
    with pytest.raises(NodewiseError) as refused:
        asked_of_given(kind, None, method, arguments, MOST_ROWS)
    assert refused.value.reason is Reason.LIMIT_EXCEEDED


def test_a_host_is_given_no_more_of_a_file_at_a_time_than_its_buffer_holds() -> None:
    content = io.BytesIO(bytes(MOST_READ_BYTES + 1))
    assert len(asked_of_given("stream", content, "read", [1 << 40], MOST_ROWS)) == MOST_READ_BYTES
