"""Stores of every schema that was released open, and answer as they would have been filled today."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog
from serving import Stubs, stored
from structlog.testing import capture_logs

from nodewise.profiles.batches import Batch
from nodewise.profiles.digest import content_digest
from nodewise.profiles.opening import open_store
from nodewise.profiles.sql_schema import APPLICATION_ID, SCHEMA_VERSION
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import configuration_pb2, options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles

FILES = Path(__file__).parents[1] / "fixtures" / "stores"
DUMPS = sorted(FILES.glob("store_of_schema_*.sql.gz"))


def opened_file(path: Path, dump: str) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(dump)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()
    return path


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.name.partition(".")[0])
def test_a_store_of_a_released_schema_has_lost_nothing(tmp_path: Path, dump: Path) -> None:
    path = opened_file(tmp_path / "store.db", gzip.decompress(dump.read_bytes()).decode())
    told = json.loads(dump.with_name(dump.name.replace(".sql.gz", ".json")).read_text(encoding="utf-8"))
    configuration = structlog.get_config()
    structlog.reset_defaults()  # an embedded server of another test may log warnings alone
    with capture_logs() as log:
        store = open_store(str(path))
    structlog.configure(**configuration)
    version = int(dump.name.partition(".")[0].rpartition("_")[2])
    upgrades = [(line["schema_before"], line["schema"]) for line in log if line["event"] == "store_upgraded"]
    assert upgrades == ([(version, SCHEMA_VERSION)] if version < SCHEMA_VERSION else [])
    assert {found.profile_id: found.digest for found in store.list()} == told["digests"]
    for revision, digest in enumerate(told["kept"], start=1):
        assert content_digest(store.load("kept", None, revision)) == digest
    assert (store.scores.waiting(), store.generation()) == (told["waiting"], told["generation"])
    assert [score.sums.observations for score in store.scores.scores()] == [3]
    kept = store.load("kept")
    assert (kept.display_name, kept.labels, len(kept.shared_runs), len(kept.traces)) == (
        "A job",
        {"team": "one"},
        1,
        1,
    )
    assert store.open_session("kept", "s").durable_sequence_number == 3
    assert store.undelete("deleted").revision == 1
    assert not store.inspect(lambda: True)
    store.close()


def of_0_1(path: Path) -> Path:
    return opened_file(path, (FILES / "store_of_0_1.sql").read_text(encoding="utf-8"))


def of_schema_3(path: Path) -> Path:
    return opened_file(path, gzip.decompress((FILES / "store_of_schema_3.sql.gz").read_bytes()).decode())


def of_schema_5(path: Path) -> Path:
    return opened_file(path, gzip.decompress((FILES / "store_of_schema_5.sql.gz").read_bytes()).decode())


def of_schema_4(path: Path) -> Path:
    return opened_file(path, gzip.decompress((FILES / "store_of_schema_4.sql.gz").read_bytes()).decode())


@pytest.mark.parametrize("file", [of_0_1, of_schema_3, of_schema_4, of_schema_5])
def test_profiles_of_then_answer_as_those_of_today(tmp_path: Path, file: Callable[[Path], Path]) -> None:
    path = file(tmp_path / "store.db")
    store = open_store(str(path))
    kept = store.load("kept")
    parts = {name: getattr(kept, name) for name in ("workload", "network", "phase_timings", "observations")}
    store.append("again", "s", [Batch(sequence_number=1, commit=True, **parts)])
    store.close()
    settings = Settings(store=f"sqlite:{path}", scoring=False, learn_interval_s=0)
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:
        asked = profiles.GetProfileRequest(profile_id="kept")
        content = stubs.profile.GetProfile(asked).profile.content
        assert content.workload.layers
        assert len(content.observations.steps_per_second) >= 5
        assert len(content.phase_timings.compute_seconds) >= 1
        rows = configuration_pb2.Configurations(
            workers=[1, 2, 4],
            nodes=[1, 2, 4],
            device_names=["V100"],
            device_indexes=[0],
            parameter_servers=[1],
            sync_modes=[configuration_pb2.SYNC_MODE_ASYNC],
        )
        options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator="queueing"))
        answers = []
        for name in ("kept", "again"):
            request = predictions.PredictRequest(profile=stored(name), configurations=rows, options=options)
            reply = stubs.prediction.Predict(request)
            reply.ClearField("basis")
            for warning in reply.predictions.warnings:
                # Runs are named by their numbers, which each profile counts for itself.
                warning.message = re.sub(r"number \d+", "number", warning.message)
            answers.append(reply)
        assert answers[0].predictions.step_seconds
        assert answers[0] == answers[1]
