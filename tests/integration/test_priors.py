"""What a namespace learned is told, pinned, let go and rolled back, for all processes and beyond a restart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from scored import wait_until_scored
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_client import (
    AppendProfileRequest,
    Client,
    DeleteProfileRequest,
    LearnedPriors,
    ListPriorsRequest,
    ModelOptions,
    NodewiseError,
    PredictOptions,
    PredictRequest,
    PriorAction,
    ProfileContent,
    SetPriorRequest,
    configurations,
    observations,
    profile_source,
)

ASKED = configurations(nodes=8, workers=32, batch_per_worker_samples=32)


def job(slower: float, nodes: tuple[int, ...] = (1, 2, 4)) -> ProfileContent:
    """A data-parallel job on a device that nobody knows."""
    rows = configurations(
        nodes=nodes,
        workers=[4 * each for each in nodes],
        sync_modes="allreduce",
        devices="X9",
        batch_per_worker_samples=32,
    )
    steps = [1.0 / (0.2 + slower * (each - 1)) for each in nodes]
    return ProfileContent(observations=observations(configurations=rows, steps_per_second=steps))


@contextmanager
def serving(folder: Path) -> Iterator[tuple[EmbeddedServer, Client]]:
    settings = Settings(store=f"sqlite:{folder / 'store.db'}", admin=True, grace_s=1.0, learn_interval_s=0.05)
    with EmbeddedServer(settings) as server, Client(server.target) as client:
        yield server, client


def store(client: Client, name: str, content: ProfileContent) -> None:
    client.append_profile(AppendProfileRequest(profile_id=name, content=content))


def learned(client: Client, namespace: str = "team") -> LearnedPriors | None:
    (found,) = client.list_priors(ListPriorsRequest(namespace=namespace)).learned or (None,)
    return found


def told(client: Client, done: Callable[[LearnedPriors], bool], namespace: str = "team") -> LearnedPriors:
    """What a namespace learned, once it is so."""
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        found = learned(client, namespace)
        if found is not None and done(found):
            return found
        assert time.monotonic() < ends_s, found
        time.sleep(0.02)


def step_s(client: Client, profile: str | ProfileContent = "team/asked") -> float:
    options = PredictOptions(model=ModelOptions(estimator="scaling"))
    asked = PredictRequest(profile=profile_source(profile), configurations=ASKED, options=options)
    (row,) = client.predict(asked)
    return row.step_seconds


def priors(client: Client, server: EmbeddedServer, *arguments: str) -> Any:
    ran = CliRunner().invoke(app, ["priors", *arguments, "--server", server.target, "--json"])
    assert ran.exit_code == 0, ran.stderr  # where the server of this process may log
    return json.loads(ran.stdout)


def set_to(client: Client, action: PriorAction, lessons_id: str | None = None) -> LearnedPriors:
    found = client.set_prior(SetPriorRequest(namespace="team", action=action, lessons_id=lessons_id)).learned
    assert found is not None
    return found


def test_lessons_are_pinned_let_go_and_rolled_back(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, client):
        # Of no namespace, so that nothing that is learned beside answers it.
        shipped = step_s(client, job(0.0, (1,)))
        store(client, "team/asked", job(0.0, (1,)))
        store(client, "team/first", job(0.02))
        first = told(client, lambda found: found.jobs_count == 2)
        assert first.profile_ids == ("team/asked", "team/first")
        assert first.owners_count == 1
        taught = step_s(client)
        assert taught != shipped
        (scaling,) = [each for each in first.priors if each.estimator == "scaling"]
        assert scaling.prior_id.startswith("scaling-")
        assert "2 jobs of the corpus, on devices of their own" in scaling.sources

        # Pinned, other jobs teach nothing; what one of another namespace has learned was looked at after them.
        assert set_to(client, PriorAction.PIN).pin_time is not None
        store(client, "team/second", job(0.5))
        store(client, "other/job", job(0.1))
        told(client, lambda found: found.jobs_count == 1, "other")
        assert told(client, lambda found: True).lessons_id == first.lessons_id
        assert step_s(client) == taught

        # Let go, they teach; rolled back, they did not.
        let_go = set_to(client, PriorAction.UNPIN)
        assert (let_go.jobs_count, let_go.pin_time) == (3, None)
        assert step_s(client) != taught
        assert [past.lessons_id for past in let_go.past][:2] == [let_go.lessons_id, first.lessons_id]
        back = set_to(client, PriorAction.ROLL_BACK)
        assert (back.lessons_id, back.learn_time) == (first.lessons_id, first.learn_time)
        assert step_s(client) == taught
        with pytest.raises(NodewiseError) as caught:
            set_to(client, PriorAction.ROLL_BACK, "nothing")
        assert caught.value.reason == "PRIOR_NOT_FOUND"

        # Another process of the same store does as this one was told.
        with serving(tmp_path) as (_, beside):
            assert told(beside, lambda found: found.pin_time is not None).lessons_id == first.lessons_id
            assert step_s(beside) == taught
            set_to(client, PriorAction.ROLL_BACK, "shipped")
            assert step_s(client) == shipped
            told(beside, lambda found: found.jobs_count == 0)
            assert step_s(beside) == shipped
            set_to(client, PriorAction.ROLL_BACK, first.lessons_id)

    with serving(tmp_path) as (server, client):
        assert told(client, lambda found: found.jobs_count == 2).lessons_id == first.lessons_id
        assert step_s(client) == taught
        client.delete_profile(DeleteProfileRequest(profile_id="team/first", etag="*"))
        priors(client, server, "unpin", "team")
        priors(client, server, "rollback", "team", "--to", first.lessons_id)
        (listed,) = priors(client, server, "list", "--namespace", "team")["learned"]
        assert (listed["lessons_id"], listed["jobs"], listed["lost_profiles"]) == (first.lessons_id, 1, 1)
        assert priors(client, server, "pin", "team")["learned"]["pin_time"]


def test_what_lessons_change_in_running_scores_is_told(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, client):
        store(client, "team/first", job(0.02))
        store(client, "team/second", job(0.03))
        told(client, lambda found: found.jobs_count == 2)
        store(client, "team/first", job(0.02, (8,)))
        wait_until_scored(server)
        found = learned(client)
        assert found is not None
        effects = {each.estimator: each.effect for each in found.priors if each.effect is not None}
        scaling = effects["scaling"]
        assert scaling.observations_count == 1
        assert scaling.mean_absolute_log_error != scaling.mean_absolute_log_error_without
        ran = CliRunner().invoke(app, ["priors", "list", "--server", server.target])
        assert ran.exit_code == 0, ran.stderr  # where the server of this process may log
        assert "team: lessons" in ran.stdout
