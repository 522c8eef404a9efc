"""The one door to plugins: what passes it, what it counts, and whose Ctrl-C it is."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from estimators import record_of
from misbehaving import ANSWERED, RAISED, SECRET, Constant, misbehaving, raising
from serving import registry_with

from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.estimation.estimators.warm_up import warm_up
from nodewise.estimation.lessons.priors import learned_from
from nodewise.hosting.calls import ImpossibleAnswerError, PluginError, call, has, read
from nodewise.hosting.counts import Tally
from nodewise.hosting.interrupts import Interrupt, marked_interrupts
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import EstimatorRecord, LearningEstimator, PolicyRecord, Prior


class Telling:
    """Does what it is told."""

    def __init__(self, tell: Callable[..., Any] = lambda *values: values) -> None:
        self.tell = tell


def loaded() -> LoadedPlugin[EstimatorRecord]:
    return LoadedPlugin(record_of("told", Constant()), "tests 1.0", "inline")


def same(answer: Any) -> Any:
    return answer


def only_three(answer: Any) -> int:
    if answer != 3:
        raise ImpossibleAnswerError("it is not 3")
    return 3


def test_what_is_true_comes_back_as_the_check_made_it() -> None:
    assert call(loaded(), Telling(), "tell", 1, 2, check=same) == (1, 2)
    assert call(loaded(), Telling(lambda: 3), "tell", check=str) == "3"
    assert read(loaded(), Telling(), "tell", check=callable)
    assert not has(loaded(), Constant(), LearningEstimator, "learn")


@pytest.mark.parametrize("name", RAISED)
def test_whatever_is_raised_is_one_error_without_its_text(name: str, logs: list[Any]) -> None:
    with ThreadPoolExecutor(1) as threads:
        error = threads.submit(lambda: failed(loaded(), raising(RAISED[name]))).result()
    assert (error.reason, error.message) == (
        Reason.ESTIMATOR_FAILED,
        "estimator 'told' 1.0 of tests 1.0 failed in tell",
    )
    assert error.metadata == {"estimator": "told", "version": "1.0", "distribution": "tests 1.0", "method": "tell"}
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert [event["event"] for event in logs] == ["estimator_failed"]


def failed(plugin: LoadedPlugin[Any], tell: Callable[..., Any], check: Callable[[Any], Any] = same) -> PluginError:
    with pytest.raises(PluginError) as caught:
        call(plugin, Telling(tell), "tell", check=check)
    return caught.value


def test_an_answer_that_cannot_be_true_is_named(logs: list[Any]) -> None:
    error = failed(loaded(), lambda: 4, only_three)
    assert error.reason is Reason.ESTIMATOR_INVALID_RESULT
    assert error.metadata["problem"] == "it is not 3"
    assert error.message.endswith("returned an invalid answer from tell: it is not 3")
    unreadable = failed(loaded(), lambda: ANSWERED["mined"], lambda answer: answer.anything)
    assert (unreadable.reason, unreadable.metadata["problem"]) == (error.reason, "it cannot be read")
    assert {event["event"] for event in logs} == {"estimator_answer_impossible"}


def test_a_refusal_passes_and_one_of_a_class_of_its_own_is_told_as_ours() -> None:
    class OwnError(NodewiseError):
        pass

    refusal = NodewiseError.refused(Refusal(Reason.EVIDENCE_MISSING, "more", ("workload",)))
    own = OwnError(refusal.reason, refusal.message, refusal.metadata)
    for raised in (refusal, own):
        with pytest.raises(NodewiseError) as caught:
            call(loaded(), Telling(raising(lambda raised=raised: raised)), "tell", check=same)  # type: ignore[misc]
        assert type(caught.value) is NodewiseError
        assert (caught.value.reason, caught.value.message) == (refusal.reason, "more")


def test_a_policy_refuses_nothing_but_an_end_of_time_passes() -> None:
    policy = PolicyRecord(name="p", version="1", description="", policy=Telling())  # type: ignore[arg-type]
    plugin = LoadedPlugin(policy, "tests 1.0", "inline")
    refused = failed(plugin, raising(lambda: NodewiseError(Reason.EVIDENCE_MISSING, "more")))
    assert (refused.reason, refused.metadata["policy"]) == (Reason.POLICY_FAILED, "p")
    with pytest.raises(NodewiseError) as late:
        call(plugin, Telling(raising(lambda: NodewiseError(Reason.DEADLINE_EXCEEDED, "late"))), "tell", check=same)
    assert late.value.reason is Reason.DEADLINE_EXCEEDED


def test_calls_are_counted_by_method_whatever_thread_they_come_from() -> None:
    plugin = loaded()

    def often() -> None:
        for _ in range(500):
            call(plugin, Telling(), "tell", check=same)

    threads = [threading.Thread(target=often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed(plugin, lambda: 4, only_three)
    failed(plugin, raising(RAISED["an-error"]))
    read(plugin, Telling(), "tell", check=same, method="other")
    found = plugin.calls.by_method()
    assert {name: (tally.calls, tally.failures) for name, tally in found.items()} == {
        "tell": (2002, 2),
        "other": (1, 0),
    }
    assert found["tell"].seconds > 0.0
    assert loaded().calls.by_method().get("tell", Tally()) == Tally()


@pytest.mark.usefixtures("interruptible")
def test_the_operators_interrupt_passes_and_a_plugins_does_not(logs: list[Any]) -> None:
    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(60)

    with marked_interrupts():
        with pytest.raises(Interrupt):
            call(loaded(), Telling(interrupted), "tell", check=same)
        assert failed(loaded(), raising(RAISED["interrupt"])).reason is Reason.ESTIMATOR_FAILED
    # Without, the two look alike: it passes.
    with pytest.raises(KeyboardInterrupt):
        call(loaded(), Telling(raising(RAISED["interrupt"])), "tell", check=same)


class Learns(Constant):
    """Learns, and warms up."""

    def learn(self, corpus: object) -> Any:
        return Prior(prior_id="p", estimator="learns", sources=(), content=None)

    def warm_up(self) -> None:
        pass


def in_a_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """Where an interrupt cannot be the operator's."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work, *arguments).result()


@pytest.mark.parametrize("name", [*RAISED, *ANSWERED])
def test_an_estimator_that_cannot_learn_is_left_out_with_why(name: str) -> None:
    behave = raising(RAISED[name]) if name in RAISED else lambda *_: ANSWERED[name]
    registry = registry_with((record_of("bad", misbehaving(Learns(), "learn", behave)), record_of("good", Learns())))
    found = in_a_thread(learned_from, registry, ())
    assert found.failures["bad"].reason == f"ESTIMATOR_{'FAILED' if name in RAISED else 'INVALID_RESULT'}"
    assert SECRET[:8] not in found.failures["bad"].message
    assert "bad" not in found.registry.estimators
    assert "good" in found.priors


@pytest.mark.parametrize("name", RAISED)
def test_an_estimator_that_cannot_warm_up_keeps_no_other_from_it(name: str, logs: list[Any]) -> None:
    warmed = threading.Event()
    good = misbehaving(Learns(), "warm_up", lambda _: warmed.set())
    bad = misbehaving(Learns(), "warm_up", raising(RAISED[name]))
    in_a_thread(
        warm_up,
        {
            name: LoadedPlugin(record_of(name, each), "tests 1.0", "inline")
            for name, each in (("bad", bad), ("good", good))
        },
    )
    assert warmed.is_set()
    assert [event["estimator"] for event in logs if event["event"] == "warm_up_failed"] == ["bad"]
