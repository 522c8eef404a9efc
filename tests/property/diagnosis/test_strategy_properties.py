"""What a strategy promises is bounded by the parts of the step that it acts on."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_traces import NobodyWaits
from simulated_gpu_jobs import Job, Stall

from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion, Strategy
from nodewise.domain.profile import Profile
from nodewise_diagnosis.diagnosing import diagnose_traces

STALLS = st.sampled_from(
    [
        Stall(name="cudaMemcpyAsync", cat="cuda_runtime", layer=0, time_us=0, copies=True),
        Stall(name="cudaMalloc", cat="cuda_runtime", layer=1, time_us=0),
        Stall(name="transforms.py(88): preprocess", cat="python_function", layer=-1, time_us=0, piece_us=200.0),
        Stall(name="<built-in function collect>", cat="python_function", layer=1, time_us=0),
        Stall(name="log.py(3): write", cat="python_function", layer=2, time_us=0),
        Stall(name="", cat="loader", layer=-1, time_us=0),
    ]
)
ACTS_ON = re.compile(r"acts on (.*), \d+\.\d+ ms of the step$")


def _diagnosed(job: Job) -> Diagnosis:
    question = DiagnosisQuestion(strategies=20, bottlenecks=50)
    return diagnose_traces(job.recorded(), Profile(), question, NobodyWaits())


def _held_s(found: Diagnosis, acts_on: list[str]) -> float:
    """What the named parts take of the step of the rank where they take most."""
    return max(
        sum(part.seconds for part in one.parts if {part.kind, f"{part.kind} ({part.what})"} & set(acts_on))
        for one in found.ranks
    )


def _parts(strategy: Strategy) -> list[str]:
    match = ACTS_ON.search(strategy.rests_on)
    assert match, strategy.rests_on
    # A comma within brackets belongs to the name of a part.
    return re.split(r", (?![^(]*\))", match[1])


@settings(max_examples=10, deadline=None)
@given(
    stall=STALLS,
    time_us=st.floats(1000.0, 30_000.0),
    ranks=st.integers(1, 3),
    kernel_us=st.sampled_from([40.0, 400.0, 1500.0]),
    synchronous=st.booleans(),
)
def test_no_strategy_gains_more_than_its_parts_hold(
    stall: Stall, time_us: float, ranks: int, kernel_us: float, synchronous: bool
) -> None:
    planted = Stall(**{name: getattr(stall, name) for name in stall.__dataclass_fields__} | {"time_us": time_us})
    found = _diagnosed(
        Job(ranks=ranks, kernel_us=kernel_us, synchronous=synchronous, stalls=(planted,), exchange_us=900.0)
    )

    assert found.strategies
    for one in found.strategies:
        gain_s = found.step_s * (1 - 1 / one.speedup)
        assert gain_s <= _held_s(found, _parts(one)) + 1e-6, one.name
        assert one.lower_step_s <= one.predicted_step_s <= one.upper_step_s
        assert one.effort


@pytest.mark.parametrize("synchronous", [True, False])
def test_combined_strategies_act_on_different_parts(synchronous: bool) -> None:
    stall = Stall(name="transforms.py(88): preprocess", cat="python_function", layer=-1, time_us=6000.0)
    found = _diagnosed(Job(ranks=2, loading_us=4000.0, synchronous=synchronous, stalls=(stall,)))
    single = {one.name: set(_parts(one)) for one in found.strategies if not one.parts}
    combined = [one for one in found.strategies if one.parts]

    assert combined
    for one in combined:
        kinds = [kind for name in one.parts for kind in single.get(name, ())]
        assert len(kinds) == len(set(kinds)), one.name


def test_what_fills_a_gap_has_a_remedy_with_its_line() -> None:
    stall = Stall(name="<built-in function collect>", cat="python_function", layer=1, time_us=8000.0, piece_us=300.0)
    found = _diagnosed(Job(ranks=1, stalls=(stall,)))
    remedy = next(one for one in found.strategies if "garbage" in one.name)

    assert "gc.freeze()" in remedy.effort
    assert "--manual-gc" in remedy.effort
    assert "garbage_collection" in remedy.rests_on
    graphs = [one for one in found.strategies if one.name.startswith("capture")]
    assert all(one.speedup < remedy.speedup for one in graphs)
