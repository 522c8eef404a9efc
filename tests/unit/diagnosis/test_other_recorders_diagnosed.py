"""What other recorders state is diagnosed alike, and what they leave out limits the verdict."""

from __future__ import annotations

import io

import foreign_traces as foreign
import pytest
from measurements import data_path
from recorded_traces import NobodyWaits

from nodewise.diagnosis.checks import wrong_diagnosis
from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise.plugin import TraceSource
from nodewise_diagnosis.diagnoser import ReplayDiagnoser
from nodewise_traces.plugin import nodewise_trace_readers


def diagnosed(*contents: bytes) -> Diagnosis:
    traces = []
    for rank, content in enumerate(contents):
        readers = [one.reader for one in nodewise_trace_readers()]
        reader = max(readers, key=lambda one: one.recognises(content[: 64 << 10], TraceSource()))
        traces += reader.read(io.BytesIO(content), TraceSource(rank=rank))
    found = ReplayDiagnoser().diagnose(traces, Profile(), DiagnosisQuestion(), NobodyWaits())
    assert wrong_diagnosis(found) is None
    return found


@pytest.mark.parametrize(
    "content",
    [
        foreign.nsight(),
        foreign.perfetto(),
        foreign.perfetto(incremental=True),
        foreign.rocprof_tables(),
        foreign.as_json(foreign.rocprof_json()),
    ],
    ids=["nsight", "perfetto", "perfetto with differences", "rocprof tables", "rocprof json"],
)
def test_a_job_is_accounted_alike_in_every_format(content: bytes) -> None:
    found = diagnosed(content)
    (rank,) = found.ranks
    assert found.step_s == pytest.approx(0.01005, rel=0.01)
    assert rank.compute_s == pytest.approx(0.0054, rel=0.01)
    assert rank.exposed_communication_s == pytest.approx(0.0036, rel=0.01)
    assert sum(part.seconds for part in rank.parts) == pytest.approx(rank.step_s, rel=0.01)


def test_kernels_alone_say_that_hosts_are_unknown() -> None:
    found = diagnosed(foreign.rocprof_tables(only_kernels=True))
    assert "no host activity was recorded" in found.verdict
    assert found.ranks[0].compute_s == pytest.approx(0.0216, rel=0.01)


@pytest.mark.parametrize("form", [foreign.as_json, foreign.pickled], ids=["json", "pickle"])
def test_exchanges_alone_do_not_tell_what_bounds_a_job(form: object) -> None:
    assert callable(form)
    found = diagnosed(form(foreign.flight_recorder()))
    assert found.bound_by == "none"
    assert found.verdict.startswith("The bottleneck cannot be determined: only exchanges were recorded")


def test_what_takes_no_time_does_not_tell_what_bounds_a_job() -> None:
    found = diagnosed(foreign.as_json(foreign.execution_trace()))
    assert found.bound_by == "none"
    assert found.verdict.startswith("The bottleneck cannot be determined: the traces state no durations")


def test_a_ring_is_bound_by_the_network_and_nobody_waits() -> None:
    found = diagnosed(*(foreign.chakra_ring(rank, 4) for rank in range(4)))
    assert found.bound_by == "network"
    assert found.step_s == pytest.approx(200e-6)
    assert all(one.imposed_wait_s >= 0 for one in found.stragglers)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fr_rank0.json", "only exchanges were recorded"),
        ("nccl_trace_rank_0", "only exchanges were recorded"),
        ("pytorch_et.json", "the traces state no durations"),
    ],
)
def test_dumps_after_public_reports(name: str, said: str) -> None:
    found = diagnosed(data_path("cases", "other_formats", name).read_bytes())
    assert found.verdict.startswith("The bottleneck cannot be determined")
    assert said in found.verdict
