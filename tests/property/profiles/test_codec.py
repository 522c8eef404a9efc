"""Whatever may be sent is stored and read to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_batches import rows_of

from nodewise.domain.configurations import Configurations, Placement, WorkerGroup, WorkerGroups
from nodewise.domain.facts import CONFIGURATION_DEFAULTS, OBSERVATION_DEFAULTS, PHASE_DEFAULTS
from nodewise.domain.profile import Observations, PhaseTimings, Profile
from nodewise.domain.workload import Layer, Network, Workload
from nodewise.profiles.batches import Batch, content_hash, encode_batch
from nodewise.profiles.codec import (
    facts_from_json,
    facts_to_json,
    runs_from_payloads,
)
from nodewise.profiles.digest import content_digest

INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**63 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def columns(draw: st.DrawFn, defaults: dict[str, Any], rows: int) -> dict[str, Any]:
    """A few columns differ from row to row, the rest are constant or hold their default."""
    found: dict[str, Any] = {}
    for name, default in defaults.items():
        values = FLOATS if isinstance(default, float) else INTEGERS
        how = draw(st.sampled_from(["default", "default", "default", "constant", "varied"]))
        kind = np.float64 if isinstance(default, float) else np.int64
        if how == "varied":
            found[name] = np.array(draw(st.lists(values, min_size=rows, max_size=rows)), dtype=kind)
        else:
            found[name] = np.full(rows, default if how == "default" else draw(values), dtype=kind)
    return found


@st.composite
def configurations(draw: st.DrawFn, rows: int) -> Configurations:
    found = columns(draw, dict(CONFIGURATION_DEFAULTS), rows)
    for names, index in (("devices", "device_index"), ("precisions", "precision_index")):
        found[names] = tuple(draw(st.lists(NAMES, min_size=1, max_size=3)))
        codes = st.integers(0, len(found[names]) - 1)
        found[index] = np.array(draw(st.lists(codes, min_size=rows, max_size=rows)), dtype=np.int64)
    placements = st.lists(st.lists(st.integers(1, 8), max_size=2), min_size=rows, max_size=rows)
    placement = draw(st.none() | placements.map(Placement.of))
    group = st.builds(WorkerGroup, st.sampled_from(found["devices"]), st.integers(1, 8), FLOATS)
    rows_groups = st.lists(st.lists(group, max_size=2), min_size=rows, max_size=rows)
    groups = draw(st.none() | rows_groups.map(lambda listed: WorkerGroups.of(listed, found["devices"])))
    return Configurations(**found, placement=placement, worker_groups=groups)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    rows, timed = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    return Batch(
        sequence_number=draw(st.integers(1, 2**62)),
        observations=Observations(
            configurations=draw(configurations(rows)),
            number=np.zeros(rows, dtype=np.int64),
            **columns(draw, dict(OBSERVATION_DEFAULTS), rows),
        ),
        phase_timings=PhaseTimings(
            configurations=draw(configurations(timed)), **columns(draw, dict(PHASE_DEFAULTS), timed)
        ),
        commit=draw(st.booleans()),
    )


@settings(max_examples=24, deadline=None, derandomize=True)
@given(st.lists(batches(), min_size=1, max_size=3))
def test_rows_survive(sent: list[Batch]) -> None:
    timings, observations = runs_from_payloads(encode_batch(batch).payload for batch in sent)
    wanted = Observations.concatenated([batch.observations for batch in sent])
    # repr() tells -0.0 from 0.0.
    assert repr(rows_of(observations)) == repr(rows_of(wanted))
    assert repr(rows_of(timings)) == repr(rows_of(PhaseTimings.concatenated([batch.phase_timings for batch in sent])))
    assert content_digest(Profile(phase_timings=timings, observations=observations)) == content_digest(
        Profile(phase_timings=PhaseTimings.concatenated([batch.phase_timings for batch in sent]), observations=wanted)
    )


@settings(max_examples=16, deadline=None, derandomize=True)
@given(batches())
def test_what_was_read_has_the_hash_of_what_was_sent(sent: Batch) -> None:
    timings, observations = runs_from_payloads([encode_batch(sent).payload])
    again = Batch(sequence_number=1, phase_timings=timings, observations=observations, commit=sent.commit)
    assert content_hash(again) == content_hash(sent)


LAYERS = st.lists(
    st.builds(
        Layer,
        name=NAMES,
        kind=NAMES,
        forward_flops_per_sample=FLOATS,
        parameter_bytes=COUNTS,
        activation_bytes_per_sample=FLOATS,
        halo_bytes_per_sample=st.none() | FLOATS,
    ),
    max_size=3,
).map(tuple)


@settings(max_examples=24, deadline=None, derandomize=True)
@given(
    st.builds(
        Workload,
        model_name=st.none() | NAMES,
        parameter_bytes=st.none() | COUNTS,
        flops_per_sample=st.none() | FLOATS,
        layers=st.none() | LAYERS,
    ),
    st.builds(Network, half_duplex=st.none() | st.booleans(), round_trip_s=st.none() | FLOATS),
)
def test_facts_survive(workload: Workload, network: Network) -> None:
    assert facts_from_json(Workload, orjson.loads(orjson.dumps(facts_to_json(workload, "")))) == workload
    assert facts_from_json(Network, orjson.loads(orjson.dumps(facts_to_json(network, "")))) == network
