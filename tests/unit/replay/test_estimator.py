"""The replay estimator: what it answers from traces alone, with measured runs beside them, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from recorded_jobs import gloo_job
from recorded_traces import Recorder

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Observations, Profile, TraceReference
from nodewise.domain.trace import Trace
from nodewise.domain.workload import Network
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question
from nodewise.hosting.registry import load_registry
from nodewise.plugin import Catalogue, Prior, Query
from nodewise_replay.estimator import ReplayEstimator

BASE = "ddp_2_ranks_3_buckets"
ALLREDUCE, SYNC, ASYNC = SyncMode.ALLREDUCE, SyncMode.SYNC, SyncMode.ASYNC


@dataclass
class Read:
    """A context of nothing but traces."""

    read: Sequence[Trace]
    prior: Prior | None = None
    catalogue: Catalogue = field(default_factory=Catalogue)
    seed: int = 0

    def traces(self) -> Sequence[Trace]:
        return self.read

    def model(self, estimator: str) -> Any:
        raise AssertionError(estimator)


def profile_of(traces: Sequence[Trace], **known: Any) -> Profile:
    references = tuple(
        TraceReference(
            content_sha256=f"{place:064x}", format="kineto", rank=one.rank, world_size=one.world_size, size_bytes=1
        )
        for place, one in enumerate(traces)
    )
    return Profile(digest=f"{len(traces)}{sorted(known)}", traces=references, **known)


def rows(*workers: int, mode: SyncMode = ALLREDUCE, servers: int = 0, **columns: Any) -> Configurations:
    known = {"nodes": list(workers), "workers": list(workers), "sync_mode": mode, "parameter_servers": servers}
    return Configurations.of(len(workers), **{**known, **columns})


def predicted(traces: Sequence[Trace], asked: Configurations, **known: Any) -> Predictions:
    return ReplayEstimator().fit(profile_of(traces, **known), Read(traces)).predict(asked, Options())


def observed(workers: int, step_s: float, **columns: Any) -> Observations:
    return Observations.of(rows(workers, **columns), as_floats([1 / step_s]))


def test_without_traces_it_refuses_and_says_what_is_missing() -> None:
    found = ReplayEstimator().assess(Profile(), Query(configurations=rows(2)))
    assert found.refusal is not None
    assert found.refusal.missing_fields == ("traces",)


def test_more_ranks_and_several_recordings_are_stronger_evidence() -> None:
    two, four = list(gloo_job(BASE)), list(gloo_job("ddp_4_ranks_3_buckets"))

    def strength(traces: list[Trace]) -> float:
        return ReplayEstimator().assess(profile_of(traces), Query(configurations=rows(4))).strength

    assert strength(two[:1]) < strength(two) < strength(two + four)
    told = ReplayEstimator().assess(profile_of(two[:1] + four), Query(configurations=rows(4))).evidence
    assert told == ("traces of 1 of 2 ranks", "traces of 4 of 4 ranks")


def test_rows_are_answered_with_parts_that_add_up() -> None:
    found = predicted(gloo_job(BASE), rows(1, 2, 3, 4, 8, 64))
    assert found.all_answered
    assert (np.diff(found.step_s) > 0).all()
    assert set(found.breakdown_s) == {"compute", "communication", "waiting", "host"}
    assert np.sum(list(found.breakdown_s.values()), axis=0) == pytest.approx(found.step_s)
    assert all((part >= 0).all() for part in found.breakdown_s.values())
    # Eight layers of 18 ms; the last bucket of 400 kB over 25 MB/s and the wait for the one before it.
    assert found.breakdown_s["compute"] == pytest.approx(0.148, rel=0.05)
    assert found.breakdown_s["communication"][:2] == pytest.approx([0.0, 0.018], abs=0.003)
    assert found.extrapolation.tolist() == [1, 1, 1.5, 2, 4, 32]
    assert (found.log_spread > 0).all()
    reasons = {notice.reason for notice in found.notices}
    assert reasons == {"PERSISTENCE", "RECORDED_STEPS"}


def test_rows_do_not_depend_on_each_other() -> None:
    model = ReplayEstimator().fit(profile_of(gloo_job(BASE)), Read(gloo_job(BASE)))
    together = model.predict(rows(8, 2, 8, 4), Options())
    for row, workers in enumerate((8, 2, 8, 4)):
        alone = model.predict(rows(workers), Options())
        assert alone.step_s[0] == together.step_s[row]
        assert alone.log_spread[0] == together.log_spread[row]


def test_the_nearest_recording_answers() -> None:
    two, four = list(gloo_job(BASE)), list(gloo_job("ddp_4_ranks_3_buckets"))
    both = predicted([*four, *two], rows(2, 4, 8))
    assert both.step_s[0] == predicted(two, rows(2)).step_s[0]
    assert both.step_s[1:].tolist() == predicted(four, rows(4, 8)).step_s.tolist()
    assert both.extrapolation.tolist() == [1, 1, 2]


def test_several_recordings_of_a_world_are_told_apart_and_said() -> None:
    first, last = list(gloo_job(BASE)), list(gloo_job("ddp_2_ranks_1_bucket"))
    found = predicted([*first, *last], rows(2))
    assert found.step_s[0] == predicted(last, rows(2)).step_s[0]
    assert "SEVERAL_RECORDINGS" in {notice.reason for notice in found.notices}


def test_a_straggler_is_waited_for() -> None:
    found = predicted(gloo_job("ddp_4_ranks_straggler"), rows(4))
    # One of four ranks takes 1.3 times 144 ms: on average the others wait for three quarters of the difference.
    assert found.breakdown_s["waiting"][0] == pytest.approx(0.75 * 0.3 * 0.144, rel=0.2)


def test_measured_runs_correct_what_the_recorder_added() -> None:
    plain = predicted(gloo_job(BASE), rows(2, 4))
    found = predicted(gloo_job(BASE), rows(2, 4), observations=observed(2, 0.15))
    assert found.step_s[0] == pytest.approx(0.15)
    assert np.diff(found.step_s) == pytest.approx(np.diff(plain.step_s), rel=0.2)
    assert np.sum(list(found.breakdown_s.values()), axis=0) == pytest.approx(found.step_s)
    slower = predicted(gloo_job(BASE), rows(2), observations=observed(2, 0.2))
    assert slower.breakdown_s["host"][0] - plain.breakdown_s["host"][0] == pytest.approx(0.2 - plain.step_s[0])


def test_another_link_needs_the_recorded_one() -> None:
    known = {"network": Network(link_bytes_per_s=25e6)}
    found = predicted(gloo_job("ddp_4_ranks_3_buckets"), rows(4, link_bytes_per_s=100e6), **known)
    # Measured without a profiler over such a link.
    assert found.step_s[0] == pytest.approx(0.1673, rel=0.1)
    refused = predicted(gloo_job(BASE), rows(4, link_bytes_per_s=100e6)).refusals[0].refusal
    assert refused.missing_fields == ("network.link_bytes_per_s",)


def test_a_parameter_server_is_recognised() -> None:
    traces = gloo_job("parameter_server_4_ranks")
    found = predicted(traces, rows(1, 2, 3, 5, 200, mode=SYNC, servers=1))
    assert found.all_answered
    assert found.step_s[0] == pytest.approx(0.2857, rel=0.1)
    # Each worker is sent 1.6 MB over 25 MB/s; so it goes on where not every one is replayed.
    assert np.diff(found.step_s[:4]) == pytest.approx([0.065, 0.065, 0.13], rel=0.15)
    assert found.step_s[4] - found.step_s[3] == pytest.approx(195 * 0.065, rel=0.15)
    assert predicted(traces, rows(3)).refusals[0].refusal.reason == Reason.UNSUPPORTED_CONFIGURATION
    assert predicted(traces, rows(3, mode=SYNC, servers=2)).refusals[0].refusal.reason == (
        Reason.UNSUPPORTED_CONFIGURATION
    )


@pytest.mark.parametrize(
    ("asked", "known", "words"),
    [
        (rows(2, mode=SYNC, servers=1), {}, "by all-reduce"),
        (rows(2, batch_per_worker=8), {}, "the recorded batch is not known"),
        (rows(2, batch_per_worker=8), {"observations": observed(2, 0.2, batch_per_worker=16)}, "recorded: 16"),
        (rows(2, device="H100"), {"observations": observed(2, 0.2, device="V100")}, "no trace was recorded on H100"),
        (rows(2).replaced(accumulation=as_ints([4])), {}, "4 micro-steps"),
    ],
)
def test_what_was_not_recorded_is_refused_row_by_row(asked: Configurations, known: dict[str, Any], words: str) -> None:
    found = predicted(gloo_job(BASE), Configurations.concatenated([asked, rows(2, device=asked.devices[0])]), **known)
    assert words in found.refusals[0].refusal.message
    assert found.status.tolist()[0] == 2
    assert found.step_s[0] == 0
    assert found.bottleneck_index[0] == -1


def test_asynchronous_training_is_refused_without_reading_anything() -> None:
    found = ReplayEstimator().assess(profile_of(gloo_job(BASE)), Query(configurations=rows(2, mode=ASYNC, servers=1)))
    assert found.refusal is not None
    assert found.refusal.reason == Reason.UNSUPPORTED_CONFIGURATION


def test_one_rank_without_exchanges_says_nothing_of_several() -> None:
    record = Recorder()
    for number, begin in enumerate((0, 1000, 2000), start=1):
        record.step(number, begin, begin + 900)
        record.event("work", begin + 100, begin + 800)
    found = predicted([record.trace()], rows(1, 2))
    assert found.status.tolist() == [1, 2]
    # From where one step is over to where the next one is: what passes between their marks counts.
    assert found.step_s[0] == pytest.approx(1000e-6, rel=0.01)
    assert found.refusals[0].refusal.missing_fields == ("traces.collectives",)


def test_ranks_without_a_trace_are_said() -> None:
    found = predicted(list(gloo_job(BASE))[:1], rows(2, 4))
    assert found.all_answered
    assert "RANKS_MISSING" in {notice.reason for notice in found.notices}


def test_two_jobs_in_one_profile_are_refused() -> None:
    traces = [*gloo_job(BASE), *gloo_job("parameter_server_4_ranks")]
    with pytest.raises(NodewiseError) as caught:
        ReplayEstimator().fit(profile_of(traces), Read(traces))
    assert caught.value.reason == Reason.CONTRADICTORY_FACTS


def chosen(traces: Sequence[Trace], asked: Configurations, **known: Any) -> Answer:
    engine = Answers(load_registry(), traces=lambda _: traces)
    return engine.answer(Question(profile=profile_of(traces, **known), configurations=asked))


def test_the_choice_takes_it_where_there_are_traces_alone() -> None:
    found = chosen(gloo_job(BASE), rows(1, 2, 4))
    assert found.basis.estimator == "replay"
    assert found.predictions.all_answered


def test_the_choice_is_no_worse_with_measured_runs() -> None:
    found = chosen(gloo_job(BASE), rows(4, device="CPU"), observations=observed(2, 0.1741, device="CPU"))
    # Four ranks as measured without a profiler.
    assert found.predictions.step_s[0] == pytest.approx(0.1999, rel=0.1)
    other = chosen([], rows(4, device="V100"), observations=observed(2, 0.1741, device="V100"))
    assert other.basis.estimator == "scaling"
