from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from estimators import Fake, record_of

from nodewise.hosting.registry import MOST_RECORDS, PluginConflictError, PluginProblem, Registry, load_registry
from nodewise.plugin import EstimatorRecord, PolicyParameter, PolicyRecord, hookimpl


class Policy:
    def decide(self, state: object, curves: object, budget: object) -> None: ...


class Distribution:
    """What an entry point needs to know of its own."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version


class Point:
    """An entry point of a distribution that need not be installed."""

    def __init__(self, name: str, plugin: Any, dist: str = "third-party", version: str = "2.0") -> None:
        self.name, self.value = name, f"{name}:plugin"
        self.dist = Distribution(dist, version)
        self._plugin = plugin

    def load(self) -> Any:
        return (
            self._plugin() if callable(self._plugin) and not isinstance(self._plugin, SimpleNamespace) else self._plugin
        )


def estimators(*records: Any) -> SimpleNamespace:
    @hookimpl
    def nodewise_estimators() -> list[Any]:
        return list(records)

    return SimpleNamespace(nodewise_estimators=nodewise_estimators)


def brings(name: str, dist: str = "third-party", entry_point: str = "") -> Point:
    return Point(entry_point or name, estimators(record_of(name, Fake())), dist)


def load(*points: Point, **options: Any) -> Registry:
    return load_registry(entry_points=cast("Callable[[], Any]", lambda: points), **options)


def only_problem(registry: Registry) -> PluginProblem:
    (problem,) = registry.problems
    return problem


def raises(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def test_shipped_plugins_run_inline_and_others_in_threads() -> None:
    registry = load(brings("zeta"), brings("alpha", dist="nodewise"))
    assert list(registry.estimators) == ["alpha", "zeta"]
    assert registry.estimators["alpha"].mode == "inline"
    assert registry.estimators["zeta"].mode == "thread"
    assert registry.estimators["zeta"].distribution == "third-party 2.0"
    assert registry.problems == ()


def test_a_snapshot_is_immutable() -> None:
    registry = load(brings("alpha"))
    with pytest.raises(TypeError):
        registry.estimators["beta"] = registry.estimators["alpha"]  # type: ignore[index]


@pytest.mark.parametrize("error", [ImportError("no module"), SystemExit(3), ValueError("x"), RecursionError()])
def test_a_plugin_that_fails_to_load_is_left_out(error: BaseException) -> None:
    registry = load(Point("bad", raises(error)), brings("good"))
    assert list(registry.estimators) == ["good"]
    problem = only_problem(registry)
    assert (problem.name, problem.kind, problem.reason) == ("bad", "plugin", "PLUGIN_BROKEN")
    assert problem.distribution == "third-party 2.0"
    assert problem.message == f"loading bad:plugin raised {type(error).__name__}"


@pytest.mark.usefixtures("interruptible")
def test_the_operator_can_interrupt_loading() -> None:
    with pytest.raises(KeyboardInterrupt):
        load(Point("bad", raises(KeyboardInterrupt())))

    @hookimpl
    def nodewise_estimators() -> list[EstimatorRecord]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(Point("bad", SimpleNamespace(nodewise_estimators=nodewise_estimators)))


def test_an_interrupt_that_is_not_the_operators_leaves_its_plugin_out() -> None:
    with ThreadPoolExecutor(1) as threads:
        registry = threads.submit(load, Point("bad", raises(KeyboardInterrupt())), brings("good")).result()
    assert list(registry.estimators) == ["good"]
    assert only_problem(registry).reason == "PLUGIN_BROKEN"


def test_a_record_that_cannot_be_read_leaves_the_others() -> None:
    class Mined(EstimatorRecord):
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit("secret")

    good = record_of("good", Fake())

    @hookimpl
    def nodewise_estimators() -> list[EstimatorRecord]:
        return [Mined.__new__(Mined), good]

    registry = load(Point("half", SimpleNamespace(nodewise_estimators=nodewise_estimators)))
    assert list(registry.estimators) == ["good"]
    problem = only_problem(registry)
    assert (problem.kind, problem.reason) == ("estimator", "PLUGIN_BROKEN")
    assert problem.message == "a record of nodewise_estimators raised SystemExit"


@pytest.mark.parametrize(
    "parameters",
    [
        ("words",),
        (PolicyParameter(name="x", description="", default=2.0, minimum=0.0, maximum=1.0),),
        (PolicyParameter(name="", description="", default=0.0, minimum=0.0, maximum=1.0),),
        (PolicyParameter(name="x", description="", default=float("nan"), minimum=0.0, maximum=1.0),),
    ],
)
def test_a_policy_whose_parameters_cannot_be_listed_is_left_out(parameters: Any) -> None:
    @hookimpl
    def nodewise_policies() -> list[PolicyRecord]:
        policy = cast("Any", Policy())
        return [PolicyRecord(name="fair", version="1", description="", policy=policy, parameters=parameters)]

    problem = only_problem(load(Point("half", SimpleNamespace(nodewise_policies=nodewise_policies))))
    assert (problem.name, problem.reason) == ("fair", "PLUGIN_INVALID")
    assert "parameters" in problem.message


def test_a_misspelled_hook_is_named() -> None:
    @hookimpl
    def nodewise_estimator() -> list[EstimatorRecord]:
        return []

    problem = only_problem(load(Point("bad", SimpleNamespace(nodewise_estimator=nodewise_estimator)), brings("good")))
    assert (problem.kind, problem.reason) == ("plugin", "PLUGIN_INVALID")
    assert "nodewise_estimator" in problem.message


def test_a_hook_with_arguments_that_it_is_not_given_is_named() -> None:
    @hookimpl
    def nodewise_estimators(settings: object) -> list[EstimatorRecord]:
        return []

    problem = only_problem(load(Point("bad", SimpleNamespace(nodewise_estimators=nodewise_estimators))))
    assert problem.reason == "PLUGIN_INVALID"
    assert "settings" in problem.message


@pytest.mark.parametrize("error", [SystemExit(), RuntimeError("secret")])
def test_a_hook_that_raises_leaves_the_plugins_other_hooks(error: BaseException) -> None:
    @hookimpl
    def nodewise_estimators() -> list[EstimatorRecord]:
        raise error

    @hookimpl
    def nodewise_policies() -> list[PolicyRecord]:
        return [PolicyRecord(name="fair", version="1", description="", policy=cast("Any", Policy()))]

    registry = load(
        Point("half", SimpleNamespace(nodewise_estimators=nodewise_estimators, nodewise_policies=nodewise_policies))
    )
    assert list(registry.policies) == ["fair"]
    problem = only_problem(registry)
    assert (problem.kind, problem.reason) == ("estimator", "PLUGIN_BROKEN")
    assert problem.message == f"nodewise_estimators raised {type(error).__name__}"


def test_a_hook_that_returns_no_records_at_all_is_broken() -> None:
    @hookimpl
    def nodewise_estimators() -> Any:
        return record_of("single", Fake())

    problem = only_problem(load(Point("bad", SimpleNamespace(nodewise_estimators=nodewise_estimators))))
    assert problem.reason == "PLUGIN_BROKEN"


def changed(**values: Any) -> EstimatorRecord:
    stated: dict[str, Any] = {"name": "bad", "version": "1", "description": "", "estimator": Fake()}
    return EstimatorRecord(**(stated | values))


@pytest.mark.parametrize(
    ("record", "reason", "says"),
    [
        ("no record", "PLUGIN_INVALID", "expected EstimatorRecord, found str"),
        (
            PolicyRecord(name="p", version="1", description="", policy=cast("Any", Policy())),
            "PLUGIN_INVALID",
            "expected EstimatorRecord, found PolicyRecord",
        ),
        (changed(name="Upper"), "PLUGIN_INVALID", "name must be"),
        (changed(name=""), "PLUGIN_INVALID", "name must be"),
        (changed(name="a b"), "PLUGIN_INVALID", "name must be"),
        (changed(name="a" * 64), "PLUGIN_INVALID", "name must be"),
        (changed(name="auto"), "PLUGIN_INVALID", "not auto or all"),
        (changed(name="all"), "PLUGIN_INVALID", "not auto or all"),
        (changed(name=7), "PLUGIN_INVALID", "name must be"),
        (changed(version=""), "PLUGIN_INVALID", "version must be"),
        (changed(version=1.0), "PLUGIN_INVALID", "version must be"),
        (changed(description=None), "PLUGIN_INVALID", "description a string"),
        (changed(estimator=object()), "PLUGIN_INVALID", "does not have the methods of Estimator"),
        (changed(estimator=Fake), "PLUGIN_INVALID", "register an instance"),
        (changed(plugin_api="one"), "PLUGIN_INVALID", "not a version range"),
        (changed(plugin_api=None), "PLUGIN_INVALID", "not a version range"),
        (changed(plugin_api=">=2"), "PLUGIN_API_MISMATCH", "supports plugin API >=2, this server has 1.0"),
        (changed(plugin_api="<1.0"), "PLUGIN_API_MISMATCH", "this server has 1.0"),
    ],
)
def test_a_record_that_cannot_be_used_is_left_out_alone(record: Any, reason: str, says: str) -> None:
    registry = load(Point("mixed", estimators(record, record_of("good", Fake()))))
    assert list(registry.estimators) == ["good"]
    problem = only_problem(registry)
    assert (problem.kind, problem.reason) == ("estimator", reason)
    assert says in problem.message


@pytest.mark.parametrize("others", [("a-party", "b-party"), ("one-party", "one-party")])
def test_a_duplicate_name_stops_the_start_and_names_both(others: tuple[str, str]) -> None:
    first, second = others
    with pytest.raises(PluginConflictError) as caught:
        load(brings("same", first, "x"), brings("same", second, "y"))
    assert f"estimator 'same' is provided by both {first} 2.0 and {second} 2.0" in str(caught.value)


def test_a_claim_to_a_shipped_name_is_left_out_and_listed() -> None:
    registry = load(brings("same", "a-party", "x"), brings("same", "nodewise", "y"), brings("own", "b-party"))
    assert registry.estimators["same"].distribution == "nodewise 2.0"
    assert list(registry.estimators) == ["own", "same"]
    problem = only_problem(registry)
    assert (problem.name, problem.distribution, problem.kind) == ("same", "a-party 2.0", "estimator")
    assert "another distribution provides the same name" in problem.message


def test_one_distribution_brings_no_more_estimators_than_fit() -> None:
    many = [record_of(f"e{number:05d}", Fake()) for number in range(10_000)]
    registry = load(Point("many", estimators(*many)), brings("other", "another-party"))
    assert list(registry.estimators) == [*(f"e{number:05d}" for number in range(MOST_RECORDS)), "other"]
    problem = only_problem(registry)
    assert (problem.name, problem.kind, problem.reason) == (f"e{MOST_RECORDS:05d}", "estimator", "PLUGIN_INVALID")
    assert f"may bring {MOST_RECORDS} of this kind; {10_000 - MOST_RECORDS} more" in problem.message
    shipped = load(Point("many", estimators(*many[: 2 * MOST_RECORDS]), "nodewise"))
    assert len(shipped.estimators) == 2 * MOST_RECORDS


def test_kinds_have_their_own_names() -> None:
    @hookimpl
    def nodewise_policies() -> list[PolicyRecord]:
        return [PolicyRecord(name="same", version="1", description="", policy=cast("Any", Policy()))]

    registry = load(brings("same"), Point("other", SimpleNamespace(nodewise_policies=nodewise_policies)))
    assert list(registry.estimators) == list(registry.policies) == ["same"]


@pytest.mark.parametrize(
    ("allowed", "loaded"),
    [
        (None, ["own", "shipped", "theirs"]),
        ((), ["shipped"]),
        (("party-a",), ["own", "shipped"]),
        (("Party_A",), ["own", "shipped"]),
        (("theirs-point",), ["shipped", "theirs"]),
        (("absent",), ["shipped"]),
    ],
)
def test_the_allow_list(allowed: tuple[str, ...] | None, loaded: list[str]) -> None:
    points = (brings("shipped", "nodewise"), brings("own", "party-a"), brings("theirs", "party-b", "theirs-point"))
    registry = load(*points, allowed=allowed)
    assert list(registry.estimators) == loaded
    assert registry.problems == ()


def test_safe_mode_outranks_the_allow_list_and_loads_nothing_else() -> None:
    bad = Point("bad", raises(AssertionError("loaded")), "party-a")
    registry = load(brings("shipped", "nodewise"), bad, safe_mode=True, allowed=("party-a",))
    assert list(registry.estimators) == ["shipped"]
    assert registry.problems == ()


def test_an_entry_point_without_a_distribution_is_not_shipped() -> None:
    point = brings("orphan")
    point.dist = None  # type: ignore[assignment]
    loaded = load(point).estimators["orphan"]
    assert (loaded.distribution, loaded.mode) == ("(unknown)", "thread")


def test_the_installed_plugins_load_without_a_problem() -> None:
    registry = load_registry(safe_mode=True)
    assert registry.problems == ()
    assert {"fifo", "equal-share"} <= set(registry.policies)
