"""Stores of every kind, for tests of what all of them keep to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.opening import open_store, open_traces
from nodewise.profiles.store import Durability, ProfileStore, StoreOptions
from nodewise.profiles.traces import TraceStore

__all__ = ["KINDS", "KINDS_ELSEWHERE", "POSTGRESQL", "SHARED_KINDS", "Opener", "elsewhere", "opener", "refused"]

Opener = Callable[[], ProfileStore]
POSTGRESQL: Final = pytest.param("postgresql", marks=pytest.mark.stores)
KINDS = ("memory", "sqlite", "sqlite-power", POSTGRESQL)
SHARED_KINDS = ("sqlite", POSTGRESQL)
"""Stores that several processes can open at once."""
KINDS_ELSEWHERE = (*KINDS, pytest.param("sqlite with s3", marks=pytest.mark.stores))
"""Stores, and one whose traces are in a bucket."""


def opener(kind: str, directory: Path, database: Callable[[], str], **options: Any) -> Opener:
    """Opens stores of a kind in a directory, or in an empty database, whose URL is asked for where it is needed."""
    if kind == "memory":
        return lambda: open_store("memory:", StoreOptions(**options))
    if kind == "postgresql":
        url = database()
        return lambda: open_store(url, StoreOptions(traces=TraceStore(directory / "traces"), **options))
    durability: Durability = "power" if kind == "sqlite-power" else "process"
    return lambda: open_store(f"sqlite:{directory / 'store.db'}", StoreOptions(durability=durability, **options))


def elsewhere(kind: str, directory: Path, database: Callable[[], str], bucket: str) -> Opener:
    """Opens stores of a kind with their traces in a bucket; each is another machine, with a cache of its own."""
    url = {"memory": lambda: "memory:", "sqlite": lambda: f"sqlite:{directory / 'store.db'}", "postgresql": database}[
        kind
    ]()
    caches = (directory / f"cache-{number}" for number in count())
    return lambda: open_store(url, StoreOptions(traces=open_traces(bucket, next(caches))))


def refused(reason: Reason, call: Callable[..., object], *arguments: object) -> NodewiseError:
    """The error of a call that must fail, for this reason."""
    with pytest.raises(NodewiseError) as caught:
        call(*arguments)
    assert caught.value.reason == reason
    return caught.value
