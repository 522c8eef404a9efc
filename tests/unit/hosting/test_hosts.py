"""A host as the worker has it: what crosses, what stays, what is made anew, and what a plugin is given to ask."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from select import select
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Reason
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.lessons.priors import learned_from
from nodewise.estimation.question import Answer, Question, Terms
from nodewise.hosting.breaker import Breaker
from nodewise.hosting.calls import PluginError, UnavailableError, call
from nodewise.hosting.processes.host import Host
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.registry import Hosting, Registry, arrived, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP, Catalogue

SOURCE = """
import os
from pathlib import Path
import numpy as np
from nodewise.plugin import *

class Model:
    def __init__(self, step_s, other=None):
        self.step_s, self.other = step_s, other
    def predict(self, configurations, options):
        rows = len(configurations)
        if (configurations.workers == 666).any() and not Path(__file__).with_name("mended").exists():
            os._exit(6)
        if (configurations.workers == 404).any():
            raise ValueError("no")
        step_s = np.full(rows, self.step_s)
        if self.other is not None:
            step_s = step_s + self.other.predict(configurations, options).step_s
        return Predictions(
            status=constant_ints(rows, 1), step_s=step_s, log_spread=constant_floats(rows, 0.1),
            breakdown_s={"part": step_s}, bottlenecks=("part",), bottleneck_index=constant_ints(rows, 0),
            extrapolation=constant_floats(rows, 1.0),
        )

class Plain:
    fits = 0
    def assess(self, profile, query):
        return Assessment(evidence=("nothing",), strength=0.0)
    def fit(self, profile, context):
        Plain.fits += 1
        return Model(float(Plain.fits))

class Built(Plain):
    def __init__(self, on):
        self.on = on
    def fit(self, profile, context):
        return Model(100.0, context.model(self.on))

class Learns(Plain):
    def learn(self, corpus):
        return Prior.of("learns", "x", sources=("a job",), content={"jobs": len(list(corpus)), "own": Model})
    def fit(self, profile, context):
        return Model(10.0 + context.prior.content["jobs"])

def record(name, estimator):
    return EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator)

@hookimpl
def nodewise_estimators():
    return [
        record("plain", Plain()), record("built", Built("plain")), record("abroad", Built("elsewhere")),
        record("learns", Learns()),
    ]
"""

ELSEWHERE = (
    SOURCE.split("class Built", maxsplit=1)[0]
    + """
@hookimpl
def nodewise_estimators():
    return [EstimatorRecord(name="elsewhere", version="1.0", description="for tests", estimator=Plain())]
"""
)
PROFILE = Profile(digest="a job")
ROWS = Configurations.of(2, nodes=(1, 2), workers=(1, 2))


class Distribution:
    """What an entry point needs to know of its own."""

    version = "1.0"

    def __init__(self, name: str) -> None:
        self.name = name

    def locate_file(self, path: str) -> Path:
        """Somewhere on the path."""
        return Path(sys.path[-1]) / path


HOSTING = Hosting(limits=HostLimits(call_budget_s=PATIENCE_S, load_budget_s=PATIENCE_S))


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    points = []
    for name, source in (("hosted_one", SOURCE), ("hosted_two", ELSEWHERE)):
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        point = EntryPoint(name, name, ENTRY_POINT_GROUP)
        vars(point).update(dist=Distribution(name))
        points.append(point)
    return points


@pytest.fixture
def registry(points: list[EntryPoint]) -> Iterator[Registry]:
    found = load_registry(entry_points=lambda: points, hosting=HOSTING)
    yield found
    found.close()


def asked(answers: Answers, name: str, rows: Configurations = ROWS) -> Answer:
    return answers.answer(Question(profile=PROFILE, configurations=rows, terms=Terms(estimator=name)))


def rows_of(*workers: int) -> Configurations:
    return Configurations.of(len(workers), nodes=workers, workers=workers)


def test_a_fitted_model_is_assessed_and_asked_in_one_exchange(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, calls = Answers(registry), registry.estimators["plain"].calls
    first = asked(answers, "plain")
    sent: list[str] = []
    exchanged = Host._exchanged
    monkeypatch.setattr(Host, "_exchanged", lambda *given: (sent.append(given[2]), exchanged(*given))[1])
    second = asked(answers, "plain", rows_of(3, 4, 5))
    assert sent == ["assess"]
    assert (first.predictions.step_s[0], second.predictions.step_s.tolist()) == (1.0, [1.0] * 3)
    assert [calls.by_method()[method].calls for method in ("assess", "fit", "predict")] == [2, 1, 2]


@pytest.mark.parametrize("workers", [404, 666])
def test_what_goes_wrong_in_the_second_of_two_calls_is_told_of_that_one(registry: Registry, workers: int) -> None:
    answers = Answers(registry)
    asked(answers, "plain")
    with pytest.raises(PluginError) as raised:
        asked(answers, "plain", rows_of(workers))
    assert raised.value.metadata["method"] == "predict"
    assert asked(answers, "plain", rows_of(7)).predictions.step_s[0] == 1.0


def test_a_plugin_that_is_left_alone_is_tried_with_what_failed_and_is_back(registry: Registry, tmp_path: Path) -> None:
    loaded, answers = registry.estimators["plain"], Answers(registry)
    planned: list[Callable[[], None]] = []
    breaker = Breaker(later=lambda _, work: (planned.append(work), lambda: None)[1])
    object.__setattr__(loaded, "breaker", breaker)
    asked(answers, "plain")
    for _ in range(3):
        with pytest.raises(PluginError):
            asked(answers, "plain", rows_of(666))
    with pytest.raises(UnavailableError):
        asked(answers, "plain", rows_of(8))
    planned.pop()()
    assert not breaker.closed
    (tmp_path / "mended").touch()
    planned.pop()()
    assert breaker.closed
    assert asked(answers, "plain", rows_of(666)).predictions.step_s[0] == 1.0


def test_nothing_of_a_hosted_plugin_is_imported_here(registry: Registry) -> None:
    assert {loaded.mode for loaded in registry.estimators.values()} == {"process"}
    assert not {"hosted_one", "hosted_two"} & set(sys.modules)
    assert len({host.pid for host in registry.hosts}) == 2


@pytest.mark.parametrize(("name", "step_s"), [("plain", 1.0), ("built", 101.0), ("abroad", 101.0)])
def test_models_are_fitted_and_asked_where_they_live(registry: Registry, name: str, step_s: float) -> None:
    answer = asked(Answers(registry), name)
    np.testing.assert_array_equal(answer.predictions.step_s, step_s)


def test_another_registry_shares_the_hosts_of_what_did_not_change(registry: Registry, points: list[EntryPoint]) -> None:
    changed = Distribution("hosted_two")
    changed.version = "2.0"
    vars(points[1]).update(dist=changed)
    other = load_registry(entry_points=lambda: points, hosting=HOSTING, known=(registry,))
    kept, gone = registry.hosts
    try:
        assert kept in other.hosts
        assert gone not in other.hosts
        assert other.estimators["plain"] is registry.estimators["plain"]
        assert other.estimators["elsewhere"].distribution == "hosted_two 2.0"
        model = asked(Answers(registry), "plain")
        registry.close()
        registry.close()  # once more is nothing more
        np.testing.assert_array_equal(asked(Answers(other), "plain").predictions.step_s, 1.0 + model.predictions.step_s)
        with pytest.raises(UnavailableError):
            asked(Answers(registry), "elsewhere")
        # Models live in one process: those of the host that ended are not taken for another's.
        origins = [each.estimators["elsewhere"].origin for each in (registry, other)]
        assert len(set(origins)) == 2
    finally:
        other.close()
    with pytest.raises(UnavailableError):
        asked(Answers(other), "built")
    assert load_registry(entry_points=list, hosting=HOSTING, known=(other,)).hosts == ()


def kill(pid: int) -> None:
    gone = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select([gone], [], [], PATIENCE_S)[0]
    os.close(gone)


@pytest.mark.parametrize("method", ["assess", "fit", "predict"])
def test_a_call_whose_process_is_killed_is_asked_once_more(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    answers, killed, exchange = Answers(registry), list[int](), Host._exchanged

    def exchange_after_a_kill(host: Host, connection: Any, name: str, *rest: Any, **more: Any) -> Any:
        if name == method and not killed:
            assert host.pid is not None
            killed.append(host.pid)
            kill(host.pid)
        return exchange(host, connection, name, *rest, **more)

    monkeypatch.setattr(Host, "_exchanged", exchange_after_a_kill)
    np.testing.assert_array_equal(asked(answers, "plain", rows_of(3, 4)).predictions.step_s, 1.0)
    assert killed
    assert registry.hosts[0].pid not in killed


def test_a_model_is_fitted_anew_once_its_process_was_replaced(registry: Registry) -> None:
    answers = Answers(registry)
    asked(answers, "plain")
    pid = registry.hosts[0].pid
    assert pid is not None
    kill(pid)
    other = Configurations.of(1, nodes=7, workers=7)
    # Counted from the start again, as it is another process: it was fitted there.
    np.testing.assert_array_equal(asked(answers, "plain", other).predictions.step_s, 1.0)
    assert registry.hosts[0].pid != pid


def test_what_was_learned_outlives_the_process_and_is_not_read_here(registry: Registry) -> None:
    learned = learned_from(registry, (PROFILE, PROFILE))
    assert not learned.failures
    assert not isinstance(learned.priors["learns"].content, dict)
    answers = Answers(registry, priors=learned.priors)
    np.testing.assert_array_equal(asked(answers, "learns").predictions.step_s, 12.0)


def test_objects_that_nobody_holds_are_forgotten_there(registry: Registry) -> None:
    loaded = registry.estimators["plain"]
    context: Any = _Context()

    def fitted() -> Any:
        return call(loaded, loaded.record.estimator, "fit", PROFILE, context, check=lambda model: model)

    first = fitted()
    number, host = first.target, registry.hosts[0]
    del first
    gc.collect()
    second = fitted()
    second.target = number
    with pytest.raises(UnavailableError) as failure:
        call(loaded, second, "predict", ROWS, None, check=lambda answer: answer)
    assert failure.value.reason is Reason.ESTIMATOR_UNAVAILABLE
    assert host.pid is not None


def test_who_knows_what_all_hosts_bring_loads_no_other(points: list[EntryPoint], registry: Registry) -> None:
    known = {name: each for name, each in registry.listings.items() if name.startswith("hosted_two")}
    other = load_registry(entry_points=lambda: points, hosting=replace(HOSTING, listings=known))
    try:
        assert set(other.estimators) == {"elsewhere"}
        assert [host.pid for host in other.hosts] == [None]  # started when it is asked
    finally:
        other.close()


def test_what_is_still_loading_joins_later_and_takes_no_name(points: list[EntryPoint], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    late = f"import time\nfrom pathlib import Path\nwhile not Path({str(gate)!r}).exists():\n    time.sleep(0.01)\n"
    for name, named in (("late_one", "late"), ("late_two", "plain")):
        (tmp_path / f"{name}.py").write_text(late + SOURCE.replace('"plain"', repr(named)), encoding="utf-8")
        point = EntryPoint(name, name, ENTRY_POINT_GROUP)
        vars(point).update(dist=Distribution(name))
        points.append(point)
    first = load_registry(entry_points=lambda: points, hosting=replace(HOSTING, wait_s=0.0))
    try:
        assert first.arriving
        gate.touch()
        assert first.settled(PATIENCE_S)
        whole = arrived(first)
        assert not whole.arriving
        assert not whole.arrived
        first.close()  # what both have lives on
        assert asked(Answers(whole), "plain").predictions.step_s[0] > 0.0
        assert {problem.reason for problem in whole.problems} == {"PLUGIN_INVALID"}
        whole.close()
    finally:
        first.close()


def test_a_closed_host_is_not_started_again(registry: Registry) -> None:
    registry.close()
    with pytest.raises(PluginError) as failure:
        asked(Answers(registry), "plain")
    assert failure.value.reason is Reason.ESTIMATOR_UNAVAILABLE


class _Context:
    prior = None
    seed = 0

    @property
    def catalogue(self) -> Any:
        return Catalogue()
