"""Plugins of other people, installed beside a real server: the example, broken ones, liars and duplicates."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from serving import Failure, ServerProcess, Stubs, failure_of, inline, observed, workers

from nodewise_protos.v1 import configuration_pb2 as configurations
from nodewise_protos.v1 import options_pb2, plugin_pb2, prediction_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import schedule_service_pb2 as schedules

pytestmark = pytest.mark.wheel

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugins" / "nodewise_example_amdahl"
SECRET = "a secret of the plugin"

HEAD = """
import numpy as np
from nodewise.plugin import *

class Plain:
    def assess(self, profile, query):
        return Assessment(evidence=("nothing",), strength=0.0)
    def fit(self, profile, context):
        return self
    def predict(self, configurations, options):
        rows = len(configurations)
        return answer(np.ones(rows), np.ones(rows))

def answer(step_s, part_s):
    rows = len(step_s)
    return Predictions(
        status=constant_ints(rows, 1), step_s=step_s, log_spread=constant_floats(rows, 0.1),
        breakdown_s={"part": part_s}, bottlenecks=("part",), bottleneck_index=constant_ints(rows, 0),
        extrapolation=constant_floats(rows, 1.0),
    )

def record(name, estimator, **more):
    return EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator, **more)
"""


def estimator(name: str, predict: str) -> str:
    """The source of a plugin whose estimator predicts like this."""
    return dedent(f"""
        class Mine(Plain):
            def predict(self, configurations, options):
                rows = len(configurations)
                {predict}

        @hookimpl
        def nodewise_estimators():
            return [record("{name}", Mine())]
    """)


LIARS = {
    "raises": f"raise RuntimeError('{SECRET}')",
    "exits": f"raise SystemExit('{SECRET}')",
    "no-number": "return answer(np.full(rows, np.nan), np.full(rows, np.nan))",
    "wrong-shape": "return answer(np.ones(rows + 1), np.ones(rows + 1))",
    "wrong-sum": "return answer(np.ones(rows), np.full(rows, 0.9))",
    "no-answer": "return {'step_s': 1.0}",
}
BROKEN = {
    "import-error": "import a_module_that_nobody_has",
    "exit-at-import": "raise SystemExit(3)",
    "misspelled": "@hookimpl\ndef nodewise_estimatrs():\n    return []",
    "too-new": "@hookimpl\ndef nodewise_estimators():\n    return [record('too-new', Plain(), plugin_api='>=2')]",
    "no-record": "@hookimpl\ndef nodewise_estimators():\n    return [Plain()]",
}


def put(site: Path, name: str, source: str, version: str = "0.1") -> None:
    """Install a distribution with one module and one entry point, as an installer would leave it."""
    module = f"plugin_{name.replace('-', '_')}"
    (site / f"{module}.py").write_text(HEAD + source, encoding="utf-8")
    info = site / f"{module}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[nodewise.plugins]\n{name} = {module}\n", encoding="utf-8")


def server(site: Path, *arguments: str, **environment: str) -> ServerProcess:
    """A server that finds what is installed in ``site``."""
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    return ServerProcess(
        "--store", "memory:", *arguments, environment={"PYTHONPATH": os.pathsep.join(paths), **environment}
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed by pip."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling, which builds the example, is not installed in this environment")
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command = [*pip, "--no-deps", "--no-build-isolation", "--target", str(folder), str(EXAMPLE)]
    finished = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ})
    assert finished.returncode == 0, finished.stderr
    return folder


@pytest.fixture(scope="module")
def example(site: Path) -> Iterator[Stubs]:
    with server(site) as running, Stubs(running.target) as stubs:
        yield stubs


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    """A server among broken plugins, liars and one that is well."""
    folder = tmp_path_factory.mktemp("crowd")
    for name, predict in LIARS.items():
        put(folder, name, estimator(name, predict))
    for name, source in BROKEN.items():
        put(folder, name, source)
    put(folder, "well", estimator("well", "return answer(np.ones(rows), np.ones(rows))"))
    with server(folder) as running, Stubs(running.target) as stubs:
        yield stubs


def amdahl_profile() -> profile_pb2.ProfileSource:
    """Observations of a made-up job that follows Amdahl's law: a sample takes 2 ms serial and 100 ms parallel."""
    counts = (1, 2, 4, 8)
    content = profile_pb2.ProfileContent(
        observations=profile_pb2.Observations(
            configurations=configurations.Configurations(
                nodes=counts,
                workers=counts,
                sync_modes=[configurations.SYNC_MODE_ALLREDUCE],
                batch_per_worker_samples=[32],
            ),
            steps_per_second=[1.0 / (32 * n * (0.002 + 0.1 / n)) for n in counts],
        )
    )
    return inline(content)


def listed(stubs: Stubs) -> dict[str, pb.Estimator]:
    reply = stubs.prediction.ListEstimators(pb.ListEstimatorsRequest())
    return {found.plugin.name: found for found in reply.estimators}


def asked(name: str, **fields: object) -> pb.PredictRequest:
    question = {"profile": inline(), "configurations": workers(1, 2), **fields}
    return pb.PredictRequest(options=by(name), **question)  # type: ignore[arg-type]


def by(estimator: str) -> options_pb2.PredictOptions:
    """Options that name an estimator."""
    return options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator))


# --- the example


def test_the_example_is_listed_with_its_distribution_and_where_it_runs(example: Stubs) -> None:
    found = listed(example)["amdahl"]
    assert (found.plugin.version, found.plugin.distribution) == ("1.0.0", "nodewise-example-amdahl 1.0.0")
    assert (found.plugin.kind, found.plugin.mode) == (plugin_pb2.PLUGIN_KIND_ESTIMATOR, plugin_pb2.PLUGIN_MODE_PROCESS)
    assert list(found.capabilities) == ["observations"]
    assert listed(example)["queueing"].plugin.mode == plugin_pb2.PLUGIN_MODE_INLINE
    health = health_pb2_grpc.HealthStub(example.channel)
    reply = health.Check(health_pb2.HealthCheckRequest(service="estimator/amdahl"))
    assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_the_example_answers_by_name(example: Stubs) -> None:
    reply = example.prediction.Predict(asked("amdahl", profile=amdahl_profile(), configurations=workers(1, 4, 16, 64)))
    rows = reply.predictions
    assert list(rows.samples_per_second) == pytest.approx([1 / (0.002 + 0.1 / n) for n in (1, 4, 16, 64)])
    assert {column.name: list(column.values) for column in rows.breakdown_seconds} == {
        "serial": pytest.approx([32 * n * 0.002 for n in (1, 4, 16, 64)]),
        "parallel": pytest.approx([3.2] * 4),
    }
    assert [rows.bottleneck_names[index] for index in rows.bottleneck_indexes] == ["parallel"] * 3 + ["serial"]
    assert list(rows.extrapolation_ratios) == [1, 1, 2, 8]
    assert [warning.reason for warning in rows.warnings] == ["EXTRAPOLATES"]
    assert reply.basis.estimator == "amdahl"
    assert list(reply.basis.evidence) == ["4 observations, with 1, 2, 4, 8 workers"]


def test_the_examples_spread_comes_from_its_residuals(example: Stubs) -> None:
    profile = amdahl_profile()
    rates = profile.content.observations.steps_per_second
    exact = example.prediction.Predict(asked("amdahl", profile=profile, configurations=workers(4, 64)))
    assert list(exact.predictions.lower_steps_per_second) == pytest.approx(list(exact.predictions.steps_per_second))
    rates[:] = [rate * factor for rate, factor in zip(rates, (1.05, 0.95, 1.05, 0.95), strict=True)]
    noisy = example.prediction.Predict(asked("amdahl", profile=profile, configurations=workers(4, 64))).predictions
    widths = [
        upper / lower for lower, upper in zip(noisy.lower_steps_per_second, noisy.upper_steps_per_second, strict=True)
    ]
    assert 1.05 < widths[0] < widths[1]
    del profile.content.observations.configurations.nodes[2:]
    del profile.content.observations.configurations.workers[2:]
    del rates[2:]
    two = example.prediction.Predict(asked("amdahl", profile=profile, configurations=workers(4)))
    assert not two.predictions.lower_steps_per_second


def test_the_example_refuses_a_profile_that_tells_too_little(example: Stubs) -> None:
    failure = failure_of(example.prediction.Predict, asked("amdahl"))
    assert failure.code is grpc.StatusCode.FAILED_PRECONDITION
    assert failure.reason == "EVIDENCE_MISSING"
    assert "observations" in failure.metadata["missingFields"].split(",")
    without_batch = inline(profile_pb2.ProfileContent(observations=observed([1, 2], [1.0, 1.9])))
    assert failure_of(example.prediction.Predict, asked("amdahl", profile=without_batch)).reason == "EVIDENCE_MISSING"


def test_the_example_refuses_rows_that_its_law_does_not_hold_for(example: Stubs) -> None:
    rows = configurations.Configurations(workers=[2, 2, 4], tensor_parallel_degrees=[1, 2, 1])
    reply = example.prediction.Predict(asked("amdahl", profile=amdahl_profile(), configurations=rows)).predictions
    assert [pb_name(status) for status in reply.statuses] == ["ANSWERED", "REFUSED", "ANSWERED"]
    assert reply.step_seconds[1] == 0
    assert [(list(refusal.rows), refusal.problem.reason) for refusal in reply.refusals] == [
        ([1], "UNSUPPORTED_CONFIGURATION")
    ]


def pb_name(status: int) -> str:
    return prediction_pb2.RowStatus.Name(status).removeprefix("ROW_STATUS_")  # type: ignore[arg-type]


def test_auto_prefers_whoever_knows_where_the_time_goes(example: Stubs) -> None:
    reply = example.prediction.Predict(asked("auto"))
    assert reply.basis.estimator == "queueing"


# --- who is let in


def test_safe_mode_loads_shipped_plugins_only(site: Path) -> None:
    with server(site, "--safe-mode") as running, Stubs(running.target) as stubs:
        assert "amdahl" not in listed(stubs)
        assert "queueing" in listed(stubs)
        failure = failure_of(stubs.prediction.Predict, asked("amdahl"))
        assert failure.reason == "ESTIMATOR_NOT_FOUND"
        assert "amdahl" not in failure.metadata["available"]


@pytest.mark.long
@pytest.mark.parametrize(("allowed", "present"), [(["nodewise-example-amdahl"], True), ([], False)])
def test_an_allow_list_lets_in_whom_it_names_and_an_empty_one_nobody(
    site: Path, allowed: list[str], present: bool
) -> None:
    """Its third state, unset, lets everyone in: the tests of the example run in it."""
    with server(site, NODEWISE_PLUGINS=json.dumps(allowed)) as running, Stubs(running.target) as stubs:
        assert ("amdahl" in listed(stubs)) == present
        assert "queueing" in listed(stubs)


# --- broken plugins


def test_broken_plugins_are_left_out_and_the_others_work(crowd: Stubs) -> None:
    shipped = {"auto", "partitioning", "queueing", "replay", "scaling", "transient", "unseen"}
    rules = {"batch-line", "constant-utilisation", "last-known", "power-law"}
    assert {*shipped, *rules, "well", *LIARS} == set(listed(crowd))
    reply = crowd.prediction.ListPlugins(pb.ListPluginsRequest())
    problems = {problem.distribution.split()[0]: problem for problem in reply.problems}
    assert {name: (problem.kind, problem.problem.reason) for name, problem in problems.items()} == {
        "import-error": (plugin_pb2.PLUGIN_KIND_UNSPECIFIED, "PLUGIN_BROKEN"),
        "exit-at-import": (plugin_pb2.PLUGIN_KIND_UNSPECIFIED, "PLUGIN_BROKEN"),
        "misspelled": (plugin_pb2.PLUGIN_KIND_UNSPECIFIED, "PLUGIN_INVALID"),
        "too-new": (plugin_pb2.PLUGIN_KIND_ESTIMATOR, "PLUGIN_API_MISMATCH"),
        "no-record": (plugin_pb2.PLUGIN_KIND_ESTIMATOR, "PLUGIN_INVALID"),
    }
    assert "nodewise_estimatrs" in problems["misspelled"].problem.message
    assert ">=2" in problems["too-new"].problem.message
    assert "expected EstimatorRecord, found Plain" in problems["no-record"].problem.message
    assert all(problem.distribution.endswith(" 0.1") for problem in reply.problems)
    answer = crowd.prediction.Predict(asked("well"))
    assert list(answer.predictions.step_seconds) == [1.0, 1.0]


def test_plugins_of_one_kind_come_with_the_problems_that_may_have_been_of_it(crowd: Stubs) -> None:
    reply = crowd.prediction.ListPlugins(pb.ListPluginsRequest(kind=plugin_pb2.PLUGIN_KIND_POLICY))
    policies = crowd.schedule.ListPolicies(schedules.ListPoliciesRequest()).policies
    assert list(reply.plugins) == list(policies)
    assert "fifo" in {policy.name for policy in policies}
    assert {"import-error", "exit-at-import", "misspelled"} == {
        problem.distribution.split()[0] for problem in reply.problems
    }


def test_all_plugins_come_in_pages_by_kind_name_and_version(crowd: Stubs) -> None:
    whole = crowd.prediction.ListPlugins(pb.ListPluginsRequest())
    order = [(found.kind, found.name, found.version) for found in whole.plugins]
    assert order == sorted(order)
    assert {found.kind for found in whole.plugins} == {
        plugin_pb2.PLUGIN_KIND_ESTIMATOR,
        plugin_pb2.PLUGIN_KIND_POLICY,
        plugin_pb2.PLUGIN_KIND_TRACE_READER,
        plugin_pb2.PLUGIN_KIND_DIAGNOSER,
        plugin_pb2.PLUGIN_KIND_SHARING_MODEL,
    }
    assert {"well", *LIARS} <= {found.name for found in whole.plugins}
    pages, token = [], ""
    while token or not pages:
        pages.append(crowd.prediction.ListPlugins(pb.ListPluginsRequest(page_size=5, page_token=token)))
        token = pages[-1].next_page_token
    assert [found for page in pages for found in page.plugins] == list(whole.plugins)
    assert [len(page.problems) for page in pages] == [len(BROKEN)] + [0] * (len(pages) - 1)
    assert len(pages) > 2


@pytest.mark.parametrize("name", ["raises", "exits"])
def test_what_a_plugin_raises_does_not_reach_the_caller(crowd: Stubs, name: str) -> None:
    failure = failure_of(crowd.prediction.Predict, asked(name))
    assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "ESTIMATOR_FAILED")
    assert failure.metadata["estimator"] == name
    assert failure.metadata["distribution"] == f"{name} 0.1"
    assert failure.metadata["method"] == "predict"
    assert SECRET not in str(failure.status)
    assert "Error" not in failure.message
    assert list(crowd.prediction.Predict(asked("well")).predictions.step_seconds) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no-number", "step_s is not finite"),
        ("wrong-shape", "step_s has shape (3,) for 2 rows"),
        ("wrong-sum", "the breakdown does not add up to step_s"),
        ("no-answer", "a dict instead of Predictions"),
    ],
)
def test_answers_that_cannot_be_true_are_discarded(crowd: Stubs, name: str, problem: str) -> None:
    failure: Failure = failure_of(crowd.prediction.Predict, asked(name))
    assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "ESTIMATOR_INVALID_RESULT")
    assert failure.metadata["problem"] == problem


def test_one_bad_plugin_fails_its_own_jobs_of_a_batch_alone(crowd: Stubs) -> None:
    request = pb.BatchPredictRequest(
        jobs=[pb.BatchJob(profile=inline()), pb.BatchJob(profile=inline())],
        configurations=workers(1, 2),
        options=by("raises"),
    )
    outcomes = crowd.prediction.BatchPredict(request).outcomes
    assert [outcome.problem.reason for outcome in outcomes] == ["ESTIMATOR_FAILED"] * 2
    request.options.model.estimator = "auto"
    assert not any(outcome.HasField("problem") for outcome in crowd.prediction.BatchPredict(request).outcomes)


@pytest.mark.long
def test_a_duplicate_name_stops_the_start_and_names_both_distributions(tmp_path: Path) -> None:
    put(tmp_path, "first", estimator("same", "return answer(np.ones(rows), np.ones(rows))"))
    put(tmp_path, "second", estimator("same", "return answer(np.ones(rows), np.ones(rows))"))
    with pytest.raises(RuntimeError, match=r"'same' is provided by both first 0\.1 and second 0\.1"):
        server(tmp_path)
    with server(tmp_path, "--plugin", "second") as running, Stubs(running.target) as stubs:
        assert listed(stubs)["same"].plugin.distribution == "second 0.1"
