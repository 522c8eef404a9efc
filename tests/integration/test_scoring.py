"""Running scores in operation: what arrives is compared with what was predicted before it arrived."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from misbehaving import Constant, answered, record
from patience import PATIENCE_S
from scaling_profiles import EIGHT, USUAL, Scale
from scored import wait_until_scored
from serving import registry_with
from typer.testing import CliRunner

from nodewise.plugin import Configurations as PluginConfigurations
from nodewise.plugin import Predictions
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import ProfileStore
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_client import (
    AppendProfileRequest,
    Client,
    Configurations,
    ListEstimatorsResponse,
    ModelOptions,
    PredictOptions,
    PredictRequest,
    PredictResult,
    ProfileContent,
    RunningScore,
    configurations,
    observations,
    profile_source,
)

"""Longer than scoring takes anywhere; nothing waits so long."""
LATER: tuple[Scale, ...] = ((3, 12, 8), (4, 16, 8), (8, 32, 8))
FACTORS = (1.3, 0.9, 0.5)
"""Measured over true times: a little off, and so far off that no interval holds it."""


def settings(path: Path, **stated: object) -> Settings:
    values: dict[str, object] = {"store": f"sqlite:{path / 'store.db'}", "grace_s": 1.0, "learn_interval_s": 0.0}
    return Settings(**(values | stated))  # type: ignore[arg-type]  # checked by it


def content(scales: Sequence[Scale], factors: Sequence[float] | None = None) -> ProfileContent:
    steps_s = np.array(USUAL.step_s(scales)) * np.array(factors or [1.0] * len(scales))
    return ProfileContent(observations=observations(configurations=rows(scales), steps_per_second=list(1.0 / steps_s)))


def rows(scales: Sequence[Scale]) -> Configurations:
    nodes, workers, batch = (list(column) for column in zip(*scales, strict=True))
    return configurations(
        nodes=nodes, workers=workers, batch_per_worker_samples=batch, devices="T4", sync_modes="allreduce"
    )


def foretold(client: Client, estimator: str, scales: Sequence[Scale], job: str = "job") -> PredictResult:
    return client.predict(
        PredictRequest(
            profile=profile_source(job),
            configurations=rows(scales),
            options=PredictOptions(model=ModelOptions(estimator=estimator)),
        )
    )


@dataclass
class ByHand:
    """A score from Predict's answers and what was measured later, as anyone would work it out."""

    logs: list[float]
    covered: list[bool]

    @staticmethod
    def of(found: PredictResult, scales: Sequence[Scale], factors: Sequence[float]) -> ByHand:
        steps_s = [factor * step_s for factor, step_s in zip(factors, USUAL.step_s(scales), strict=True)]
        logs, covered = [], []
        for row, step_s in zip(found, steps_s, strict=True):
            assert row.steps_per_second is not None
            assert row.lower_steps_per_second is not None
            assert row.upper_steps_per_second is not None
            logs.append(math.log(row.steps_per_second * step_s))
            covered.append(row.lower_steps_per_second <= 1.0 / step_s <= row.upper_steps_per_second)
        return ByHand(logs, covered)

    def with_more(self, other: ByHand) -> ByHand:
        return ByHand(self.logs + other.logs, self.covered + other.covered)

    def agrees(self, score: RunningScore | None) -> None:
        assert score is not None
        assert score.observations_count == len(self.logs)
        assert score.mean_absolute_log_error == pytest.approx(np.abs(self.logs).mean(), rel=1e-9)
        assert score.mean_log_error == pytest.approx(np.mean(self.logs), rel=1e-9)
        assert score.coverage == pytest.approx(np.mean(self.covered), rel=1e-9)


def score_of(found: ListEstimatorsResponse, name: str) -> RunningScore | None:
    (score,) = [each.score for each in found.estimators if each.plugin is not None and each.plugin.name == name]
    return score


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[ProfileStore]:
    """The file of a server, from beside it."""
    store = open_store(f"sqlite:{tmp_path / 'store.db'}")
    yield store
    store.close()


def test_what_arrives_scores_what_was_predicted_before_it(tmp_path: Path) -> None:
    with EmbeddedServer(settings(tmp_path)) as server, Client(server.target) as client:
        with client.ingest("job") as writer:
            writer.observe(
                [
                    observations(configurations=rows([scale]), steps_per_second=1.0 / step_s)
                    for scale, step_s in zip(EIGHT, USUAL.step_s(EIGHT), strict=True)
                ]
            )
            writer.commit()
        wait_until_scored(server)
        before = client.list_estimators()
        assert (score_of(before, "auto"), score_of(before, "scaling")) == (None, None), "nothing had been predicted"
        by_scaling, by_auto = foretold(client, "scaling", LATER), foretold(client, "auto", LATER)
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(LATER, FACTORS)))
        wait_until_scored(server)
        found = client.list_estimators()
        expected = ByHand.of(by_scaling, LATER, FACTORS)
        assert 0 < sum(expected.covered) < len(LATER), "some within and some outside, or this shows little"
        expected.agrees(score_of(found, "scaling"))
        ByHand.of(by_auto, LATER, FACTORS).agrees(score_of(found, "auto"))
        assert score_of(found, "queueing") is None, "it has no answer for all-reduce jobs"


def test_the_command_line_shows_the_scores(tmp_path: Path) -> None:
    with EmbeddedServer(settings(tmp_path)) as server, Client(server.target) as client:
        command = ["estimators", "--server", server.target, "--json"]
        unscored = {"scored": 0} | dict.fromkeys(("unanswered", "mean_abs_ln", "bias", "coverage90", "updated"))
        entries = json.loads(CliRunner().invoke(app, command).stdout)["estimators"]
        plugins = [each.plugin for each in client.list_estimators().estimators if each.plugin]
        versions = {plugin.name: plugin.version for plugin in plugins}
        assert entries[0] == {"name": "auto", "version": versions["auto"]} | unscored
        assert {entry["name"]: entry["version"] for entry in entries} == versions
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(EIGHT)))
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(LATER, FACTORS)))
        wait_until_scored(server)
        score = score_of(client.list_estimators(), "scaling")
        assert score is not None
        entries = json.loads(CliRunner().invoke(app, command).stdout)["estimators"]
        (entry,) = [each for each in entries if each["name"] == "scaling"]
        assert (entry["scored"], entry["unanswered"], entry["coverage90"]) == (3, 0, score.coverage)
        assert (entry["mean_abs_ln"], entry["bias"]) == (score.mean_absolute_log_error, score.mean_log_error)
        table = CliRunner().invoke(app, command[:-1])
        assert table.exit_code == 0
        assert "scaling" in table.stdout


def test_scores_outlive_the_server_and_count_everything_once(tmp_path: Path) -> None:
    with EmbeddedServer(settings(tmp_path)) as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(EIGHT)))
        first = ByHand.of(foretold(client, "scaling", LATER[:1]), LATER[:1], FACTORS[:1])
        client.append_profile(
            AppendProfileRequest(profile_id="job", content=content(LATER[:1], FACTORS[:1]), request_id="again")
        )
        wait_until_scored(server)
        first.agrees(score_of(client.list_estimators(), "scaling"))
    with EmbeddedServer(settings(tmp_path)) as server, Client(server.target) as client:
        client.append_profile(
            AppendProfileRequest(profile_id="job", content=content(LATER[:1], FACTORS[:1]), request_id="again")
        )
        wait_until_scored(server)
        first.agrees(score_of(client.list_estimators(), "scaling"))
        second = ByHand.of(foretold(client, "scaling", LATER[1:2]), LATER[1:2], FACTORS[1:2])
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(LATER[1:2], FACTORS[1:2])))
        wait_until_scored(server)
        first.with_more(second).agrees(score_of(client.list_estimators(), "scaling"))


def test_a_server_scores_what_another_left(tmp_path: Path, seen: ProfileStore) -> None:
    held, asked = threading.Event(), threading.Event()

    def hold(asked_about: PluginConfigurations) -> Predictions:
        asked.set()
        held.wait()
        return answered(asked_about, np.ones(len(asked_about)))

    registry = registry_with((record("holds", Constant(predict=hold)),), mode="thread")
    with EmbeddedServer(settings(tmp_path), registry) as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(EIGHT)))
        expected = ByHand.of(foretold(client, "scaling", LATER), LATER, FACTORS)
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(LATER, FACTORS)))
        assert asked.wait(PATIENCE_S)
    assert seen.scores.waiting() == 1, "given back when the server stopped"
    held.set()
    with EmbeddedServer(settings(tmp_path)) as server, Client(server.target) as client:
        wait_until_scored(server)
        expected.agrees(score_of(client.list_estimators(), "scaling"))


def test_switched_off_nothing_is_put_down_and_what_was_scored_stays(tmp_path: Path, seen: ProfileStore) -> None:
    with EmbeddedServer(settings(tmp_path)) as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(EIGHT)))
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(LATER, FACTORS)))
        wait_until_scored(server)
        before = score_of(client.list_estimators(), "scaling")
    with EmbeddedServer(settings(tmp_path, scoring=False)) as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="job", content=content(LATER, FACTORS)))
        assert seen.scores.waiting() == 0
        assert score_of(client.list_estimators(), "scaling") == before


def test_servers_on_one_store_share_the_scoring_and_the_scores(tmp_path: Path, seen: ProfileStore) -> None:
    jobs = [f"job-{number}" for number in range(6)]
    with (
        EmbeddedServer(settings(tmp_path)) as one,
        EmbeddedServer(settings(tmp_path)) as other,
        Client(one.target) as first,
        Client(other.target) as second,
    ):
        expected = ByHand([], [])
        for number, job in enumerate(jobs):
            asked, told = (first, second) if number % 2 else (second, first)
            asked.append_profile(AppendProfileRequest(profile_id=job, content=content(EIGHT)))
            expected = expected.with_more(ByHand.of(foretold(asked, "scaling", LATER, job), LATER, FACTORS))
            told.append_profile(AppendProfileRequest(profile_id=job, content=content(LATER, FACTORS)))
        wait_until_scored(one)
        wait_until_scored(other)
        for client in (first, second):
            expected.agrees(score_of(client.list_estimators(), "scaling"))
    (counted,) = [each.sums for each in seen.scores.scores() if each.estimator == "scaling"]
    assert (counted.observations, counted.unanswered) == (len(jobs) * len(LATER), 0)
