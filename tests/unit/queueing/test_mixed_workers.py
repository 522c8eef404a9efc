"""Workers that are not alike: several devices, or slower ones of the same."""

from __future__ import annotations

import numpy as np
import pytest
from queueing_profiles import (
    answered,
    assessed,
    mixed,
    observations,
    predicted,
    profile,
    reasons,
    refused,
    rows,
    steps_per_s,
    timings,
)

from nodewise.plugin import Configurations, Profile, Reason, RowStatus, SyncMode, WorkerGroup

MODES = pytest.mark.parametrize("mode", [SyncMode.ASYNC, SyncMode.SYNC, SyncMode.HYBRID])
SLOW, FAST = (0.02, 0.2, 0.0, 0.0), (0.02, 0.08, 0.0, 0.0)
PHASES = (0.05, 0.5, 0.05, 0.01)


def two_devices() -> Profile:
    slow, fast = timings(SLOW, device="K80", cv=0.3), timings(FAST, device="P100", cv=0.3)
    return profile(type(slow).concatenated([slow, fast]))


def method(job: Profile, asked: Configurations) -> str:
    (told,) = [notice.message for notice in answered(job, asked).notices if notice.reason == "MIXED_WORKERS"]
    return told


def columns_of(mode: SyncMode) -> dict[str, float]:
    return {"hybrid_sync_fraction": 0.25} if mode == SyncMode.HYBRID else {}


@pytest.mark.parametrize(
    ("job", "asked"),
    [
        (two_devices(), mixed([WorkerGroup("K80", 3), WorkerGroup("P100", 3)], device="K80")),
        (profile(timings(SLOW, cv=0.3)), mixed([WorkerGroup("", 3), WorkerGroup("", 3, 0.4)])),
    ],
    ids=["devices", "factors"],
)
def test_two_classes_are_solved_exactly(job: Profile, asked: Configurations) -> None:
    answer = answered(job, asked)
    assert steps_per_s(answer, asked)[0] == pytest.approx(12.2225 + 24.8333, abs=1e-3)
    assert "exact" in method(job, asked)
    assert "Linearizer" not in method(job, asked)
    assert answer.utilisation["downlink"][0] == pytest.approx(0.02 * (12.2225 + 24.8333), abs=1e-4)
    # A mean over updates: each class's compute counts as often as it updates.
    compute_s = (12.2225 * 0.2 + 24.8333 * 0.08) / (12.2225 + 24.8333)
    assert answer.breakdown_s["compute"][0] == pytest.approx(compute_s, abs=1e-4)
    assert sum(part[0] for part in answer.breakdown_s.values()) == pytest.approx(answer.step_s[0], rel=1e-12)
    assert answer.staleness_mean[0] == 5.0
    assert answer.staleness_p95[0] > 5.0


def test_many_workers_are_solved_by_linearizer_and_it_is_told() -> None:
    job, asked = two_devices(), mixed([WorkerGroup("K80", 300), WorkerGroup("P100", 300)], device="K80")
    assert "Linearizer" in method(job, asked)
    assert steps_per_s(answered(job, asked), asked)[0] == pytest.approx(50.0, rel=1e-3)
    # At the edge of what is solved exactly the two agree.
    edge = [mixed([WorkerGroup("K80", count), WorkerGroup("P100", count)], device="K80") for count in (80, 82)]
    assert ["Linearizer" in method(job, each) for each in edge] == [False, True]
    first, second = (steps_per_s(answered(job, each), each)[0] for each in edge)
    assert second == pytest.approx(first, rel=1e-3)


@MODES
@pytest.mark.parametrize(
    "facts",
    [{}, {"parameter_bytes": 4_000_000, "link_bytes_per_s": 25e6}],
    ids=["link not known", "link known"],
)
@pytest.mark.parametrize("said", ["groups that say nothing", "a device that the row does not name", "all but alike"])
def test_one_class_is_the_plain_row(mode: SyncMode, facts: dict[str, float], said: str) -> None:
    job = profile(timings((0.16, 0.5, 0.16, 0.02), device="K80", cv=0.1), **facts)
    workers = [2, 4, 8, 16]
    plain = answered(job, rows(workers, mode, device="K80", **columns_of(mode)))
    groups = [[WorkerGroup("K80", count)] for count in workers]
    if said == "all but alike":
        groups = [[WorkerGroup("K80", count // 2), WorkerGroup("K80", count // 2, 1 + 1e-9)] for count in workers]
    device = "" if said == "a device that the row does not name" else "K80"
    found = answered(job, mixed(*groups, mode=mode, device=device, **columns_of(mode)))
    np.testing.assert_allclose(found.step_s, plain.step_s, rtol=1e-7)


@MODES
def test_neither_the_order_of_groups_nor_their_division_matters(mode: SyncMode) -> None:
    job = profile(timings(PHASES, cv=0.3))
    answer = answered(
        job,
        mixed(
            [WorkerGroup("", 3), WorkerGroup("", 2, 1.5)],
            [WorkerGroup("", 2, 1.5), WorkerGroup("", 3)],
            [WorkerGroup("", 1), WorkerGroup("", 2, 1.5), WorkerGroup("", 2)],
            mode=mode,
            **columns_of(mode),
        ),
    )
    assert answer.step_s[0] == answer.step_s[1] == answer.step_s[2]
    assert answer.log_spread[0] == answer.log_spread[1] == answer.log_spread[2]


def test_a_round_waits_for_the_slow_class() -> None:
    job = profile(timings(PHASES, cv=0.1))
    groups = [[WorkerGroup("", 7), WorkerGroup("", 1, factor)] for factor in (1.0, 2.0, 4.0)]
    answer = answered(job, mixed(*groups, mode=SyncMode.SYNC))
    plain = answered(job, rows([8], SyncMode.SYNC))
    assert answer.step_s[0] == pytest.approx(plain.step_s[0], rel=1e-12)
    # Downloads of all, the slowest one's compute, and its exchange after that.
    for row, factor in ((1, 2.0), (2, 4.0)):
        assert answer.step_s[row] >= (8 * 0.05 + 0.5 * factor + 0.06) * (1 - 1e-9)
        assert answer.step_s[row] == pytest.approx(8 * 0.05 + 0.5 * factor + 0.06, rel=0.02)
    assert answer.breakdown_s["barrier"][2] == pytest.approx(0.5 * 4 - 0.5 * (7 + 4) / 8, rel=0.02)
    assert not answer.staleness_mean.any()


def test_a_round_need_not_wait_for_a_straggler_that_is_a_backup() -> None:
    job = profile(timings(PHASES, cv=0.1))
    groups = [WorkerGroup("", 7), WorkerGroup("", 1, 4.0)]
    waiting, dropping = (
        answered(job, mixed(groups, mode=SyncMode.SYNC, backup_workers=backup)).step_s[0] for backup in (0, 1)
    )
    assert dropping < 0.6 * waiting
    assert dropping >= answered(job, rows([7], SyncMode.SYNC)).step_s[0]


def test_an_asynchronous_straggler_slows_nobody_else() -> None:
    job = profile(timings((0.005, 0.5, 0.005, 0.001), cv=0.1))
    eight, seven = (answered(job, rows([count])) for count in (8, 7))
    asked = mixed([WorkerGroup("", 7), WorkerGroup("", 1, 10.0)])
    rate = steps_per_s(answered(job, asked), asked)[0]
    own = 1 / 5.011
    assert rate == pytest.approx(7 / seven.step_s[0] + own, rel=0.01)
    assert rate < 8 / eight.step_s[0]


def test_mixed_hybrids_are_the_mean_of_both_parts() -> None:
    job, groups = two_devices(), [WorkerGroup("K80", 3), WorkerGroup("P100", 3)]
    synchronous, asynchronous = (
        answered(job, mixed(groups, mode=mode, device="K80")).step_s[0] for mode in (SyncMode.SYNC, SyncMode.ASYNC)
    )
    asked = mixed(groups, groups, mode=SyncMode.HYBRID, device="K80", hybrid_sync_fraction=[0.25, 0.75])
    answer = answered(job, asked)
    share = np.array([0.25, 0.75])
    np.testing.assert_allclose(answer.step_s, share * synchronous + (1 - share) * asynchronous, rtol=1e-12)
    assert "MIXED_WORKERS" in reasons(answer)
    assert answer.extra["sync_step_s"][0] == synchronous


@MODES
def test_every_device_needs_its_phases(mode: SyncMode) -> None:
    job = two_devices()
    asked = Configurations.concatenated(
        [
            mixed([WorkerGroup("K80", 3), WorkerGroup("V100", 3)], mode=mode, device="K80", **columns_of(mode)),
            mixed([WorkerGroup("K80", 3), WorkerGroup("P100", 3)], mode=mode, device="K80", **columns_of(mode)),
        ]
    )
    answer = predicted(job, asked)
    assert answer.status.tolist() == [RowStatus.REFUSED, RowStatus.ANSWERED]
    reason, message = refused(answer)[0]
    assert (reason, "V100" in message) == (Reason.EVIDENCE_MISSING, True)
    assert assessed(job, asked).refusal is None


@pytest.mark.parametrize(
    ("job", "asked"),
    [
        (two_devices(), mixed([WorkerGroup("K80", 3), WorkerGroup("V100", 3)], device="K80")),
        (profile(measured=observations({1: 1.0, 8: 5.0})), mixed([WorkerGroup("", 3), WorkerGroup("", 3, 2.0)])),
    ],
    ids=["a device is missing", "throughputs alone"],
)
def test_workers_of_which_some_are_not_known_cannot_be_answered(job: Profile, asked: Configurations) -> None:
    assert not predicted(job, asked).answered.any()
    refusal = assessed(job, asked).refusal
    assert refusal is not None
    assert refusal.reason == Reason.EVIDENCE_MISSING


def test_throughputs_do_not_tell_workers_apart() -> None:
    job = profile(measured=observations({1: 1.0, 8: 5.0}))
    answer = predicted(job, mixed([WorkerGroup("", 3), WorkerGroup("", 3, 2.0)]))
    assert refused(answer)[0][0] == Reason.EVIDENCE_MISSING
    assert answer.refusals[0].refusal.missing_fields == ("phase_timings",)


def test_rows_of_mixed_and_alike_workers_are_answered_together() -> None:
    job = two_devices()
    groups = [WorkerGroup("K80", 3), WorkerGroup("P100", 3)]
    asked = Configurations.concatenated(
        [rows([4, 6], device="K80"), mixed(groups, device="K80"), rows([2], SyncMode.SYNC, device="P100")]
    )
    together = answered(job, asked)
    np.testing.assert_array_equal(together.step_s[:2], answered(job, rows([4, 6], device="K80")).step_s)
    assert together.step_s[2] == answered(job, mixed(groups, device="K80")).step_s[0]
    (told,) = [notice for notice in together.notices if notice.reason == "MIXED_WORKERS"]
    assert told.rows == (2,)
