"""A host that is a plugin's altogether: what it sends costs its worker neither memory nor time, nor other calls."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import grpc
import pytest
from patience import PATIENCE_S

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question, Terms
from nodewise.hosting.calls import PluginError
from nodewise.hosting.processes.callbacks import MOST_READ_BYTES, MOST_ROWS, ContextObjects, answer_of_object
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.proxies import PROFILES_AT_ONCE
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP
from nodewise_protos.plugin.v1 import plugin_service_pb2, plugin_service_pb2_grpc

SOURCE = """
import os, time
import grpc
import numpy as np
from nodewise.hosting.processes import servicer
from nodewise.plugin import *
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import plugin_service_pb2, value_pb2

def predicts(response):
    servicer._predict = lambda *given: response

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

class Numbers(Good):
    def assess(self, profile, query):
        kept = plugin_service_pb2.KeptObject(number=-7, abilities=["predict"])
        servicer.Estimators.keep_answer = lambda *given: kept
        return super().assess(profile, query)

class Empty(Good):
    def fit(self, profile, context):
        predicts(pb.PredictResponse(predictions=pb.Predictions()))
        return super().fit(profile, context)

class Short(Good):
    def fit(self, profile, context):
        predicts(pb.PredictResponse(predictions=pb.Predictions(step_seconds=[1.0, 2.0])))
        return super().fit(profile, context)

class Unlisted(Good):
    def fit(self, profile, context):
        record = value_pb2.Value(record=value_pb2.Record(type="Popen", fields=["args"], values=[value_pb2.Value()]))
        predicts(pb.PredictResponse(other=record))
        return super().fit(profile, context)

class Statuses(Good):
    def fit(self, profile, context):
        told = dict(code=grpc.StatusCode.OUT_OF_RANGE, details="", trailing_metadata=())
        status = type("Status", (grpc.Status,), told)
        servicer.failure = lambda error: status()
        raise ValueError

class Signalled(Good):
    def fit(self, profile, context):
        os.kill(os.getpid(), 40)
        time.sleep(1000)

def record(name, estimator):
    return EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator)

@hookimpl
def nodewise_estimators():
    kinds = (Good, Numbers, Empty, Short, Unlisted, Statuses, Signalled)
    return [record(each.__name__.lower(), each()) for each in kinds]
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
    rows = Configurations.of(3, nodes=1, workers=(1, 2, 3))
    return Answers(registry).answer(Question(profile=PROFILE, configurations=rows, terms=Terms(estimator=name)))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("numbers", "not an object"),
        ("empty", "no step_seconds"),
        ("short", "a column of 2 numbers for 3 rows"),
        ("unlisted", "an invalid message"),
        ("statuses", "an invalid status"),
        ("signalled", "ended by signal 40 "),
    ],
)
def test_what_makes_no_sense_ends_the_host_that_sent_it(registry: Registry, name: str, found: str) -> None:
    with pytest.raises(PluginError, match=found):
        asked(registry, name)
    assert asked(registry, "good").predictions.step_s[0] == 1.0


def test_what_belongs_to_no_call_is_not_answered(tmp_path: Path) -> None:
    server = ContextObjects(lambda _: 0).serve(tmp_path)
    with grpc.insecure_channel(f"unix:{tmp_path}/context") as channel:
        ask = plugin_service_pb2_grpc.ContextServiceStub(channel).Ask
        with pytest.raises(grpc.RpcError) as refused:
            ask(plugin_service_pb2.AskRequest(call=1, number=1, method="traces"), timeout=PATIENCE_S)
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "has ended" in refused.value.details()
    server.stop(None)


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
        answer_of_object(kind, None, method, arguments, MOST_ROWS)
    assert refused.value.reason is Reason.LIMIT_EXCEEDED


def test_a_host_is_given_no_more_of_a_file_at_a_time_than_its_buffer_holds() -> None:
    content = io.BytesIO(bytes(MOST_READ_BYTES + 1))
    assert len(answer_of_object("stream", content, "read", [1 << 40], MOST_ROWS)) == MOST_READ_BYTES
