"""A pytest plugin of tools/check_change.py: stops when the time is over, and writes down how long each file took.

The environment says when (NODEWISE_CHECK_UNTIL, seconds of the monotonic clock) and where to (NODEWISE_CHECK_RECORD, a
folder): `seconds.json` has seconds by path and is renewed, `outcome.json` says which files were cut and how many tests
failed.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["pytest_make_collect_report", "pytest_runtest_protocol", "pytest_sessionfinish"]

_spent_s: dict[str, float] = defaultdict(float)
_ran: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Time the import of a file."""
    started = time.monotonic()
    report = yield
    if isinstance(collector, pytest.Module):
        _spent_s[_path(collector)] += time.monotonic() - started
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Time a test, and let none begin after the end."""
    started = time.monotonic()
    report = yield
    ended = time.monotonic()
    _spent_s[_path(item)] += ended - started
    _ran[_path(item)] += 1
    if ended > float(os.environ["NODEWISE_CHECK_UNTIL"]):
        item.session.shouldstop = "the time is over"
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was learned; of files that were cut, seconds are the least that they need."""
    record = Path(os.environ["NODEWISE_CHECK_RECORD"])
    times = record / "seconds.json"
    known = json.loads(times.read_text(encoding="utf-8")) if times.is_file() else {}
    wanted = Counter(_path(item) for item in session.items)
    cut = sorted(path for path, count in wanted.items() if _ran[path] < count)
    for path, spent_s in _spent_s.items():
        known[path] = round(max(spent_s, known.get(path, 0.0)) if path in cut else spent_s, 2)
    times.write_text(json.dumps(dict(sorted(known.items())), indent=0), encoding="utf-8")
    outcome = {"cut": cut, "failed": session.testsfailed}
    (record / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")


def _path(node: pytest.Item | pytest.Collector) -> str:
    return node.path.relative_to(node.config.rootpath).as_posix()
