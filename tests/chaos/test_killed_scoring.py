"""A server that is killed while it scores: nothing is lost, nothing counts twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from scaling_profiles import EIGHT, USUAL
from serving import ServerProcess

from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import load_registry
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import StoreOptions
from nodewise.runtime.scoring import LEASE_S, Scoring
from nodewise_client import (
    AppendProfileRequest,
    Client,
    ProfileContent,
    configurations,
    observations,
)

pytestmark = pytest.mark.chaos

COMMITS = 12


def content(commit: int) -> ProfileContent:
    """The runs on up to two nodes first, then one run of another batch each."""
    scales = EIGHT if commit == 0 else [(2, 8, 8 + commit)]
    nodes, workers, batch = (list(column) for column in zip(*scales, strict=True))
    rows = configurations(
        nodes=nodes, workers=workers, batch_per_worker_samples=batch, devices="T4", sync_modes="allreduce"
    )
    rates = [1.0 / step_s for step_s in USUAL.step_s(scales)]
    return ProfileContent(observations=observations(configurations=rows, steps_per_second=rates))


def test_every_commit_is_scored_once_though_the_scorer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    later = SqliteProfileStore(path, StoreOptions(now=lambda: time.time() + 2.0 * LEASE_S))
    with ServerProcess("--store", f"sqlite:{path}") as server, Client(server.target) as client:
        for commit in range(COMMITS + 1):
            client.append_profile(AppendProfileRequest(profile_id="job", content=content(commit)))
        while later.scores.waiting() > COMMITS - 2:
            """Some are scored, others are not."""
        server.kill()
    counted = {score.estimator: score.sums.observations for score in later.scores.scores()}
    assert counted["scaling"] + later.scores.waiting() == COMMITS
    # The one in hand is free once its lease is over, as it is by this store's clock.
    scorer = Scoring(Answers(load_registry(safe_mode=True)), later)
    while scorer.score_one():
        """As long as one waits."""
    assert later.scores.waiting() == 0
    counted = {score.estimator: score.sums.observations for score in later.scores.scores()}
    assert counted["scaling"] == COMMITS
    later.close()
