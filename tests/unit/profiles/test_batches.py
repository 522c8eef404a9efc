"""The canonical form of batches."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import orjson
import pytest
from profile_batches import NETWORK, WORKLOAD, batch, observations, rows_of, varied_observations, varied_timings

from nodewise.domain.configurations import Configurations, Placement
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.facts import CONFIGURATION_DEFAULTS, OBSERVATION_DEFAULTS, PHASE_DEFAULTS
from nodewise.domain.profile import Observations, PhaseTimings
from nodewise.domain.workload import Network, Workload
from nodewise.profiles import codec
from nodewise.profiles.batches import Batch, TraceChunk, content_hash, encode_batch
from nodewise.profiles.codec import PayloadError, facts_from_json, facts_to_json, runs_from_payloads


def test_sequence_numbers_start_at_1() -> None:
    with pytest.raises(NodewiseError) as caught:
        batch(0)
    assert caught.value.violations[0].field == "sequence_number"


def test_the_format_holds_every_column_of_the_domain_with_its_default() -> None:
    columns = {*CONFIGURATION_DEFAULTS, *codec.DICTIONARIES, *codec.DICTIONARIES.values()}
    assert {*columns, "placement", "worker_groups"} == {f.name for f in fields(Configurations)}
    assert {*PHASE_DEFAULTS, "configurations"} == {f.name for f in fields(PhaseTimings)}
    assert {*OBSERVATION_DEFAULTS, "configurations", "number"} == {f.name for f in fields(Observations)}
    default = Configurations.of(1)
    for name, value in CONFIGURATION_DEFAULTS.items():
        assert getattr(default, name)[0] == value
        assert getattr(default, name).dtype.kind == ("f" if isinstance(value, float) else "i")


def test_defaults_are_left_out_and_constants_are_written_once() -> None:
    configurations = Configurations.of(3, nodes=2, workers=[1, 2, 4], device="V100")
    rows = Observations.of(configurations, np.array([0.5, 0.5, 0.5]))
    stored = orjson.loads(encode_batch(Batch(sequence_number=5, observations=rows)).payload)
    assert stored == {
        "v": 1,
        "observations": {
            "rows": 3,
            "steps_per_s": 0.5,
            "configurations": {"nodes": 2, "workers": [1, 2, 4], "devices": "V100"},
        },
    }
    assert orjson.loads(encode_batch(batch(1)).payload) == {"v": 1}


def test_the_stored_form_is_that_of_the_first_release() -> None:
    """A change of these bytes makes retries across an upgrade look like conflicts, and stored profiles unreadable."""
    sent = batch(9, 1.5, 2.5, workload=Workload(parameter_bytes=8, epochs=0.1), commit=True)
    assert encode_batch(sent).payload == (
        b'{"commit":true,"observations":{"configurations":{"devices":"V100","nodes":[1,2],"parameter_servers":1,'
        b'"sync_mode":1,"workers":[1,2]},"rows":2,"steps_per_s":[1.5,2.5]},"v":1,'
        b'"workload":{"epochs":0.1,"parameter_bytes":8}}'
    )


def test_the_hash_knows_content_and_not_the_number() -> None:
    first = batch(1, 1.0, workload=WORKLOAD)
    assert content_hash(first) == content_hash(replace(first, sequence_number=2))
    others = [
        replace(first, commit=True),
        replace(first, network=NETWORK),
        replace(first, workload=replace(WORKLOAD, tensors=17)),
        replace(first, observations=observations(1.5)),
        replace(first, observations=observations(-0.0)),
        replace(first, observations=observations(0.0)),
        replace(first, observations=observations(1.0, device="P100")),
        replace(first, phase_timings=varied_timings(1, 0)),
        replace(first, trace_chunks=(TraceChunk(trace_id="t", data=b"a"),)),
        replace(first, trace_chunks=(TraceChunk(trace_id="t", data=b"b"),)),
        replace(first, trace_chunks=(TraceChunk(trace_id="t", data=b"b", last=True),)),
        replace(first, trace_chunks=(TraceChunk(trace_id="t", data=b"b", offset_bytes=1),)),
    ]
    assert len({content_hash(other) for other in [first, *others]}) == len(others) + 1


def test_the_hash_does_not_know_how_dictionaries_are_ordered() -> None:
    one = observations(1.0, 2.0)
    index = np.array([0, 1])
    left = replace(one, configurations=one.configurations.replaced(devices=("a", "b"), device_index=index))
    right = replace(one, configurations=one.configurations.replaced(devices=("x", "b", "a"), device_index=2 - index))
    assert rows_of(left) == rows_of(right)
    assert content_hash(batch(1, observations=left)) == content_hash(batch(1, observations=right))
    strided = replace(one, steps_per_s=np.array([1.0, 0.0, 2.0, 0.0])[::2])
    assert content_hash(batch(1, observations=strided)) == content_hash(batch(1, observations=one))


def test_many_batches_are_read_as_one_table() -> None:
    parts = [varied_observations(3, 1), observations(1.0), observations(1.0), varied_observations(1, 2)]
    payloads = [encode_batch(batch(1, observations=part)).payload for part in parts]
    timings, found = runs_from_payloads(payloads)
    assert rows_of(found) == rows_of(Observations.concatenated(parts))
    assert len(timings) == 0
    assert "V100" in found.configurations.device_names()


def test_large_batches_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [varied_observations(3, seed) for seed in range(5)]
    timings = [varied_timings(2, seed) for seed in range(5)]
    payloads = [
        encode_batch(batch(1, observations=part, phase_timings=timed)).payload for part, timed in zip(parts, timings)
    ]
    monkeypatch.setattr(codec, "_TOGETHER_BYTES", len(payloads[0]))
    found_timings, found = runs_from_payloads(payloads)
    assert rows_of(found) == rows_of(Observations.concatenated(parts))
    assert rows_of(found_timings) == rows_of(PhaseTimings.concatenated(timings))


def test_constant_columns_keep_the_sign_of_zero_and_are_shared_when_short() -> None:
    def read(*values: float) -> list[str]:
        rows = [replace(observations(1.0), exposed_sync_s=np.array([value])) for value in values]
        _, found = runs_from_payloads([encode_batch(batch(1, observations=row)).payload for row in rows])
        return [str(value) for value in found.exposed_sync_s.tolist()]

    assert read(0.0, 0.0) == ["0.0", "0.0"]
    assert read(-0.0) == ["-0.0"]
    assert read(-0.0, -0.0) == ["-0.0", "-0.0"]
    assert read(0.0, -0.0) == ["0.0", "-0.0"]
    mixed = replace(observations(1.0, 1.0, 1.0), exposed_sync_s=np.array([0.0, -0.0, 0.0]))
    _, found = runs_from_payloads([encode_batch(batch(1, observations=mixed)).payload])
    assert repr(found.exposed_sync_s.tolist()) == "[0.0, -0.0, 0.0]"
    many = [encode_batch(batch(1, observations=observations(*[2.0] * 300))).payload] * 2
    _, found = runs_from_payloads(many)
    assert set(found.steps_per_s.tolist()) == {2.0}
    assert not found.steps_per_s.flags.writeable


def test_explicit_placements_stay_with_their_rows() -> None:
    one = observations(1.0, 2.0, 3.0)
    placed = one.configurations.replaced(placement=Placement.of([[], [4, 4], [8]]))
    payloads = [encode_batch(batch(1, observations=observations(9.0))).payload]
    payloads.append(encode_batch(batch(2, observations=replace(one, configurations=placed))).payload)
    _, found = runs_from_payloads(payloads)
    assert found.configurations.placement is not None
    assert [found.configurations.placement.row(row) for row in range(4)] == [(), (), (4, 4), (8,)]
    packed = one.configurations.replaced(placement=Placement.of([[], [], []]))
    assert content_hash(batch(1, observations=replace(one, configurations=packed))) == content_hash(
        batch(1, observations=one)
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [1, 3])
def test_numbers_that_are_not_finite_are_refused_with_their_place(bad: float, rows: int) -> None:
    values = np.ones(rows)
    values[-1] = bad
    sent = replace(observations(*[1.0] * rows), step_variation=values)
    with pytest.raises(NodewiseError) as caught:
        encode_batch(batch(1, observations=sent))
    assert caught.value.violations[0].field == f"observations.step_variation[{rows - 1}]"
    with pytest.raises(NodewiseError) as caught:
        facts_to_json(replace(WORKLOAD, layers=(replace(WORKLOAD.layers[0], parameter_bytes=bad),)), "workload")  # type: ignore[index]
    assert caught.value.violations[0].field == "workload.layers[0].parameter_bytes"


def test_columns_of_another_length_and_indices_outside_are_refused() -> None:
    rows = observations(1.0, 2.0)
    for wrong in (
        replace(rows, steps=np.zeros(3, dtype=np.int64)),
        replace(rows, configurations=rows.configurations.replaced(device_index=np.array([0, 1]))),
        replace(rows, configurations=rows.configurations.replaced(device_index=np.array([-1, 0]))),
    ):
        with pytest.raises(NodewiseError) as caught:
            encode_batch(batch(1, observations=wrong))
        assert caught.value.reason == Reason.INVALID_FIELD


def test_facts_survive() -> None:
    for kind, facts in ((Workload, WORKLOAD), (Network, NETWORK), (Workload, Workload()), (Network, Network())):
        stored = orjson.loads(orjson.dumps(facts_to_json(facts, "facts")))
        assert facts_from_json(kind, stored) == facts
    assert facts_from_json(Network, {"half_duplex": False}).half_duplex is False
    with pytest.raises(PayloadError):
        facts_from_json(Network, {"of_a_later_release": 1})


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{}",
        b'{"v":2}',
        b'{"v":1,"observations":{}}',
        b'{"v":1,"observations":{"rows":"x"}}',
        b'{"v":1,"observations":{"rows":1,"steps":["x"]}}',
    ],
)
def test_bytes_that_are_no_batch_are_told(payload: bytes) -> None:
    with pytest.raises(PayloadError):
        runs_from_payloads([payload])


def test_says_what_it_holds() -> None:
    assert not batch(1, commit=True).has_content
    assert batch(1, 1.0).has_content
    assert not batch(1, 1.0).has_facts
    assert batch(1, network=Network(half_duplex=False)).has_facts
    assert batch(1, phase_timings=varied_timings(1, 0)).has_content
    chunk = TraceChunk(trace_id="t", data=b"x" * 1_000_000)
    assert batch(1, trace_chunks=(chunk,)).estimated_bytes > 1_000_000
    assert batch(1, *[1.0] * 1000).estimated_bytes > 100_000
