"""What measured traces are replayed to; docs/explanation/replay.md states the figures."""

from __future__ import annotations

import numpy as np
import pytest
from recorded_jobs import measured_traces
from recorded_traces import NobodyWaits, shifted

from nodewise.domain.replay import Replay, ReplayQuestion
from nodewise.domain.trace import Trace
from nodewise_replay.alignment.clocks import align_clocks
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.sweep import sweep_times
from nodewise_replay.replaying.replayer import replay_steps

pytestmark = pytest.mark.data


def replay(traces: list[Trace], *, in_sample: bool = False) -> Replay:
    return replay_steps(traces, ReplayQuestion(in_sample=in_sample), NobodyWaits())


@pytest.mark.parametrize(
    ("file", "host", "device"),
    [
        ("ddp_one_rank/a100x2_resnet_ddp_rank0_ncclargs*", 0.001, 0.001),
        ("ddp_one_rank/a100x8_recsys_rank3*", 0.005, 0.005),
        ("single_gpu/v100_resnet50_workers0*", 0.003, 0.003),
        ("single_gpu/v100_resnet50_workers4*", 0.003, 0.003),
    ],
)
def test_single_ranks(file: str, host: float, device: float) -> None:
    traces = list(measured_traces(file))
    itself = replay(traces, in_sample=True)
    assert itself.host_error is not None
    assert itself.device_error is not None
    assert itself.kernel_start_p95_error_s is not None
    assert itself.host_error <= host
    assert itself.device_error <= device
    assert itself.kernel_start_p95_error_s <= 500e-6
    across = replay(traces)
    assert across.host_error is not None
    assert across.persistence_error is not None
    assert across.host_error <= across.persistence_error + 0.01


def dlrm() -> list[Trace]:
    return list(measured_traces("dlrm_8rank_v100/*"))


def test_eight_ranks_of_a_recommender() -> None:
    found = replay(dlrm(), in_sample=True)
    assert found.ranks == tuple(range(8))
    assert [round(one.transfer_s * 1e6) for one in found.collectives] == pytest.approx(
        [9, 6, 7, 6, 82, 8, 18, 62], abs=1
    )
    assert [one.late_ranks[0] for one in found.collectives] == [7, 7, 7, 7, 7, 5, 5, 4]
    ties = [one.late_ranks for one in found.collectives if len(one.late_ranks) > 1]
    # 9 us between the first two at the fifth collective, 14 us at the eighth.
    assert ties == [(7, 4), (4, 5)]
    waits = np.sum([one.wait_s for one in found.collectives], axis=0) * 1e6
    assert waits == pytest.approx([5580, 11125, 3280, 9571, 6370, 6041, 3342, 1534], abs=20)
    assert (found.clock_uncertainty_s <= 1.1e-6).all()
    assert found.edges["launch"].missing == 128
    (step,) = found.steps
    assert step.rank_predicted_host_s == pytest.approx(step.rank_measured_host_s, rel=0.001)


def test_all_kernels_of_collectives_end_when_they_did() -> None:
    traces = dlrm()
    graph = build_graph(traces, align_clocks(traces))
    _, end = sweep_times(graph, lag_ns=graph.explained_lag_ns)
    leaving = graph.collectives.departure
    assert len(leaving) == 64
    assert np.abs(end[leaving] - graph.end_ns[leaving]).max() <= 20_000


@pytest.mark.parametrize("largest_ns", [100_000, 1_000_000, 50_000_000])
def test_clocks_that_are_off_are_set_right(largest_ns: int) -> None:
    traces = dlrm()
    before, unmoved = align_clocks(traces), replay(traces, in_sample=True)
    offsets = np.random.default_rng(0).integers(-largest_ns, largest_ns, 8)
    offsets[0] = 0
    moved = [shifted(trace, int(by), 50e-6) for trace, by in zip(traces, offsets, strict=True)]
    after = align_clocks(moved)
    assert np.abs(after.offset_ns + offsets - before.offset_ns).max() <= 10_000
    again = replay(moved, in_sample=True)
    assert again.steps[0].predicted_host_s == pytest.approx(unmoved.steps[0].predicted_host_s, abs=10e-6)
    assert [one.late_ranks[0] for one in again.collectives] == [one.late_ranks[0] for one in unmoved.collectives]
