"""Plugins that do one thing wrong are found out, by the check that is meant to and in words that say what."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from planted import PLANTED, Planted, Plugin
from trace_files import files

from nodewise.conformance import NonConformanceError, cases
from nodewise.conformance.diagnosers import DIAGNOSER_CHECKS
from nodewise.conformance.estimators import ESTIMATOR_CHECKS
from nodewise.conformance.policies import POLICY_CHECKS
from nodewise.conformance.readers import READER_CHECKS
from nodewise.conformance.sharing import SHARING_CHECKS


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_each_fault_is_found_by_its_check(planted: Planted) -> None:
    (case,) = [case for case in cases(planted.plugin, files()) if case.check == planted.check]
    with pytest.raises(NonConformanceError) as found:
        case.run()
    assert planted.told in str(found.value)


def test_every_check_finds_some_fault() -> None:
    checks = {
        "estimator": ESTIMATOR_CHECKS,
        "policy": POLICY_CHECKS,
        "trace_reader": READER_CHECKS,
        "diagnoser": DIAGNOSER_CHECKS,
        "sharing_model": SHARING_CHECKS,
    }
    known = {(kind, check) for kind, found in checks.items() for check in found}
    assert {(planted.kind, planted.check) for planted in PLANTED} == known


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        (Plugin(SimpleNamespace(name="x")), "registers nothing"),
        (Plugin(None), "registers nothing"),
    ],
)
def test_what_registers_nothing_has_one_case_that_fails(plugin: Plugin, told: str) -> None:
    (case,) = cases(plugin)
    with pytest.raises(NonConformanceError, match=told):
        case.run()


def test_a_record_that_the_server_would_leave_out() -> None:
    from dataclasses import replace

    from nodewise_example_amdahl import nodewise_estimators

    (record,) = nodewise_estimators()
    (case,) = cases(Plugin(replace(record, name="Not A Name")))
    with pytest.raises(NonConformanceError, match="the server would not load it: name must be"):
        case.run()
