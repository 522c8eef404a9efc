"""Everything that is shipped, and every example, holds what is asked of its kind."""

from __future__ import annotations

import importlib

import pytest
from trace_files import files

from nodewise.conformance import Case, cases, installed_cases

EXAMPLES = (
    "nodewise_example_amdahl",
    "nodewise_example_busy",
    "nodewise_example_rotation",
    "nodewise_example_steplog",
    "nodewise_baselines.plugin",
)


@pytest.mark.parametrize("case", installed_cases(["nodewise"], files()), ids=str)
def test_shipped_plugins_conform(case: Case) -> None:
    case.run()


@pytest.mark.parametrize(
    "case", [case for name in EXAMPLES for case in cases(importlib.import_module(name), files())], ids=str
)
def test_examples_conform(case: Case) -> None:
    case.run()
