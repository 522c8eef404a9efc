"""What a server is made of, by its settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodewise.profiles.traces import stage_name
from nodewise.runtime.assembly import store_of
from nodewise.runtime.settings import Settings


@pytest.mark.parametrize(("durability", "synced"), [("process", False), ("power", True)])
@pytest.mark.parametrize("named", [False, True], ids=["beside the store", "named"])
def test_chunks_of_a_trace_survive_what_an_acknowledged_batch_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, durability: str, synced: bool, named: bool
) -> None:
    settings = Settings.model_validate(
        {
            "store": f"sqlite:{tmp_path / 'store.db'}",
            "traces": str(tmp_path / "named") if named else "",
            "durability": durability,
        }
    )
    store = store_of(settings)
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    store.traces.write(stage_name("uid", "session", "trace"), 0, 0, b"chunk")
    monkeypatch.undo()
    store.close()
    assert bool(calls) is synced
