"""Sentences that commands print beside their tables, by the answer that each is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from nodewise_cli.views import generations, priors, profiles, running, schedule, tokens
from nodewise_client import (
    Canary,
    DiagnosisAnswer,
    EstimatorDifference,
    LearnedPriors,
    ListPriorsResponse,
    PoolDemand,
    Profile,
    ReloadOutcome,
    ReloadResponse,
    ScheduleResponse,
    SlowHour,
    StepAlarm,
    StepsDiagnosis,
    Tracks,
    Trial,
    TrimmedJob,
    WorkerState,
)

MORNING = datetime(2026, 1, 31, 8, 30, tzinfo=UTC)
STEPS = StepsDiagnosis(
    verdict="The job runs evenly.",
    ranks_count=2,
    steps_count=10,
    step_seconds=0.1,
    lost_windows_count=3,
    alarms=(StepAlarm(kind="rank", ranks=(1, 2), node=4, slowdown_ratio=1.5, part="forward"),),
    slow_hours=(SlowHour(hour=8, slow_days_count=2, days_count=3, slowdown_ratio=1.2),),
)


def answer_with_steps() -> DiagnosisAnswer:
    return DiagnosisAnswer(steps=STEPS, collectives=(), timeline=None, recorded=None)


def reloaded(outcome: ReloadOutcome, trial: Trial | None = None) -> ReloadResponse:
    return ReloadResponse(outcome=outcome, generation=2, generation_before=1, trial=trial)


@pytest.mark.parametrize(
    ("show", "answer", "text"),
    [
        (generations.show_reload, reloaded(ReloadOutcome.TAKEN), "generation 2 serves; before it, generation 1 did"),
        (
            generations.show_reload,
            reloaded(ReloadOutcome.UNCHANGED),
            "generation 2 serves already, and nothing has changed since",
        ),
        (
            generations.show_reload,
            reloaded(ReloadOutcome.RESTARTING),
            "generation 2 needs new workers: the server replaces them one by one",
        ),
        (
            generations.show_reload,
            reloaded(ReloadOutcome.TAKEN, Trial(checks_passed_count=7, checks_left_out_count=1)),
            "7 conformance checks passed, 1 not run",
        ),
        (
            generations.show_reload,
            reloaded(ReloadOutcome.TAKEN, Trial(differences=(EstimatorDifference(estimator="line"),))),
            "line - - 0 0.0000 0.0000 0 0.00 0.00",
        ),
        (generations.show_tracks, Tracks(stable_generation=3), "stable: generation 3"),
        (
            generations.show_tracks,
            Tracks(canary=Canary(generation=4, share=0.1)),
            "canary: generation 4, 10.0% of the jobs",
        ),
        (
            generations.show_tracks,
            Tracks(workers=(WorkerState(process_id=9, stable_generation=3, problem="the folder is missing"),)),
            "process 9 serves generation 3: the folder is missing",
        ),
        (
            priors.show_priors,
            ListPriorsResponse(),
            "nothing was learned: estimators use the priors that ship with them",
        ),
        (
            priors.show_priors,
            ListPriorsResponse(shared_namespaces=("a", "b")),
            "namespaces that share what they learn: a, b",
        ),
        (priors.show_learned, LearnedPriors(lessons_id="x"), "ids without a slash: lessons x of 0 jobs"),
        (
            priors.show_learned,
            LearnedPriors(trimmed_jobs=(TrimmedJob(profile_id="a", reason="it is too long"),)),
            "job a, evidence left out: it is too long",
        ),
        (
            priors.show_learned,
            LearnedPriors(lost_profiles_count=2),
            "2 profiles of the pinned lessons no longer exist",
        ),
        (
            schedule.show,
            ScheduleResponse(pool_demands=(PoolDemand(pool="p", used_nodes=1, desired_nodes=3),), complete=True),
            "Pool p: 1 nodes in use; with 3, no job would wait.",
        ),
        (schedule.show, ScheduleResponse(complete=False), "(the deadline ended the decision early)"),
        (running.show, answer_with_steps(), "2 ranks, 10 steps of 100.0 ms, 3 windows lost."),
        (running.show, answer_with_steps(), "Hours that are slow on several days"),
        (running.show, answer_with_steps(), "2 of 3"),
        (running.show, answer_with_steps(), "node 4: 1, 2"),
        (
            profiles.show_deleted,
            [Profile(profile_id="a", observations_count=3, purge_time=MORNING)],
            "Deleted a, with 3 observations. `undelete` restores it until 2026-01-31",
        ),
    ],
)
def test_the_sentence_is_printed(
    capsys: pytest.CaptureFixture[str], show: Callable[[Any], None], answer: Any, text: str
) -> None:
    show(answer)
    assert text in " ".join(capsys.readouterr().out.split())  # lines are folded to the terminal's width


def test_a_token_without_an_end_is_valid_until_it_is_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    tokens.show_created("secret", {"token_id": "t", "roles": ["read"], "prefixes": [], "expires": None})
    printed = capsys.readouterr()
    assert printed.out == "secret\n"
    said = " ".join(printed.err.split())
    assert "token t for read on all profiles, until it is revoked; it is not shown again:" in said
