"""How much compute is taken to vary where nobody says it, and what the answer says of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from queueing_profiles import answered, mixed, observations, profile, reasons, rows, timings

from nodewise.plugin import Configurations, Fidelity, Predictions, Profile, SyncMode, WorkerGroup, as_ints

PHASES = (0.002, 0.18, 0.002, 0.001)
"""A V100 that trains a network of images; transfers stay in its node."""
PROCESSOR = "Xeon-E5-2690v4"
DEVIATIONS = 1.645


def job(device: str = "V100", cv: float = -1.0, phases: tuple[float, float, float, float] = PHASES) -> Profile:
    return profile(timings(phases, cv=cv, device=device))


def on(nodes: int, workers: Sequence[int], device: str = "V100", mode: SyncMode = SyncMode.SYNC) -> Configurations:
    return rows(workers, mode, device=device, nodes=nodes)


def told(answer: Predictions) -> str:
    return next((notice.message for notice in answer.notices if notice.reason == "UNSAID"), "")


def test_devices_of_one_node_hardly_wait_for_each_other() -> None:
    answer = answered(job(), on(1, [8]))
    assert answer.breakdown_s["barrier"][0] < 0.06 * answer.step_s[0]
    assert "compute_cv (0.04 is assumed, typical of workers with an accelerator each; 1.00 to 1.3" in told(answer)
    assert "Stating compute_cv would narrow the interval most" in told(answer)


@pytest.mark.parametrize("cv", [0.015, 0.1, 0.3])
@pytest.mark.parametrize("workers", [2, 8, 64])
def test_the_interval_contains_steps_of_other_likely_variations(cv: float, workers: int) -> None:
    unsaid, stated = (answered(job(cv=each), on(1, [workers])) for each in (-1.0, cv))
    ratio = np.log(stated.step_s[0] / unsaid.step_s[0])
    assert abs(ratio) <= DEVIATIONS * unsaid.log_spread[0] + 1e-9


def test_a_stated_variation_is_used_and_narrows_the_interval() -> None:
    unsaid, stated = (answered(job(cv=cv), on(1, [8])) for cv in (-1.0, 0.04))
    assert stated.step_s[0] == pytest.approx(unsaid.step_s[0])
    assert stated.log_spread[0] < 0.5 * unsaid.log_spread[0]
    assert not stated.notices


def test_the_notice_is_of_the_rows_that_were_asked_about() -> None:
    few, many = (told(answered(job(), on(1, [workers]))) for workers in (2, 64))
    assert few != many
    assert not told(answered(job(), on(1, [1])))


def test_shared_cores_vary_more_than_cores_of_their_own_and_these_more_than_accelerators() -> None:
    barriers = [
        answered(job(device), on(nodes, [8], device)).breakdown_s["barrier"][0]
        for device, nodes in (("V100", 1), (PROCESSOR, 8), (PROCESSOR, 1))
    ]
    assert barriers == sorted(barriers)
    assert barriers[2] > 2.0 * barriers[1]


def test_placement_tells_nothing_of_accelerators_and_of_a_stated_variation() -> None:
    for profiled, device in ((job(), "V100"), (job(PROCESSOR, 0.1), PROCESSOR)):
        together, apart = (answered(profiled, on(nodes, [8], device)) for nodes in (1, 8))
        np.testing.assert_array_equal(together.step_s, apart.step_s)


@pytest.mark.parametrize(("name", "like"), [("gpu", "V100"), ("CPU", PROCESSOR), ("8-core cpu", PROCESSOR)])
def test_a_name_tells_the_kind_of_a_device_that_the_catalogue_does_not_know(name: str, like: str) -> None:
    named, known = (answered(job(device), on(8, [8], device)) for device in (name, like))
    np.testing.assert_array_equal(named.step_s, known.step_s)


def test_a_device_that_nobody_names_may_be_of_any_kind() -> None:
    nameless, unknown, known = (answered(job(device), on(8, [8], device)) for device in ("", "thing", "V100"))
    assert known.step_s[0] < nameless.step_s[0] < unknown.step_s[0]


def test_the_device_of_a_row_counts_where_the_evidence_names_none() -> None:
    nameless = profile(timings(PHASES))
    for asked in (on(8, [8]), mixed([WorkerGroup("V100", 4), WorkerGroup("V100", 4, 1.5)], mode=SyncMode.SYNC)):
        known, taken = (answered(each, asked) for each in (job(), nameless))
        assert taken.step_s[0] == known.step_s[0]
    assert "DEVICE_ASSUMED" in reasons(answered(nameless, on(8, [8])))


@pytest.mark.parametrize("cv", [0.04, 0.3])
def test_synchronous_runs_settle_it(cv: float) -> None:
    asked = on(1, [4, 8, 16, 24, 32])
    truth = answered(job(cv=cv), asked)
    shown = observations({4: 1 / truth.step_s[0], 8: 1 / truth.step_s[1], 16: 1 / truth.step_s[2]}, SyncMode.SYNC,
                         device="V100")  # fmt: skip
    before, after = answered(job(), asked), answered(profile(timings(PHASES, device="V100"), shown), asked)
    np.testing.assert_allclose(after.step_s, truth.step_s, rtol=0.04)
    assert after.log_spread[-1] < 0.75 * before.log_spread[-1]


def test_order_of_asynchronous_workers_depends_on_it_where_the_link_is_known() -> None:
    facts = {"parameter_bytes": 4_000_000, "link_bytes_per_s": 25e6}
    phases = timings((0.16, 0.5, 0.16, 0.005), device="thing")
    known, unknown = profile(phases, **facts), profile(phases)
    asked = rows([6], device="thing")
    assert "compute_cv" in told(answered(known, asked))
    assert not told(answered(unknown, asked))


def test_classes_of_workers_are_moved_by_one_cause() -> None:
    groups = [WorkerGroup("V100", 4), WorkerGroup("V100", 4, 1.5)]
    asked = mixed(groups, mode=SyncMode.SYNC, device="V100")
    unsaid, stated = (answered(job(cv=cv), asked) for cv in (-1.0, 0.04))
    assert stated.step_s[0] == pytest.approx(unsaid.step_s[0])
    assert stated.log_spread[0] < unsaid.log_spread[0]
    assert "compute_cv" in told(unsaid)
    assert not told(stated)


def test_parts_of_a_hybrid_doubt_together() -> None:
    asked = rows([8, 8], SyncMode.HYBRID, device="V100", hybrid_sync_fraction=[0.9, 0.1])
    answer = answered(job(), asked.replaced(nodes=as_ints([1, 1])))
    assert answer.log_spread[0] > answer.log_spread[1]
    assert "compute_cv" in told(answer)


def test_a_simulation_tells_what_it_takes() -> None:
    answer = answered(job(), on(1, [4]), fidelity=Fidelity.SIMULATE, simulated_steps=200)
    assert reasons(answer) == {"SIMULATED", "UNSAID"}
    assert "not covered by the interval of a simulation: compute_cv (0.04 is assumed" in told(answer)
