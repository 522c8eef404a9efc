"""Estimators in servers of their own, in Python and in Go: asked by name and by auto, killed and swapped under load."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from patience import PATIENCE_S, wait_until
from serving import ServerProcess, Stubs, failure_of

from nodewise.conformance.cases import address_cases
from nodewise_protos.v1 import configuration_pb2, options_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "plugins" / "nodewise_example_amdahl"
NAMES = {"python": "amdahl", "go": "amdahl-go"}
EAGER = """
from dataclasses import replace
import nodewise_example_amdahl as example
from nodewise.plugin import hookimpl

class Eager(example.AmdahlEstimator):
    def assess(self, profile, query):
        found = super().assess(profile, query)
        return found if found.refusal else replace(found, strength=1.0, expected_log_error=1e-6)

@hookimpl
def nodewise_estimators():
    return [replace(each, estimator=Eager()) for each in example.nodewise_estimators()]
"""
"""The example, so sure of itself that auto has it take part."""
LANGUAGES = [
    "python",
    pytest.param("go", marks=pytest.mark.skipif(shutil.which("go") is None, reason="Go is not here")),
]


class EstimatorServer:
    """A process that answers at an address."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._command = command
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        paths = os.pathsep.join([str(EXAMPLE), str(self._folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths}
        self._process = subprocess.Popen([*self._command, *arguments], env=environment, cwd=EXAMPLE)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in Go, built."""
    found = tmp_path_factory.mktemp("go") / "estimator"
    subprocess.run(["go", "build", "-o", str(found), "./examples/estimator"], cwd=ROOT / "clients" / "go", check=True)
    return found


@pytest.fixture
def estimator(language: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EstimatorServer]:
    target = f"unix://{tmp_path}/estimator.sock"
    if language == "go":
        command = [str(request.getfixturevalue("program")), "-listen", target, "-expected-error", "1e-6"]
    else:
        command = [sys.executable, "-m", "nodewise.hosting.estimator_server", "eager_amdahl", target]
        (tmp_path / "eager_amdahl.py").write_text(EAGER, encoding="utf-8")
    found = EstimatorServer(command, tmp_path)
    yield found
    found.kill()


def server(name: str, target: str) -> ServerProcess:
    settings = {f"NODEWISE_ESTIMATORS__{name}": target, "NODEWISE_LEARN_INTERVAL_S": "0"}
    return ServerProcess("--store", "memory:", environment=settings)


def asked(estimator: str, scale: float = 1.0, first: int = 1) -> pb.PredictRequest:
    """Rows of a made-up job by Amdahl's law, of which nothing else is known."""
    counts = [1, 2, 4, 8]
    observations = profile_pb2.Observations(
        configurations=configuration_pb2.Configurations(
            nodes=counts, workers=counts, sync_modes=[3], batch_per_worker_samples=[32]
        ),
        steps_per_second=[1.0 / (32 * count * (0.002 + scale / count)) for count in counts],
    )
    return pb.PredictRequest(
        profile=profile_pb2.ProfileSource(content=profile_pb2.ProfileContent(observations=observations)),
        configurations=configuration_pb2.Configurations(
            nodes=range(first, first + 4),
            workers=range(first, first + 4),
            sync_modes=[3],
            batch_per_worker_samples=[32],
        ),
        options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator)),
    )


def version_of(stubs: Stubs, name: str) -> str:
    """As it is listed; empty = it is not."""
    listed = stubs.prediction.ListEstimators(pb.ListEstimatorsRequest(), timeout=PATIENCE_S).estimators
    return next((each.plugin.version for each in listed if each.plugin.name == name), "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_conforms(language: str, estimator: EstimatorServer, tmp_path: Path) -> None:
    estimator.start()
    target = f"unix://{tmp_path}/estimator.sock"
    wait_until(Path(f"{tmp_path}/estimator.sock").exists)
    cases = address_cases(NAMES[language], target)
    assert len(cases) > 10
    for case in cases:
        case.run()


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_answers_by_name_and_takes_part_in_auto(language: str, estimator: EstimatorServer, tmp_path: Path) -> None:
    name = NAMES[language]
    with server(name, f"unix://{tmp_path}/estimator.sock") as running, Stubs(running.target) as stubs:
        failure = failure_of(stubs.prediction.Predict, asked(name), timeout=PATIENCE_S)
        assert failure.code == grpc.StatusCode.UNAVAILABLE  # it may join yet
        estimator.start()
        wait_until(lambda: version_of(stubs, name))
        answer = stubs.prediction.Predict(asked(name), timeout=PATIENCE_S)
        assert (answer.basis.estimator, answer.basis.estimator_version) == (name, "1.0.0")
        expected = [32 * (0.002 * count + 1.0) for count in range(1, 5)]
        assert list(answer.predictions.step_seconds) == pytest.approx(expected)
        assert [each.name for each in answer.predictions.breakdown_seconds] == ["serial", "parallel"]
        wait_until(lambda: name in who_answers(stubs, asked("auto")))  # others answer while its trials take long
        refused = failure_of(stubs.prediction.Predict, without_evidence(name), timeout=PATIENCE_S)
        assert refused.reason == "EVIDENCE_MISSING"


def who_answers(stubs: Stubs, request: pb.PredictRequest) -> set[str]:
    basis = stubs.prediction.Predict(request, timeout=PATIENCE_S).basis
    return {basis.estimator, *(each.estimator for each in basis.mixture)}


def without_evidence(name: str) -> pb.PredictRequest:
    request = asked(name)
    observations = request.profile.content.observations
    observations.configurations.CopyFrom(
        configuration_pb2.Configurations(nodes=[1], workers=[1], sync_modes=[3], batch_per_worker_samples=[32])
    )
    del observations.steps_per_second[1:]
    return request


class Callers:
    """Threads that ask new questions until they are ended."""

    def __init__(self, stubs: Stubs, *names: str) -> None:
        self.failures: Counter[tuple[str, str]] = Counter()
        self.versions: Counter[tuple[str, str]] = Counter()
        self._stubs = stubs
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number, name)) for number, name in enumerate(names)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int, name: str) -> None:
        scale = 1.0 + number / 7.0
        while not self._ended.is_set():
            scale += 1e-3
            try:
                answer = self._stubs.prediction.Predict(asked(name, scale), timeout=PATIENCE_S)
                self.versions[name, answer.basis.estimator_version] += 1
            except grpc.RpcError as error:
                self.failures[name, error.code().name] += 1

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_kill_costs_only_those_who_name_it(language: str, estimator: EstimatorServer, tmp_path: Path) -> None:
    name = NAMES[language]
    estimator.start()
    with server(name, f"unix://{tmp_path}/estimator.sock") as running, Stubs(running.target) as stubs:
        wait_until(lambda: version_of(stubs, name))
        callers = Callers(stubs, "auto", name, "auto")
        wait_until(lambda: callers.versions[name, "1.0.0"] > 10)
        estimator.kill()
        wait_until(lambda: callers.failures[name, "UNAVAILABLE"] > 3)
        before = callers.versions.total()
        wait_until(lambda: callers.versions.total() > before + 5)  # auto goes on
        estimator.start()
        answered = callers.versions[name, "1.0.0"]
        wait_until(lambda: callers.versions[name, "1.0.0"] > answered + 10)
        callers.end()
        assert set(callers.failures) == {(name, "UNAVAILABLE")}
        listed = stubs.prediction.ListEstimators(pb.ListEstimatorsRequest(), timeout=PATIENCE_S)
        assert name in {each.plugin.name for each in listed.estimators}


@pytest.mark.parametrize("language", ["go"] if shutil.which("go") else [])
def test_another_version_takes_over_while_callers_run(
    language: str, estimator: EstimatorServer, tmp_path: Path
) -> None:
    name = NAMES[language]
    estimator.start()
    with server(name, f"unix://{tmp_path}/estimator.sock") as running, Stubs(running.target) as stubs:
        wait_until(lambda: version_of(stubs, name))
        before = stubs.prediction.Predict(asked(name), timeout=PATIENCE_S)
        callers = Callers(stubs, "auto", "auto")
        wait_until(lambda: callers.versions.total() > 10)
        estimator.kill()
        estimator.start("-version", "2.0.0")
        wait_until(lambda: version_of(stubs, name) == "2.0.0")
        after = stubs.prediction.Predict(asked(name), timeout=PATIENCE_S)
        callers.end()
        assert after.basis.estimator_version == "2.0.0"
        assert after.basis.digest != before.basis.digest  # nothing that the old version answered stands for the new one
        assert not callers.failures
