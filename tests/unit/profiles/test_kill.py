"""A writer process that is killed: nothing it acknowledged is lost, nothing is stored twice."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from profile_batches import speeds

from nodewise.profiles.opening import open_store

WRITER = """
import sys
import numpy as np
from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Observations
from nodewise.profiles.batches import Batch, TraceChunk
from nodewise.profiles.opening import open_store
from nodewise.profiles.writer import StoreWriter

store = open_store(sys.argv[1])
writer = StoreWriter(store)
durable = store.open_session("job", "s").durable_sequence_number
print("durable", durable, flush=True)
waiting = []
for number in range(durable + 1, 100_000):
    rows = Observations.of(Configurations.of(3, workers=1), np.full(3, float(number)))
    piece = TraceChunk(trace_id=str(number), data=b"%d" % number, last=True, format="f", world_size=1)
    chunks = (piece,) if number % 10 == 0 else ()
    batch = Batch(sequence_number=number, observations=rows, trace_chunks=chunks, commit=number % 5 == 0)
    waiting.append(writer.append("job", "s", [batch]))
    while len(waiting) > 8 or waiting and waiting[0].done():
        print("acknowledged", waiting.pop(0).result().durable_sequence_number, flush=True)
"""


@pytest.mark.chaos
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    acknowledged = 0
    for kill_after in (1, 37, 60, 11, 83):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline().split()[1]) >= acknowledged
            for line, _ in zip(process.stdout, range(kill_after)):
                acknowledged = int(line.split()[1])
            process.send_signal(signal.SIGKILL)
            rest = [int(line.split()[1]) for line in process.stdout if line.endswith("\n")]
            acknowledged = max([acknowledged, *rest])
        assert process.returncode == -signal.SIGKILL

    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    store = open_store(str(path))
    status = store.open_session("job", "s")
    assert status.durable_sequence_number >= acknowledged >= 190
    assert status.committed_sequence_number == status.durable_sequence_number // 5 * 5
    profile = store.load("job")
    committed = [float(number) for number in range(1, status.committed_sequence_number + 1) for _ in range(3)]
    assert speeds(profile) == dict(enumerate(committed, start=1))
    for position, trace in enumerate(profile.traces, start=1):
        with store.traces.open(trace.content_sha256) as file:
            assert file.read() == b"%d" % (position * 10)
    assert len(profile.traces) == status.committed_sequence_number // 10
    store.close()
