"""Work in processes of this machine: outcomes, faults, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
from pieces_of_work import lasting, squared, troubled

from nodewise.runtime.executors.local import LocalExecutor
from nodewise.runtime.executors.ray_engine import RayExecutor, RayMissingError


def test_every_unit_is_done_once_in_other_processes() -> None:
    outcomes = list(LocalExecutor(2).run(squared, 3, [1, 2, 3, 4, 5]))
    found = {outcome.index: outcome.result for outcome in outcomes}
    assert [found[index][0] for index in range(5) if found[index]] == [3, 12, 27, 48, 75]  # type: ignore[index]
    processes = {result[1] for result in found.values() if result is not None}
    assert os.getpid() not in processes
    assert len(processes) <= 2
    assert not multiprocessing.active_children()


def test_a_unit_that_raises_refuses_or_dies_costs_no_other() -> None:
    units = ["a", "raises", "b", "dies", "refuses", "c"]
    found = {outcome.index: outcome for outcome in LocalExecutor(1).run(troubled, "-", units)}
    assert [found[index].result for index in range(6)] == ["-a", None, "-b", None, None, "-c"]
    assert found[1].fault == "ZeroDivisionError: no such number"
    assert found[3].fault == "its process died"
    assert found[4].fault == "INVALID_FIELD: policy: must be known"


def test_leaving_early_ends_what_runs(tmp_path: Path) -> None:
    outcomes = LocalExecutor(2).run(lasting, str(tmp_path), [0, 1, 2])
    with pytest.raises(GeneratorExit):  # as an interrupt while it waits
        outcomes.throw(GeneratorExit)
    assert not multiprocessing.active_children()


def test_nothing_to_do_starts_nothing() -> None:
    assert list(LocalExecutor(2).run(squared, 3, [])) == []


def test_without_ray_the_engine_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(RayMissingError, match=r"pip install 'nodewise\[ray\]'"):
        next(RayExecutor(2).run(squared, 3, [1]))
