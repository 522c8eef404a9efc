"""Policies that misbehave, and memory that comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from schedules import TABLE, Clock, curves_of, job, state_of

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import Allocation, ClusterState, Grant, Shares
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import PolicyRecord
from nodewise.scheduling.memory import Memory
from nodewise.scheduling.verdict import MAX_MEMORY_BYTES, Verdict, verdict_of


class Answering:
    """A policy that answers with whatever it is told."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def decide(self, state: object, curves: object, budget: object) -> Any:
        return self._answer()


STATE = state_of([job("a", queue="x", server_devices=1), job("b")], (6, 2), {"x": 4})
CURVES = curves_of([(10.0, 20.0, 0.0, 40.0, 50.0), {0: TABLE[:4], 1: TABLE[:2]}])


def ask(answer: Callable[[], Any], state: ClusterState = STATE) -> Verdict:
    record = PolicyRecord(name="p", version="1", description="", policy=Answering(answer))
    return verdict_of(LoadedPlugin(record, "tests 1.0", "inline"), state, CURVES, Clock())


def grants(*wanted: tuple[Any, Any]) -> Allocation:
    return Allocation(grants=tuple(Grant(devices, pool) for devices, pool in wanted))


def test_what_a_policy_raises_stays_in_the_log(logs: list[Any]) -> None:
    def fail() -> None:
        raise RuntimeError("secret of the plugin")

    with pytest.raises(NodewiseError) as caught:
        ask(fail)
    assert caught.value.reason == Reason.POLICY_FAILED
    assert caught.value.message == "policy 'p' 1 of tests 1.0 failed in decide"
    assert caught.value.__cause__ is None
    assert (logs[0]["event"], logs[0]["policy"]) == ("policy_failed", "p")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "must return an Allocation or Shares, found NoneType"),
        (Allocation(grants=()), "grants must have one entry per job, 2 in all"),
        (grants((0, -1)), "grants must have one entry per job"),
        (Allocation(grants=(Grant(0), None)), "the grant of 'b' must be a Grant"),  # type: ignore[arg-type]
        (grants((1.5, 0), (0, -1)), "the grant of 'a' must be a Grant with integers"),
        (grants((-1, 0), (0, -1)), "granted 'a' -1 devices"),
        (grants((3, 0), (0, -1)), "granted 'a' 3 devices in pool 0, which is not on its curve"),
        (grants((1, 1), (0, -1)), "in pool 1, which is not on its curve"),
        (grants((1, 7), (0, -1)), "in pool 7, which is not on its curve"),
        (grants((0, -1), (5, 0)), "which is not on its curve"),
        (grants((2, 0), (4, 0)), "granted more devices of pool 'p0' than it has free"),
        (grants((4, 0), (0, -1)), "granted queue 'x' more devices than its quota"),
        (Allocation(grants=(Grant(0), Grant(0)), memory=b"x" * (1024 * 1024 + 1)), "memory must be at most 1,048,576"),
        (Allocation(grants=(Grant(0), Grant(0)), memory="x"), "memory must be at most"),  # type: ignore[arg-type]
        (Shares(shares=np.zeros((1, 2))), "shares must be a float array of shape (2, 2)"),
        (Shares(shares=np.zeros((2, 2), dtype=int)), "shares must be a float array"),  # type: ignore[arg-type]
        (Shares(shares=np.full((2, 2), np.nan)), "shares must be finite and 0 or more"),
        (Shares(shares=np.full((2, 2), -0.1)), "shares must be finite and 0 or more"),
        (Shares(shares=np.full((2, 2), 0.6)), "shares of one job must sum to at most 1"),
        (Shares(shares=np.zeros((2, 2)), shuffle_seed="a"), "shuffle_seed must be an integer or None"),  # type: ignore[arg-type]
        (Allocation(grants=(Grant(0), Grant(0)), memory=bytes(MAX_MEMORY_BYTES + 1)), "memory must be at most "),
    ],
)
def test_an_impossible_answer_is_refused(answer: object, words: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        ask(lambda: answer)
    assert caught.value.reason == Reason.POLICY_INVALID_RESULT
    assert words in caught.value.message


def test_a_feasible_answer_passes_with_its_memory() -> None:
    long = "x" * 500
    answer = Allocation(
        grants=(Grant(2, 0, long), Grant(np.int64(2), 1)),
        complete=False,
        memory=b"m",  # type: ignore[arg-type]
    )
    found = ask(lambda: answer)
    assert found == Verdict(grants=(Grant(2, 0, "x" * 200), Grant(2, 1)), complete=False, memory=b"m")


@pytest.mark.parametrize(
    "shares", [Shares(shares=np.zeros((2, 2)), round_s=0.0), Shares(shares=np.zeros((2, 2)), hold_s=float("nan"))]
)
def test_rounds_without_length_are_refused(shares: Shares) -> None:
    with pytest.raises(NodewiseError) as caught:
        ask(lambda: shares)
    assert caught.value.reason == Reason.POLICY_INVALID_RESULT


def test_shares_become_devices_and_the_policys_memory_goes_round() -> None:
    found = ask(lambda: Shares(shares=np.array([[0.0, 0.0], [0.2, 0.8]]), memory=b"m"))
    assert [(grant.devices, grant.pool) for grant in found.grants] == [(1, 0), (1, 0)]
    assert Memory.from_bytes(found.memory).policy == b"m"


def test_shares_that_were_made_in_a_hurry_do_not_hold() -> None:
    answers = []

    def hurried() -> Shares:
        answers.append(len(answers))
        return Shares(shares=np.array([[0.5, 0.0], [0.2, 0.8]]), complete=False)

    first = ask(hurried)
    assert not first.complete
    ask(hurried, replace(STATE, memory=first.memory, now_s=1.0))
    assert len(answers) == 2


def test_the_policy_is_not_asked_again_while_its_shares_hold() -> None:
    answers = []

    def answer() -> Shares:
        answers.append(len(answers))
        return Shares(shares=np.array([[0.5, 0.0], [0.2, 0.8]]), hold_s=100.0)

    first = ask(answer)
    again = ask(answer, replace(STATE, memory=first.memory, now_s=1000.0))
    assert len(answers) == 1
    assert again.complete
    ask(answer, replace(STATE, memory=first.memory, now_s=1000.0, pools=STATE.pools[::-1]))
    assert len(answers) == 2


@pytest.mark.parametrize("cut", [20, 60, -1])
def test_damaged_memory_is_the_callers_fault(cut: int) -> None:
    whole = ask(lambda: Shares(shares=np.array([[0.5, 0.0], [0.2, 0.8]]))).memory
    with pytest.raises(NodewiseError) as caught:
        ask(lambda: None, replace(STATE, memory=whole[:cut]))
    assert caught.value.reason == Reason.INVALID_FIELD
    assert "policy_state" in caught.value.message or "policy_state" in str(caught.value.violations)
