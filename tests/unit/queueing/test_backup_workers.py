"""Synchronous rounds that do not wait for the slowest."""

from __future__ import annotations

import numpy as np
import pytest
from queueing_profiles import answered, predicted, profile, refused, rows, steps_per_s, timings

from nodewise.plugin import Reason, RowStatus, SyncMode
from nodewise_laws import barrier_round_backup

PHASES = (0.01, 1.0, 0.01, 0.005)
JOB = profile(timings(PHASES, cv=0.4))


def round_s(workers: int, backup: int) -> float:
    return float(answered(JOB, rows([workers], SyncMode.SYNC, backup_workers=backup)).step_s[0])


def test_a_round_is_no_longer_with_more_backups() -> None:
    rounds = [round_s(8, backup) for backup in range(8)]
    assert rounds[0] == answered(JOB, rows([8], SyncMode.SYNC)).step_s[0]
    assert np.all(np.diff(rounds) <= 0)
    assert np.all(np.diff(rounds[:4]) < 0)
    assert rounds[0] - rounds[1] > rounds[1] - rounds[2]
    # All download, and one is waited for at least.
    assert rounds[7] > 8 * 0.01


@pytest.mark.parametrize("backup", [1, 2, 6, 12])
def test_a_round_ends_with_the_last_that_is_waited_for(backup: int) -> None:
    law = barrier_round_backup(
        [16], download_s=0.01, exchange_s=0.01, compute_s=1.0, compute_cv=0.4, backup_workers=backup
    )
    assert round_s(16, backup) == pytest.approx(law.round_s[0] + 0.005, rel=1e-9)


def test_backups_are_part_of_the_workers_and_their_samples_are_lost() -> None:
    asked = rows([8], SyncMode.SYNC, backup_workers=2, batch_per_worker=32)
    assert asked.samples_per_step().tolist() == [6 * 32]
    assert steps_per_s(answered(JOB, asked), asked)[0] == pytest.approx(1 / round_s(8, 2))


@pytest.mark.parametrize(
    ("mode", "workers", "backup"),
    [
        (SyncMode.SYNC, 4, 4),
        (SyncMode.SYNC, 4, 9),
        (SyncMode.SYNC, 1, 1),
        (SyncMode.ASYNC, 4, 1),
        (SyncMode.HYBRID, 4, 1),
    ],
)
def test_backups_that_cannot_be_are_refused(mode: SyncMode, workers: int, backup: int) -> None:
    answer = predicted(JOB, rows([workers], mode, backup_workers=backup))
    reason, message = refused(answer)[0]
    assert reason == Reason.UNSUPPORTED_CONFIGURATION
    assert "backup_workers" in message


def test_rows_with_other_backups_are_answered_row_by_row() -> None:
    asked = rows([8, 8, 8, 2], SyncMode.SYNC, backup_workers=[2, 0, 1, 2])
    answer = predicted(JOB, asked)
    assert answer.status.tolist() == [RowStatus.ANSWERED] * 3 + [RowStatus.REFUSED]
    assert answer.step_s[:3].tolist() == [round_s(8, 2), round_s(8, 0), round_s(8, 1)]


def test_the_wait_for_the_slowest_shrinks_with_backups() -> None:
    answer = answered(JOB, rows([8, 8, 8], SyncMode.SYNC, backup_workers=[0, 1, 2]))
    assert np.all(np.diff(answer.breakdown_s["barrier"]) < 0)
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s, rtol=1e-12)
