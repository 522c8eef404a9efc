"""One mapper: what goes into a message comes out of it, and what is wrong is named by its path."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pytest

from nodewise.domain.columns import Floats, as_floats, as_ints
from nodewise.domain.configurations import Configurations, Placement, SyncMode, WorkerGroup, WorkerGroups
from nodewise.domain.errors import NodewiseError
from nodewise.domain.objective import Knee
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.sharing import SharedDeviceRun, SharingMode
from nodewise.domain.workload import Network, Transformer, Workload
from nodewise.mapper.configurations import read_configurations, write_configurations
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.profiles import read_content_parts, read_profile, read_traces, write_facts, write_profile
from nodewise.mapper.reading import Reader, TrustingReader
from nodewise.ports.limits import Limits
from nodewise_protos.v1 import objective_pb2, prediction_pb2, problem_pb2, profile_pb2, sharing_pb2

RUNS = Configurations.of(
    2, nodes=[1, 2], workers=[2, 4], device="V100", sync_mode=SyncMode.ASYNC, parameter_servers=1, batch_per_worker=32
)
RUN = SharedDeviceRun(
    device="V100", mode=SharingMode.MPS, partner_profile_id="other", share=0.6, partner_share=0.7, measured_at_s=1.5
)
TRANSFORMER = Transformer(layers=12, hidden_size=768, attention_heads=12, sequence_length=512, vocabulary_size=30_522)


def profile() -> Profile:
    unknown = as_floats([-1.0, -1.0])
    timings = PhaseTimings(
        configurations=RUNS,
        download_s=as_floats([0.1, 0.2]),
        compute_s=as_floats([1.0, 1.0]),
        upload_s=as_floats([0.1, 0.3]),
        update_s=as_floats([0.01, 0.02]),
        compute_variation=as_floats([0.1, -1.0]),
        transfer_variation=unknown,
        hidden_s=as_floats([0.0, 0.1]),
        steps=as_ints([0, 100]),
    )
    return Profile(
        workload=Workload(parameter_bytes=400_000_000, transformer=TRANSFORMER),
        network=Network(link_bytes_per_s=1e9),
        phase_timings=timings,
        phase_timing_numbers=as_ints([3, 5]),
        observations=Observations.of(RUNS, as_floats([2.0, 3.5])),
        traces=(TraceReference(content_sha256="a" * 64, format="kineto", rank=-1, world_size=8, size_bytes=12),),
        shared_runs=(RUN,),
    )


def same(one: object, other: object) -> bool:
    """Columns by their numbers, everything else by ==."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, np.asarray(other))
    if hasattr(one, "__dataclass_fields__") and one.__eq__(other) is not True:
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))  # type: ignore[arg-type]  # a dataclass
    return one == other


def test_a_profile_comes_back_as_it_was() -> None:
    assert same(read_profile(write_profile(profile())), profile())


def test_a_profile_of_a_question_has_no_numbers() -> None:
    reader, stated = Reader(), profile()
    message = write_facts(stated)
    parts = read_content_parts(message, "content", reader, Limits())
    reader.finish()
    assert same(parts["phase_timings"], stated.phase_timings)
    assert parts["shared_runs"] == stated.shared_runs
    assert read_traces(message, "content", reader) == stated.traces
    assert not message.phase_timings.transfer_variation


def test_unknown_rows_of_a_column_are_told_beside_it() -> None:
    message = to_message(profile().phase_timings, profile_pb2.PhaseTimings, numbers=None)
    assert list(message.compute_variation) == [0.1, 0.0]
    assert list(message.compute_variation_known) == [True, False]


@pytest.mark.parametrize("servers", [[-1, 2], [1, 1]])
def test_rows_that_the_server_wrote_are_read_as_they_are(servers: list[int]) -> None:
    placed = Placement.of([(2,), (3, 1)])
    groups = WorkerGroups.of(
        [[WorkerGroup("V100", 2)], [WorkerGroup("V100", 3), WorkerGroup("K80", 1, 2.5)]], ("V100", "K80")
    )
    rows = RUNS.replaced(
        devices=("V100", "K80"), placement=placed, worker_groups=groups, parameter_servers=as_ints(servers)
    )
    found = read_configurations(write_configurations(rows), "rows", TrustingReader(), Limits())
    assert same(found, rows)


@dataclass(frozen=True, eq=False)
class Rows:
    """What a message of predictions holds, as a plugin's host has it."""

    step_s: Floats
    breakdown_s: dict[str, Floats]
    staleness_mean: Floats | None = None
    notices: tuple[Notice, ...] = ()


def test_columns_and_named_columns_go_both_ways() -> None:
    rows = Rows(as_floats([1.0, 2.0]), {"compute": as_floats([1.0, 2.0])}, None, (Notice("NO_SPREAD", "none", (1,)),))
    told = {each.name: None for each in prediction_pb2.Predictions.DESCRIPTOR.fields}
    stated = {"step_seconds": rows.step_s, "breakdown_seconds": rows.breakdown_s, "warnings": rows.notices}
    message = to_message(rows, prediction_pb2.Predictions, **{**told, **stated})  # type: ignore[arg-type]  # fields
    found = from_message(message, Rows)
    assert same(found.step_s, rows.step_s)
    assert same(found.breakdown_s["compute"], rows.step_s)
    assert found.staleness_mean is None
    assert found.notices == rows.notices


def test_a_column_of_another_length_is_named() -> None:
    message = prediction_pb2.Predictions(step_seconds=[1.0, 2.0, 3.0], staleness_mean_steps=[1.0, 2.0])
    with pytest.raises(NodewiseError, match="step_seconds: must have one entry, or one for each of 2 rows; found 3"):
        from_message(message, Rows, row_count=2)


def test_what_is_wrong_is_named_by_its_path() -> None:
    reader = Reader()
    from_message(objective_pb2.Knee(share=-4.0), Knee, "objective.knee.", reader)
    with pytest.raises(NodewiseError, match=r"objective\.knee\.share: must be a finite number above 0"):
        reader.finish()


def test_words_of_the_domain_are_names_of_the_contract() -> None:
    message = to_message(RUN, sharing_pb2.SharedDeviceRun)
    assert message.mode == sharing_pb2.SHARING_MODE_MPS
    assert from_message(message, SharedDeviceRun) == RUN


def test_a_notice_is_read_with_its_rows() -> None:
    assert from_message(problem_pb2.Notice(reason="A", message="b", rows=[2]), Notice) == Notice("A", "b", (2,))
