"""Values on their way to the wire."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nodewise_client
from nodewise_client import (
    Configurations,
    Layer,
    Network,
    Observation,
    Observations,
    PhaseTimings,
    ProfileContent,
    Recomputation,
    SyncMode,
    TraceReference,
    Transformer,
    Work,
    WorkerGroup,
    Workload,
    _columns,
    _enums,
    _evidence,
)
from nodewise_client._configurations import COLUMNS, configurations_from_wire, configurations_to_wire

counts = st.integers(1, 1000)
values = {
    **dict.fromkeys(COLUMNS, counts),
    "device": st.sampled_from(["V100", "P100", "K80"]),
    "sync": st.sampled_from([*SyncMode, None]),
    "recompute": st.sampled_from([*Recomputation, None]),
    "precision": st.sampled_from(["fp16", "fp32"]),
    "sequence_parallel": st.booleans(),
    "link_bytes_per_s": st.floats(1, 1e12),
    "hybrid_sync_fraction": st.floats(0, 1),
    "hybrid_switch_s": st.floats(0, 1e6),
    "placement": st.lists(counts, max_size=4).map(tuple),
}
groups = st.builds(WorkerGroup, workers=counts, device=st.sampled_from(["V100", "K80"]), compute_factor=st.floats(1, 9))
values["groups"] = st.lists(groups, min_size=1, max_size=3).map(tuple)


@st.composite
def configurations(draw):
    rows = draw(st.integers(2, 5))
    columns = {}
    for name in draw(st.sets(st.sampled_from(COLUMNS))):
        size = draw(st.sampled_from([1, rows]))
        columns[name] = draw(st.lists(values[name], min_size=size, max_size=size))
    return Configurations(**columns)


@given(configurations())
def test_configurations_survive_the_wire(given_configurations):
    message = configurations_to_wire(given_configurations)
    assert configurations_from_wire(type(message).FromString(message.SerializeToString())) == given_configurations


def test_groups_name_their_devices_together_or_not_at_all():
    row = [WorkerGroup(workers=3), WorkerGroup(workers=1, compute_factor=2.0)]
    configurations = Configurations(device="V100", groups=[row])
    message = configurations_to_wire(configurations)
    assert (list(message.group_workers), list(message.group_compute_factors)) == ([3, 1], [1.0, 2.0])
    assert not message.group_device_indexes
    assert configurations_from_wire(message) == configurations
    with pytest.raises(ValueError, match="every group names its device, or none does"):
        configurations_to_wire(Configurations(groups=[[WorkerGroup(workers=1), WorkerGroup(workers=1, device="K80")]]))


def test_a_value_stands_for_a_column_and_iterators_are_read_once():
    columns = Configurations(nodes=(number for number in (1, 2)), sync="async", device="V100")
    assert (columns.nodes, columns.sync, columns.device, len(columns)) == ((1, 2), ("async",), ("V100",), 2)
    message = configurations_to_wire(columns)
    assert configurations_to_wire(columns) == message
    assert (list(message.device_names), list(message.device_indexes)) == (["V100"], [])
    assert Configurations()
    assert len(Configurations()) == 0


def test_a_word_that_is_none_is_named_with_those_that_are():
    with pytest.raises(ValueError, match=r"'ring' is none of 'async', 'sync', 'allreduce', 'hybrid'"):
        configurations_to_wire(Configurations(sync="ring"))


def test_every_word_has_a_number_of_its_own():
    for name, table in vars(_enums).items():
        if isinstance(table, dict) and name.isupper():
            assert len(set(table.values())) == len(table), name
            assert all(_enums.to_word(table, number) == word for word, number in table.items())
            assert 0 not in table.values()


def test_columns_of_two_lengths_are_refused():
    with pytest.raises(ValueError, match="nodes has 2 values for 3 rows"):
        _evidence.observation_columns(
            Observations(configurations=Configurations(nodes=[1, 2]), steps_per_s=[1.0, 2.0, 3.0])
        )
    assert _columns.broadcast((), 3, "x") == ()


def test_observations_that_state_different_things_cannot_share_columns():
    rows = [
        Observation(configuration=Configurations(nodes=1), steps_per_s=1.0),
        Observation(configuration=Configurations(workers=2), steps_per_s=1.0),
    ]
    with pytest.raises(ValueError, match="nodes, workers"):
        _evidence.observations_to_wire(rows)
    with pytest.raises(ValueError, match="has 2 rows"):
        _evidence.observations_to_wire([Observation(configuration=Configurations(nodes=[1, 2]), steps_per_s=1.0)])
    with pytest.raises(ValueError, match="numbered by the server"):
        _evidence.observations_to_wire(
            Observations(configurations=Configurations(nodes=1), steps_per_s=1.0, numbers=[1])
        )


def test_a_profile_survives_the_wire():
    content = ProfileContent(
        workload=Workload(
            model_name="m",
            parameter_bytes=0,
            tensors=3,
            flops_per_sample=1e9,
            samples_per_epoch=10,
            epochs=0.5,
            transformer=Transformer(
                layers=2,
                hidden_size=8,
                attention_heads=2,
                sequence_length=16,
                vocabulary_size=100,
                experts=4,
                experts_per_token=2,
                head_size=16,
                gated_feed_forward=True,
                untied_embeddings=True,
                expert_feed_forward_size=12,
                shared_expert_feed_forward_size=24,
                expert_layers=1,
            ),
            layers=[Layer(name="l", kind="dense", forward_flops_per_sample=1.0, parameter_bytes=2)],
            framework="pytorch",
            optimizer="adam",
            precision="fp16",
        ),
        network=Network(
            link_bytes_per_s=1.0, half_duplex=False, worker_link_bytes_per_s=2.0, per_message_s=0.1, round_trip_s=0.2
        ),
        phase_timings=PhaseTimings(
            compute_s=[0.1, 0.2],
            download_s=[0.1],
            upload_s=[0.1],
            update_s=[0.0],
            compute_cv=[0.1, None],
            hidden_s=[0.0],
            steps=[10],
            configurations=Configurations(nodes=[1, 2]),
        ),
        observations=Observations(
            configurations=Configurations(nodes=[1, 2]),
            steps_per_s=[1.0, 2.0],
            measured_at=[datetime(2026, 1, 1, tzinfo=UTC), None],
        ),
        traces=[TraceReference(content_sha256="00", format="kineto", rank=1, world_size=2, size_bytes=3)],
    )
    message = _evidence.content_to_wire(content)
    assert _evidence.content_from_wire(type(message).FromString(message.SerializeToString())) == content
    assert _evidence.content_from_wire(_evidence.content_to_wire(ProfileContent())) == ProfileContent()


def test_one_timed_run_needs_no_sequences():
    timings = PhaseTimings.one(compute_s=0.2, upload_s=0.1, compute_cv=0.05, configuration=Configurations(workers=1))
    assert len(timings) == 1
    assert (timings.compute_s, timings.transfer_cv) == ((0.2,), ())


@pytest.mark.parametrize("keywords", [{}, {"samples": 1.0, "epochs": 1.0}])
def test_work_is_samples_or_epochs(keywords):
    with pytest.raises(ValueError, match="one of the two"):
        Work(**keywords)


def test_the_public_names_are_there_frozen_and_told():
    for name in nodewise_client.__all__:
        found = getattr(nodewise_client, name)
        assert found.__doc__, name
        if dataclasses.is_dataclass(found):
            assert found.__dataclass_params__.frozen, name
