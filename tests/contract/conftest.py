"""A store of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stores import KINDS, KINDS_ELSEWHERE, SHARED_KINDS, Opener, elsewhere, opener

from nodewise.profiles.store import ProfileStore


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, database: Callable[[], str]) -> Iterator[ProfileStore]:
    opened = opener(request.param, tmp_path, database)()
    yield opened
    opened.close()


@pytest.fixture(params=KINDS_ELSEWHERE)
def traced(
    request: pytest.FixtureRequest, tmp_path: Path, database: Callable[[], str], bucket: Callable[[], str]
) -> Iterator[ProfileStore]:
    """Of each kind, with traces in each kind of place."""
    kind, _, place = request.param.partition(" with ")
    opened = (elsewhere(kind, tmp_path, database, bucket()) if place else opener(kind, tmp_path, database))()
    yield opened
    opened.close()


@pytest.fixture(params=SHARED_KINDS)
def shared(request: pytest.FixtureRequest, tmp_path: Path, database: Callable[[], str]) -> Opener:
    return opener(request.param, tmp_path, database)
