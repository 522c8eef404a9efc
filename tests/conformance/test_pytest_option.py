"""`pytest --nodewise-conformance NAME`: the suite where there is no test file, beside those that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

EVIDENCE = """
from nodewise.conformance import Evidence, File
from nodewise.plugin import TraceSource

def pytest_nodewise_evidence():
    content = b'{"traceEvents": [{"ph": "X", "name": "a", "pid": 0, "tid": 0, "ts": 1, "dur": 2}]}'
    return Evidence(files=(File(name="anyone's.json", content=content, format="chrome"),))
"""


@pytest.fixture
def asked(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


@pytest.mark.long
def test_a_distribution_a_plugin_or_a_record(asked: pytest.Pytester) -> None:
    found = asked.runpytest_subprocess("-v", "--nodewise-conformance", "fifo", "--nodewise-conformance", "scaling")
    found.stdout.fnmatch_lines(["*policy fifo: feasibility PASSED*", "*estimator scaling: purity PASSED*"])
    assert found.ret == 0


@pytest.mark.long
def test_evidence_of_the_project(asked: pytest.Pytester) -> None:
    without = asked.runpytest_subprocess("--nodewise-conformance", "chrome")
    without.stdout.fnmatch_lines(["*the reader recognises no file; pass others as evidence*"])
    asked.makeconftest(EVIDENCE)
    assert asked.runpytest_subprocess("--nodewise-conformance", "chrome").ret == 0


@pytest.mark.long
def test_tests_that_stand_there_run_too_if_they_are_named(asked: pytest.Pytester) -> None:
    path = Path(asked.makepyfile("def test_own(): pass"))
    found = asked.runpytest_subprocess("-v", "--nodewise-conformance", "fifo", path.name)
    found.stdout.fnmatch_lines(["*policy fifo: gives PASSED*", "*test_own PASSED*"])


@pytest.mark.long
def test_a_name_that_nothing_has(asked: pytest.Pytester) -> None:
    found = asked.runpytest_subprocess("--nodewise-conformance", "nobody")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    found.stderr.fnmatch_lines(["*no plugin, distribution or record is named 'nobody'; installed plugins: *policies*"])


@pytest.mark.long
def test_without_the_option_nothing_of_the_suite_is_imported(asked: pytest.Pytester) -> None:
    asked.makepyfile("import sys\ndef test_own(): assert 'nodewise.conformance.cases' not in sys.modules")
    assert asked.runpytest_subprocess().ret == 0
