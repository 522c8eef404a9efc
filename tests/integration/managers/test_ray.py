"""A real local Ray: workers of Ray Train, requests of its autoscaler, trials of Ray Tune, with Nodewise and without."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from failing_servers import failing_targets
from jobs_of_managers import ELASTIC, TUNED
from managers import program_of
from patience import wait_until
from serving import ServerProcess

from nodewise_client import AppendProfileRequest, Client

pytestmark = pytest.mark.ray

# Sockets of Ray need a short path, and its controller takes one report at each look at its workers.
QUICK = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": "/tmp", "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.1"}


class Observed(NamedTuple):
    workers: int
    steps_per_second: float
    steps_counts: int


def told_of(client: Client, profile_id: str, count: int) -> list[Observed]:
    """Observations of a profile."""
    content = client.get_profile(profile_id).content
    assert content is not None
    told = content.observations
    assert told is not None
    assert told.configurations is not None
    assert len(told.steps_per_second) == count
    rows = zip(told.configurations.workers, told.steps_per_second, told.steps_counts, strict=True)
    return [Observed(*row) for row in rows]


def test_workers_and_trials_until_nodewise_is_stopped(tmp_path: Path) -> None:
    with ServerProcess("--store", "memory:") as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="team-a/elastic", content=ELASTIC))
        client.append_profile(AppendProfileRequest(profile_id="team-a/tuned", content=TUNED))
        with program_of(
            "ray",
            "ray_program.py",
            server.target,
            "20",
            folder=tmp_path,
            environment=QUICK,
        ) as program:
            asked = program.told()
            assert (asked["advised"], asked["requested"]) == (2, 2)
            tuned = program.told()
            # At 0.1 steps/s its 20 steps take more than the minute it has.
            assert tuned["iterations"] == {"0.01": 20, "0.02": 1}
            assert told_of(client, "team-a/tuned", 3)[2].steps_counts == 20

            # The third report of two workers is an observation; then they wait for the server's end.
            wait_until((tmp_path / "go-on.reached").exists)
            wait_until(lambda: client.get_profile("team-a/elastic").observations_count == 5)
            measured = told_of(client, "team-a/elastic", 5)[4]
            assert (measured.workers, measured.steps_per_second, measured.steps_counts) == (2, 2.0, 3)
            server.terminate()
            (tmp_path / "go-on").touch()
            assert program.told() == {"what": "until-stopped", "failed": False, "workers": 2, "steps": 6}
            assert "step times of 2 workers are not added to the profile: unanswered" in program.log()

            # As without Nodewise: as many workers as Ray finds room for, and no trial is stopped.
            program.go_on()
            assert program.told() == {"what": "without", "failed": False, "workers": 3, "steps": 6}
            assert "all possible workers are used: unanswered" in program.log()
            assert program.told()["iterations"] == {"0.01": 20, "0.02": 20}
            nothing = program.told()
            assert nothing["advised"] is None
            assert nothing["advice"].startswith(("unanswered: ", "resting: "))


def test_training_and_tuning_go_on_however_nodewise_fails(tmp_path: Path) -> None:
    failures = ("hanging", "a row that was not requested", "unauthenticated", "exhausted")
    with (
        failing_targets(*failures) as targets,
        program_of("ray", "ray_program.py", "", "1", *targets, folder=tmp_path, environment=QUICK) as program,
    ):
        for number in range(len(targets)):
            assert program.told()["advised"] is None
            assert program.told() == {"what": f"failing-{number}", "failed": False, "workers": 3, "steps": 6}
            assert program.told()["iterations"] == {"0.01": 20, "0.02": 20}
        assert program.log().count("all possible workers are used: ") >= len(targets)
