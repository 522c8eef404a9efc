"""Recorded jobs predicted from each other, and what no recording tells."""

from __future__ import annotations

import json

import numpy as np
import pytest
from recorded_jobs import FIXTURES, gloo_job, measured_traces
from recorded_traces import NobodyWaits

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.replay import Change, ChangeKind, Replay, ReplayQuestion
from nodewise_replay.replaying import replayer

CAPS = {"8_buckets": 0.15, "3_buckets": 0.4, "2_buckets": 1.0, "1_bucket": 25.0}
MEBIBYTE = 1 << 20
WORLD, BUCKET = ChangeKind.WORLD_SIZE, ChangeKind.BUCKET_BYTES
BANDWIDTH, LATENCY = ChangeKind.LINK_BANDWIDTH, ChangeKind.LINK_LATENCY


def replay_steps(job: str, *changes: tuple[ChangeKind, float]) -> Replay:
    asked = tuple(Change(kind=kind, value=value) for kind, value in changes)
    return replayer.replay_steps(gloo_job(job), ReplayQuestion(changes=asked), NobodyWaits())


def step_ms(replay: Replay, hub: int = -1) -> float:
    """Median over all steps but the first of the ranks' mean."""
    ranks = [column for column, rank in enumerate(replay.ranks) if rank != hub]
    steps = np.array([step.rank_predicted_host_s for step in replay.steps[1:]])[:, ranks]
    return 1e3 * float(np.median(steps.mean(axis=1)))


def measured_ms(job: str) -> float:
    told = json.loads((FIXTURES / job / "measured.json").read_text(encoding="utf-8"))
    return float(told["measured_step_ms"]["median"])


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("source", CAPS)
def test_other_buckets_and_worlds_are_within_a_tenth(ranks: int, source: str) -> None:
    job = f"ddp_{ranks}_ranks_{source}"
    asked: dict[str, tuple[ChangeKind, float]] = {
        f"ddp_{ranks}_ranks_{label}": (BUCKET, cap * MEBIBYTE) for label, cap in CAPS.items() if label != source
    }
    asked[f"ddp_{6 - ranks}_ranks_{source}"] = (WORLD, 6 - ranks)
    for target, change in asked.items():
        assert step_ms(replay_steps(job, change)) == pytest.approx(measured_ms(target), rel=0.1), target


@pytest.mark.parametrize(
    ("source", "target", "change"),
    [
        ("ddp_4_ranks_3_buckets", "ddp_4_ranks_3_buckets_fast_link", (BANDWIDTH, 4.0)),
        ("ddp_4_ranks_3_buckets_fast_link", "ddp_4_ranks_3_buckets", (BANDWIDTH, 0.25)),
        ("ddp_2_ranks_straggler", "ddp_4_ranks_straggler", (WORLD, 4)),
        ("ddp_4_ranks_straggler", "ddp_2_ranks_straggler", (WORLD, 2)),
        ("parameter_server_2_ranks", "parameter_server_4_ranks", (WORLD, 4)),
        ("parameter_server_4_ranks", "parameter_server_2_ranks", (WORLD, 2)),
    ],
)
def test_links_stragglers_and_servers_are_within_a_tenth(
    source: str, target: str, change: tuple[ChangeKind, float]
) -> None:
    hub = 0 if source.startswith("parameter_server") else -1
    assert step_ms(replay_steps(source, change), hub) == pytest.approx(measured_ms(target), rel=0.1)


def test_several_changes_are_applied_together_and_say_what_they_rest_on() -> None:
    found = replay_steps("ddp_2_ranks_3_buckets", (WORLD, 4), (BUCKET, 25 * MEBIBYTE))
    assert step_ms(found) == pytest.approx(measured_ms("ddp_4_ranks_1_bucket"), rel=0.1)
    assert found.ranks == (0, 1, 2, 3)
    assert found.world_size == 4
    assert {(one.bytes, one.ranks) for one in found.collectives} == {(1_600_000, (0, 1, 2, 3))}
    told = [warning for warning in found.warnings if warning.startswith("changed: ")]
    assert any("8 gradients" in text for text in told)
    assert any("2 ranks added" in text for text in told)
    other = replay_steps("ddp_2_ranks_3_buckets", (BUCKET, 25 * MEBIBYTE), (WORLD, 4))
    assert step_ms(other) == pytest.approx(step_ms(found), rel=0.02)


def test_buckets_hold_what_the_recorded_ones_held() -> None:
    for cap, sizes in ((0.15, [200_000] * 8), (0.4, [600_000, 600_000, 400_000]), (1.0, [1_200_000, 400_000])):
        found = replay_steps("ddp_2_ranks_1_bucket", (BUCKET, cap * MEBIBYTE))
        for step in found.steps:
            assert [one.bytes for one in found.collectives if one.step == step.step] == sizes


def test_a_recorded_size_asked_for_again_changes_little() -> None:
    for label, cap in CAPS.items():
        job = f"ddp_4_ranks_{label}"
        assert step_ms(replay_steps(job, (BUCKET, cap * MEBIBYTE))) == pytest.approx(
            step_ms(replay_steps(job, (BANDWIDTH, 1.0))), rel=0.03
        )


def test_faster_is_never_slower() -> None:
    for job in ("ddp_4_ranks_2_buckets", "parameter_server_4_ranks"):
        times = [step_ms(replay_steps(job, (BANDWIDTH, ratio)), hub=0) for ratio in (0.5, 1.0, 2.0, 8.0)]
        assert times == sorted(times, reverse=True)
        assert times[0] > 1.1 * times[-1]
    times = [step_ms(replay_steps("ddp_4_ranks_3_buckets", (LATENCY, factor))) for factor in (0.0, 1.0, 5.0)]
    assert times == sorted(times)
    assert times[-1] > 1.02 * times[0]


def test_the_last_of_more_ranks_comes_later() -> None:
    def waiting(ranks: int) -> float:
        found = replay_steps("ddp_4_ranks_8_buckets", (WORLD, ranks))
        return float(np.mean([max(one.wait_s) for one in found.collectives]))

    assert waiting(2) < waiting(4) < waiting(12)
    # Beyond a copy for every recorded step ranks would repeat each other.
    assert len(replay_steps("ddp_2_ranks_1_bucket", (WORLD, 5000)).ranks) == 2 + 2 * 6


def test_one_rank_exchanges_nothing() -> None:
    found = replay_steps("ddp_4_ranks_2_buckets", (WORLD, 1))
    assert found.ranks == (3,) or len(found.ranks) == 1
    # Eight layers of 18 ms and a batch of 2 ms.
    assert step_ms(found) == pytest.approx(146, rel=0.1)


def test_a_server_takes_workers_one_by_one() -> None:
    times = [step_ms(replay_steps("parameter_server_2_ranks", (WORLD, ranks)), hub=0) for ranks in (2, 3, 4, 5)]
    # 1.6 MB over a link of 25 MB/s, and its latency.
    assert np.diff(times) == pytest.approx([65, 65, 65], rel=0.1)


@pytest.mark.parametrize(
    ("job", "change", "reason", "words"),
    [
        ("ddp_2_ranks_1_bucket", (LATENCY, 2.0), Reason.EVIDENCE_MISSING, "several sizes"),
        ("parameter_server_2_ranks", (BUCKET, 1e6), Reason.EVIDENCE_MISSING, "no all-reduce of gradients"),
        ("parameter_server_2_ranks", (WORLD, 1), Reason.INVALID_FIELD, "and a worker"),
        ("ddp_2_ranks_1_bucket", (WORLD, 2.5), Reason.INVALID_FIELD, "whole number"),
        ("ddp_2_ranks_1_bucket", (WORLD, 0), Reason.INVALID_FIELD, "whole number"),
        ("ddp_2_ranks_1_bucket", (BANDWIDTH, 0.0), Reason.INVALID_FIELD, "above 0"),
        ("ddp_2_ranks_1_bucket", (LATENCY, -1.0), Reason.INVALID_FIELD, "0 or more"),
        ("ddp_2_ranks_1_bucket", (BUCKET, 0.0), Reason.INVALID_FIELD, "above 0"),
        ("ddp_2_ranks_1_bucket", (WORLD, float("inf")), Reason.INVALID_FIELD, "finite"),
    ],
)
def test_what_cannot_be_told_is_refused(job: str, change: tuple[ChangeKind, float], reason: Reason, words: str) -> None:
    with pytest.raises(NodewiseError, match=words) as caught:
        replay_steps(job, change)
    assert caught.value.reason == reason
    assert caught.value.violations[0].field in ("changes.kind", "changes.value")


@pytest.mark.data
def test_a_measured_job_of_which_one_rank_is_known() -> None:
    traces = measured_traces("ddp_one_rank/a100x2_resnet_ddp_rank0_ncclargs*")

    def found(kind: ChangeKind, value: float) -> Replay:
        question = ReplayQuestion(changes=(Change(kind=kind, value=value),))
        return replayer.replay_steps(traces, question, NobodyWaits())

    # ResNet-50 in one bucket: the five of a step are one exchange of all its gradients.
    whole = found(BUCKET, 1e9)
    sizes = [one.bytes for one in whole.collectives if one.kind == "all_reduce"]
    assert set(sizes) == {4 * 25_557_032}
    assert len(sizes) == len(whole.steps)
    assert any("1 of 2 ranks" in warning for warning in found(WORLD, 8).warnings)


@pytest.mark.data
def test_gradients_that_others_wait_for_share_no_bucket() -> None:
    question = ReplayQuestion(changes=(Change(kind=BUCKET, value=1e9),), in_sample=True)
    with pytest.raises(NodewiseError, match="cannot share a bucket"):
        replayer.replay_steps(measured_traces("dlrm_8rank_v100/*"), question, NobodyWaits())
