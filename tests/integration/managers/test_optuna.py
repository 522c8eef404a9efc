"""A real study of Optuna: its trials teach a profile, and those that would be late end early."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing_servers import FAILURES, failing_targets
from managers import program_of
from patience import PATIENCE_S
from serving import ServerProcess

from nodewise_client import (
    AppendProfileRequest,
    Client,
    ProfileContent,
    configurations,
    observations,
)

pytestmark = pytest.mark.ray  # Optuna is in the environment of Ray

SLOW = ProfileContent(
    observations=observations(
        configurations=configurations(nodes=1, workers=2, sync_modes="allreduce", batch_per_worker_samples=128),
        steps_per_second=2.5,
    )
)


def test_trials_teach_and_late_ones_end_until_nodewise_is_stopped(tmp_path: Path) -> None:
    with ServerProcess("--store", "memory:") as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="team-a/tuned", content=SLOW))
        with program_of(
            "ray", "optuna_program.py", server.target, str(PATIENCE_S), "tried", folder=tmp_path, environment={}
        ) as program:
            quick, slow = program.told(), program.told()
            assert quick["state"] == "COMPLETE"
            assert quick["attributes"]["nodewise_steps_per_second"] == pytest.approx(10.0)
            # Its 100 steps take 40 s of the 20 it has: it does not even begin.
            assert slow["state"] == "PRUNED"
            assert slow["seconds"] == 0.0
            assert "the deadline is 20 s" in program.log()
            told = client.get_profile("team-a/tuned").content
            assert told is not None
            assert told.observations is not None
            assert told.observations.steps_per_second == pytest.approx((2.5, 10.0))
            assert told.observations.steps_counts == (0, 100)

            server.terminate()
            program.go_on()
            # As without Nodewise: whoever is late is late, and the study goes on.
            late, after = program.told(), program.told()
            assert late["state"] == after["state"] == "COMPLETE"
            assert late["seconds"] == pytest.approx(80.0)
            assert "the deadline of trial 2 is not checked: unanswered" in program.log()
            assert "the times of trial 3 are not added to the profile: resting" in program.log()


def test_a_study_goes_on_however_nodewise_fails(tmp_path: Path) -> None:
    with (
        failing_targets(*FAILURES) as targets,
        program_of("ray", "optuna_program.py", "", "1", "tried", *targets, folder=tmp_path, environment={}) as program,
    ):
        for failure in FAILURES:
            late, after = program.told(), program.told()
            assert late["state"] == after["state"] == "COMPLETE", failure
            assert (late["seconds"], after["seconds"]) == (pytest.approx(80.0), pytest.approx(10.0)), failure
        assert program.log().count("are not added to the profile: ") == 2 * len(FAILURES)
