"""Shipped stores and the example pass the cases that others' must pass, and a store that forgets does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from stores import POSTGRESQL, opener

from nodewise.conformance import Case, NonConformanceError, store_cases
from nodewise.conformance.stores import STORE_CHECKS
from nodewise.profiles.opening import open_store
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import Outcome, ProfileStore, WriteRequest

KINDS = ("sqlite", POSTGRESQL, "audit")


@pytest.fixture
def places(
    request: pytest.FixtureRequest, tmp_path: Path, database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Callable[[], ProfileStore]]:
    """Empty places of a kind."""
    if request.param == "audit":
        entry = EntryPoint("audit", "nodewise_example_audit:open_audit", "nodewise.stores")
        monkeypatch.setattr("nodewise.profiles.opening.entry_points", lambda group: EntryPoints([entry]))
        return lambda: lambda: open_store(f"audit:{tmp_path}/store.db")
    return lambda: opener(request.param, tmp_path, database)


def case_of(places: Callable[[], Callable[[], ProfileStore]], check: str) -> Case:
    (found,) = [case for case in store_cases(places) if case.check == check]
    return found


@pytest.mark.parametrize("places", KINDS, indirect=True)
@pytest.mark.parametrize("check", STORE_CHECKS)
def test_ours_conform(places: Callable[[], Callable[[], ProfileStore]], check: str) -> None:
    case_of(places, check).run()


@pytest.mark.parametrize("places", ["audit"], indirect=True)
def test_the_example_keeps_its_journal(places: Callable[[], Callable[[], ProfileStore]], tmp_path: Path) -> None:
    case_of(places, "every revision can be had").run()
    lines = (tmp_path / "store.db.journal").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["did"] for line in lines] == ["AppendRequest"] * 2 + ["RetractRequest"] * 2


class Forgetful(SqliteProfileStore):
    """Acknowledges the last of several requests without storing it."""

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        outcomes = super().apply(requests[:1])
        return [*outcomes, *outcomes * (len(requests) - 1)]


def test_one_that_forgets_is_told(tmp_path: Path) -> None:
    with pytest.raises(NonConformanceError, match="does not return the error"):
        case_of(lambda: lambda: Forgetful(tmp_path / "store.db"), "requests fail on their own").run()
