"""Plugins of other people in processes of their own: whatever one does, it costs its callers one clear error each."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from patience import PATIENCE_S
from serving import Failure, ServerProcess, Stubs, failure_of, inline, workers

from nodewise_protos.v1 import options_pb2, plugin_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

pytestmark = pytest.mark.wheel

BUDGET_S = 3.0
"""Of a call: what hangs is ended after it; what is well takes milliseconds, on a busy machine tens of them."""

HEAD = """
import ctypes, os, sys, threading, time
import numpy as np
from nodewise.plugin import *

class Plain:
    def assess(self, profile, query):
        return Assessment(evidence=("nothing",), strength=0.0)
    def fit(self, profile, context):
        return self
    def predict(self, configurations, options):
        return answer(np.ones(len(configurations)))

def answer(step_s):
    rows = len(step_s)
    return Predictions(
        status=constant_ints(rows, 1), step_s=step_s, log_spread=constant_floats(rows, 0.1),
        breakdown_s={"part": step_s}, bottlenecks=("part",), bottleneck_index=constant_ints(rows, 0),
        extrapolation=constant_floats(rows, 1.0),
    )

def brings(*named):
    @hookimpl
    def nodewise_estimators():
        return [
            EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator)
            for name, estimator in named
        ]
    return nodewise_estimators
"""

ENDS = {
    "exits": ("os._exit(3)", "exited with status 3"),
    "crashes": ("ctypes.string_at(0)", "signal 11 (SIGSEGV)"),
    "kills-itself": ("os.kill(os.getpid(), 9)", "signal 9 (SIGKILL)"),
    "hangs": ("time.sleep(1000)", "exceeded its budget of 3 s"),
    "holds-the-interpreter": ("ctypes.PyDLL(None).sleep(1000)", "exceeded its budget of 3 s"),
    "raises": ("raise RuntimeError('secret')", "failed in"),
    "leaves": ("raise SystemExit('secret')", "failed in"),
    "interrupts": ("raise KeyboardInterrupt('secret')", "failed in"),
    "takes-memory": ("self.kept = bytearray(8 << 30)", "failed in"),
}
"""What a method does, and what its caller is told of it."""

KEEPS_ON = {
    "prints": "[print('x' * 1000) for _ in range(2000)]; sys.stderr.write('no line' * 100_000)",
    "forks": "os.fork() or time.sleep(1000)",
    "leaves-threads": "threading.Thread(target=time.sleep, args=(1000,)).start()",
    "reads-input": "sys.stdin.read()",
    "closes-outputs": "os.close(1); os.close(2)",
}
"""What a method may do without a fault."""

SLOW_TO_CONNECT = """
write = os.write

def write_and_stop(*arguments):
    written = write(*arguments)
    os.write = write
    if not os.fork():
        time.sleep(1)
        os.kill(os.getppid(), 18)
        os._exit(0)
    os.kill(os.getpid(), 19)
    return written

os.write = write_and_stop
"""
"""Stops the host for a second where it has just reported that it serves, as a busy machine may."""

NO_IMPORT = {"exits-at-import": "os._exit(4)", "hangs-at-import": "time.sleep(1000)"}


def method(name: str, does: str) -> str:
    """The source of a class of which a method does something before it answers."""
    arguments = {"assess": "profile, query", "fit": "profile, context", "predict": "configurations, options"}[name]
    return (
        f"type('Mine', (Plain,), {{'{name}': {name}_of({does!r})}})()"
        if not arguments
        else dedent(f"""
        class Mine(Plain):
            def {name}(self, {arguments}):
                {does}
                return super().{name}({arguments})
    """)
    )


def put(site: Path, name: str, source: str) -> None:
    """Install a distribution with one module and one entry point, as an installer would leave it."""
    module = f"plugin_{name.replace('-', '_')}"
    (site / f"{module}.py").write_text(HEAD + source, encoding="utf-8")
    info = site / f"{module}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[nodewise.plugins]\n{name} = {module}\n", encoding="utf-8")


def brings(name: str, where: str, does: str) -> str:
    """The source of a plugin with one estimator of which a method does something before it answers."""
    return method(where, does) + f"\nnodewise_estimators = brings(({name!r}, Mine()))\n"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, Stubs]]:
    """A server among plugins that misbehave and one that is well."""
    site = tmp_path_factory.mktemp("crowd")
    for name, (does, _) in ENDS.items():
        put(site, name, brings(name, "predict", does))
    for name, does in KEEPS_ON.items():
        put(site, name, brings(name, "fit", does))
    for where in ("assess", "fit"):
        put(site, f"ends-in-{where}", brings(f"ends-in-{where}", where, "os._exit(5)"))
    put(site, "no-number", brings("no-number", "predict", "return answer(np.full(len(configurations), np.nan))"))
    put(site, "wrong-shape", brings("wrong-shape", "predict", "return answer(np.ones(len(configurations) + 1))"))
    put(site, "an-object", brings("an-object", "predict", "return object()"))
    put(site, "well", brings("well", "predict", "pass"))
    with server(site) as running, Stubs(running.target) as stubs:
        yield running, stubs


def server(site: Path, **environment: str) -> ServerProcess:
    """A server that finds what is installed in ``site``, with short budgets."""
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    budgets = {
        "NODEWISE_HOSTS__CALL_BUDGET_S": f"{BUDGET_S:g}",
        # A crowd of hosts starts at once, and shares what the machine has left.
        "NODEWISE_HOSTS__LOAD_BUDGET_S": f"{PATIENCE_S:g}",
        "NODEWISE_HOSTS__START_PATIENCE_S": f"{PATIENCE_S:g}",
        "NODEWISE_LEARN_INTERVAL_S": "0",
    }
    settings = {"PYTHONPATH": os.pathsep.join(paths), **budgets, **environment}
    return ServerProcess("--store", "memory:", environment=settings)


def asked(name: str, *counts: int) -> pb.PredictRequest:
    options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=name))
    return pb.PredictRequest(profile=inline(), configurations=workers(*(counts or (1, 2))), options=options)


def predicted(stubs: Stubs, name: str, *counts: int) -> pb.PredictResponse:
    return stubs.prediction.Predict(asked(name, *counts), timeout=PATIENCE_S)


def failed(stubs: Stubs, name: str, *counts: int) -> Failure:
    return failure_of(stubs.prediction.Predict, asked(name, *counts), timeout=PATIENCE_S)


@pytest.mark.parametrize(("name", "told"), [(name, told) for name, (_, told) in ENDS.items()])
def test_what_ends_or_holds_a_host_costs_one_clear_error(
    crowd: tuple[ServerProcess, Stubs], name: str, told: str
) -> None:
    _, stubs = crowd
    failure = failed(stubs, name)
    assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "ESTIMATOR_FAILED")
    assert told in failure.message
    assert "secret" not in failure.message
    assert predicted(stubs, "well").predictions.step_seconds[0] == 1.0


@pytest.mark.parametrize("name", KEEPS_ON)
def test_what_harms_nobody_is_let_be(crowd: tuple[ServerProcess, Stubs], name: str) -> None:
    _, stubs = crowd
    assert predicted(stubs, name).predictions.step_seconds[0] == 1.0
    assert predicted(stubs, name, 3, 4).predictions.step_seconds[1] == 1.0


@pytest.mark.parametrize("name", ["no-number", "wrong-shape", "an-object"])
def test_an_answer_that_cannot_be_true_is_told_as_such(crowd: tuple[ServerProcess, Stubs], name: str) -> None:
    _, stubs = crowd
    assert failed(stubs, name).reason == "ESTIMATOR_INVALID_RESULT"


def test_plugins_are_listed_with_where_they_run(crowd: tuple[ServerProcess, Stubs]) -> None:
    _, stubs = crowd
    reply = stubs.prediction.ListPlugins(pb.ListPluginsRequest(page_size=1000), timeout=PATIENCE_S)
    modes = {plugin.name: plugin.mode for plugin in reply.plugins}
    assert modes["well"] == plugin_pb2.PLUGIN_MODE_PROCESS
    assert modes["queueing"] == plugin_pb2.PLUGIN_MODE_INLINE


def test_what_does_not_load_is_listed_among_the_problems(tmp_path: Path) -> None:
    for name, does in NO_IMPORT.items():
        put(tmp_path, name, does)
    budget = {"NODEWISE_HOSTS__LOAD_BUDGET_S": f"{5 * BUDGET_S:g}"}
    with server(tmp_path, **budget) as running, Stubs(running.target) as stubs:
        reply = stubs.prediction.ListPlugins(pb.ListPluginsRequest(page_size=1000), timeout=PATIENCE_S)
    problems = {problem.name: problem.problem.message for problem in reply.problems}
    assert "exited with status 4" in problems["exits-at-import"]
    assert "exceeded its budget" in problems["hangs-at-import"]


def test_a_host_that_the_machine_holds_up_is_waited_for(tmp_path: Path) -> None:
    put(tmp_path, "slow", SLOW_TO_CONNECT + brings("slow", "predict", "pass"))
    with server(tmp_path) as running, Stubs(running.target) as stubs:
        assert predicted(stubs, "slow").predictions.step_seconds[0] == 1.0


@pytest.mark.long
@pytest.mark.parametrize("where", ["assess", "fit"])
def test_a_plugin_that_fails_again_and_again_is_left_alone(crowd: tuple[ServerProcess, Stubs], where: str) -> None:
    _, stubs = crowd
    name = f"ends-in-{where}"
    failures = [failed(stubs, name, 1 + number) for number in range(5)]
    assert {failures[0].reason, failures[-1].reason} <= {"ESTIMATOR_FAILED", "ESTIMATOR_UNAVAILABLE"}
    assert failures[0].reason == "ESTIMATOR_FAILED"
    if where == "fit":
        # The fit of this profile is not tried again: it would fail again.
        assert {failure.reason for failure in failures} == {"ESTIMATOR_FAILED"}
        return
    assert failures[-1].reason == "ESTIMATOR_UNAVAILABLE"
    watched = health_pb2_grpc.HealthStub(stubs.channel).Watch(
        health_pb2.HealthCheckRequest(service=f"estimator/{name}"), timeout=PATIENCE_S
    )
    assert any(reply.status == health_pb2.HealthCheckResponse.NOT_SERVING for reply in watched)
    watched.cancel()


@pytest.mark.long
def test_auto_goes_on_while_a_plugin_hangs(tmp_path: Path) -> None:
    mark = tmp_path / "asked"
    put(tmp_path, "hangs", brings("hangs", "assess", f"open({str(mark)!r}, 'w').close(); time.sleep(1000)"))
    paths = f'["{tmp_path}"]'
    with (
        server(tmp_path, NODEWISE_HOSTS__CALL_BUDGET_S="600", NODEWISE_HOSTS__PATHS=paths) as running,
        Stubs(running.target) as stubs,
    ):
        stuck = stubs.prediction.Predict.future(asked("hangs"), timeout=PATIENCE_S)
        while not mark.exists():  # else auto may be the first who asks it
            assert not stuck.done()
            time.sleep(0.01)
        # More than there are threads, each about another job: all are answered while the call above never is.
        replies = [stubs.prediction.Predict.future(asked("", 1 + n), timeout=PATIENCE_S) for n in range(8)]
        assert all(reply.result().predictions.step_seconds[0] > 0.0 for reply in replies)
        assert not stuck.done()
        stuck.cancel()


@pytest.mark.long
def test_a_start_waits_for_no_stranger(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waiting = f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    put(tmp_path, "late", waiting + brings("late", "predict", "pass"))
    put(tmp_path, "never", "time.sleep(1000)")
    patience = {"NODEWISE_HOSTS__START_PATIENCE_S": "0", "NODEWISE_HOSTS__LOAD_BUDGET_S": "600"}
    with server(tmp_path, **patience) as running, Stubs(running.target) as stubs:
        assert predicted(stubs, "").predictions.step_seconds[0] > 0.0
        failure = failed(stubs, "late")
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "ESTIMATOR_UNAVAILABLE")
        assert "still loading" in failure.message
        assert any("RetryInfo" in detail.type_url for detail in failure.status.details)
        reply = stubs.prediction.ListPlugins(pb.ListPluginsRequest(page_size=1000), timeout=PATIENCE_S)
        reasons = {problem.name: problem.problem.reason for problem in reply.problems}
        assert reasons == {"late": "PLUGIN_LOADING", "never": "PLUGIN_LOADING"}
        gate.touch()
        running.log_until("plugins_arrived")
        assert predicted(stubs, "late").predictions.step_seconds[0] == 1.0
        assert predicted(stubs, "").predictions.step_seconds[0] > 0.0


def test_auto_answers_among_them(crowd: tuple[ServerProcess, Stubs]) -> None:
    _, stubs = crowd
    assert predicted(stubs, "").predictions.step_seconds[0] > 0.0
