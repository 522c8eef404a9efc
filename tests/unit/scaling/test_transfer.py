"""A job on a device that it never ran on, and over a link that no run had."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scaling_profiles import (
    EIGHT,
    TEN,
    Law,
    Scale,
    answered,
    assessed,
    fitted,
    full,
    job,
    joined,
    notices,
    predicted,
    profile,
    refused,
    rows,
    several,
    summed,
)

from nodewise.plugin import Configurations, Options, Profile, Reason, WorkerGroup, WorkerGroups, Workload, as_floats

HEAVY = Law(fixed_s=0.05, sample_s=0.1)
"""Compute of 0.45 s and more: what a host adds is little of it."""

GIGABIT = 0.125e9


def over(link: float | list[float], configurations: Configurations) -> Configurations:
    """The same rows over a link."""
    links = link if isinstance(link, list) else [link] * len(configurations)
    return configurations.replaced(link_bytes_per_s=as_floats(links))


def ran_over(link: float, law: Law = HEAVY, device: str = "T4") -> Profile:
    return profile(over(link, rows(EIGHT, device=device)), law.step_s(EIGHT))


# --- another device


def test_a_device_that_the_job_never_ran_on_is_answered_by_facts_and_says_so() -> None:
    asked = rows(full([1, 2, 8]), device="V100")
    answer = answered(job(HEAVY), asked)
    assert "V100" in notices(answer)["TRANSFERRED"]
    assert "T4" in notices(answer)["TRANSFERRED"]
    assert "memory bandwidth" in notices(answer)["TRANSFERRED"]
    assert "what the hosts add" in notices(answer)["TRANSFERRED"]
    np.testing.assert_allclose(summed(answer), answer.step_s, rtol=1e-9)
    # Facts say 1.9 times as fast by arithmetic and 2.8 by memory.
    compute = answered(job(HEAVY), rows(full([1, 2, 8]))).breakdown_s["compute"]
    assert np.all(answer.breakdown_s["compute"] < compute / 1.8)
    assert np.all(answer.breakdown_s["compute"] > compute / 3.0)


def test_what_was_not_measured_there_has_wider_intervals() -> None:
    elsewhere = answered(job(HEAVY, TEN), rows(full([1, 2, 8]), device="V100"))
    there = answered(job(HEAVY, TEN, device="V100"), rows(full([1, 2, 8]), device="V100"))
    assert np.all(elsewhere.log_spread > 2.0 * there.log_spread)


def test_a_device_is_known_by_any_of_its_names() -> None:
    by_name, by_other = (answered(job(), rows(full([1, 3, 8]), device=name)) for name in ("T4", "NVIDIA Tesla T4"))
    assert by_other.step_s.tolist() == by_name.step_s.tolist()
    assert by_other.log_spread.tolist() == by_name.log_spread.tolist()
    assert "TRANSFERRED" not in notices(by_other)
    told = answered(job(device="Tesla T4"), rows(full([1, 3, 8]), device="T4"))
    assert told.step_s.tolist() == by_name.step_s.tolist()
    assert "CLUSTER_NOT_KNOWN" not in notices(told)


def test_runs_on_one_node_there_take_how_the_job_scales_from_elsewhere() -> None:
    lone: list[Scale] = [(1, 1, 4), (1, 1, 8), (1, 1, 16)]
    there, asked = job(Law(fixed_s=0.02, sample_s=0.04), lone, device="V100"), rows(full([2, 4]), device="V100")
    little, much = (
        answered(joined(there, job(replace(HEAVY, across_s=across_s, inside_s=across_s / 4), TEN)), asked)
        for across_s in (0.1, 4.0)
    )
    assert np.all(much.step_s > 1.1 * little.step_s)
    assert "T4" in notices(much)["SUPPORTED_BY_OTHER_DEVICES"]
    assert "SUPPORTED_BY_OTHER_DEVICES" not in notices(answered(there, asked))
    measured = rows(lone, device="V100")
    both = answered(joined(there, job(HEAVY, TEN)), measured)
    assert both.step_s.tolist() == answered(there, measured).step_s.tolist()


def test_a_device_that_is_in_no_catalogue_is_refused_with_what_is_missing() -> None:
    answer = predicted(job(), several(rows(full([3])), rows(full([3]), device="unheard-of")))
    reason, message = refused(answer)[1]
    assert reason == Reason.EVIDENCE_MISSING
    assert message.startswith(
        "all-reduce runs exist on T4, but not on unheard-of, and the catalogue has no entry for unh"
    )
    assert "measure one run there, or add its peaks and memory bandwidth to the catalogue" in message
    refusal = assessed(job(), rows(full([3]), device="unheard-of")).refusal
    assert refusal is not None
    assert refusal.missing_fields == ("observations",)


def test_a_donor_that_is_in_no_catalogue_carries_nothing() -> None:
    answer = predicted(job(HEAVY, device="unheard-of"), rows(full([3]), device="V100"))
    assert "no entry for unheard-of" in refused(answer)[0][1]
    both = joined(job(HEAVY, device="unheard-of"), job(HEAVY))
    told = notices(answered(both, rows(full([3]), device="V100")))["TRANSFERRED"]
    assert "T4" in told
    assert "unheard-of" not in told


def test_steps_of_little_work_are_refused_where_their_compute_is_not_known() -> None:
    light = Law(fixed_s=0.005, sample_s=0.001)
    answer = predicted(job(light), several(rows(full([2])), rows(full([2]), device="V100")))
    assert list(refused(answer)) == [1]
    assert "measure one worker on V100" in refused(answer)[1][1]
    covariance = fitted(job(light)).log_covariance(rows(full([2]), device="V100"), Options())
    assert covariance.tolist() == [[0.0]]
    # A run of one worker is what it asks for.
    there = joined(job(light), job(light, [(1, 1, 8)], device="V100"))
    assert answered(there, rows(full([2]), device="V100")).step_s[0] > 0.0


def test_evidence_of_other_devices_alone_is_weak() -> None:
    assessment = assessed(job(HEAVY), rows(full([3]), device="V100"))
    assert assessment.refusal is None
    assert assessment.strength == 0.1
    line = "8 all-reduce configurations measured on T4 (1 to 2 nodes), carried over to V100"
    assert assessment.evidence == (line,)


def test_evidence_of_an_unstated_device_is_no_donor() -> None:
    known = job(HEAVY, device="")
    both = joined(known, job(HEAVY, device="T4", times=3.0))
    asked = rows(full([1, 3, 8]), device="V100")
    assert "DEVICE_ASSUMED" in notices(answered(both, asked))
    assert answered(both, asked).step_s.tolist() == answered(known, asked).step_s.tolist()


def test_a_batch_that_is_not_said_is_that_of_the_donors() -> None:
    asked = rows(full([2]), device="V100")
    unsaid = answered(job(HEAVY), asked.replaced(batch_per_worker=np.zeros(1, dtype=np.int64)))
    assert unsaid.step_s.tolist() == answered(job(HEAVY), asked).step_s.tolist()
    assert "BATCH_ASSUMED" in notices(unsaid)


def test_runs_that_mix_devices_are_no_evidence_of_either() -> None:
    mixed = rows(full([4]), device="T4").replaced(
        devices=("T4", "V100"),
        worker_groups=WorkerGroups.of([(WorkerGroup("T4", 8), WorkerGroup("V100", 8))], ("T4", "V100")),
    )
    both = joined(job(), profile(mixed, [0.01]))
    asked = rows(full([2, 4, 8]))
    assert answered(both, asked).step_s.tolist() == answered(job(), asked).step_s.tolist()


def test_runs_of_another_number_format_are_left_out() -> None:
    half = rows(full([4])).replaced(precisions=("fp16",))
    both = replace(joined(job(), profile(half, [0.01])), workload=Workload(precision="fp32"))
    asked = rows(full([2, 4, 8]))
    assert answered(both, asked).step_s.tolist() == answered(job(), asked).step_s.tolist()


# --- another link


def test_another_link_changes_exchange_across_nodes_alone() -> None:
    of = ran_over(10.0 * GIGABIT)
    same, slow, fast = (
        answered(of, over(times * 10.0 * GIGABIT, rows([(1, 4, 8), *full([2, 8])]))) for times in (1.0, 0.1, 10.0)
    )
    assert same.step_s.tolist() == answered(of, rows([(1, 4, 8), *full([2, 8])])).step_s.tolist()
    assert slow.step_s[0] == pytest.approx(same.step_s[0])
    assert fast.step_s[0] == pytest.approx(same.step_s[0])
    assert np.all(slow.step_s[1:] > same.step_s[1:])
    assert np.all(fast.step_s[1:] < same.step_s[1:])
    for other in (slow, fast):
        assert "LINK_SCALED" in notices(other)
        assert np.all(other.log_spread[1:] > same.log_spread[1:])
        np.testing.assert_allclose(summed(other), other.step_s, rtol=1e-9)
    assert "LINK_SCALED" not in notices(same)
    # Nothing is sooner than compute and what is exchanged inside a node.
    inside = fast.step_s - fast.breakdown_s["exchange_inter_node"]
    np.testing.assert_allclose(inside, same.step_s - same.breakdown_s["exchange_inter_node"], rtol=0.35)


def test_a_link_is_refused_where_the_runs_do_not_say_theirs() -> None:
    answer = predicted(job(), over([0.0, GIGABIT], rows(full([8, 8]))))
    assert list(refused(answer)) == [1]
    assert "but the observed runs on T4 do not" in refused(answer)[1][1]
    elsewhere = predicted(job(HEAVY), over([0.0, GIGABIT], rows(full([8, 8]), device="V100")))
    assert list(refused(elsewhere)) == [1]


def test_runs_over_different_links_are_not_averaged() -> None:
    fast, slow = ran_over(10.0 * GIGABIT), ran_over(GIGABIT, replace(HEAVY, across_s=4.0))
    both = joined(fast, slow)
    asked = rows(full([2, 8]))
    for link, alone in ((10.0 * GIGABIT, fast), (GIGABIT, slow)):
        assert answered(both, over(link, asked)).step_s.tolist() == answered(alone, over(link, asked)).step_s.tolist()
    answer = predicted(both, asked)
    assert list(refused(answer)) == [0, 1]
    assert "state link_bytes_per_s in the configuration" in refused(answer)[0][1]


def test_a_device_and_a_link_may_both_be_new() -> None:
    of = ran_over(GIGABIT)
    asked = rows(full([2, 8]), device="V100")
    near, far = (answered(of, over(times * GIGABIT, asked)) for times in (1.0, 10.0))
    assert near.step_s.tolist() == answered(of, asked).step_s.tolist()
    assert np.all(far.step_s < near.step_s)
    assert {"TRANSFERRED", "LINK_SCALED"} <= set(notices(far))


# --- clusters


def test_a_stated_link_is_another_cluster_than_the_published_one() -> None:
    law, asked = replace(HEAVY, inside_s=0.0, across_s=0.0), full([1, 2, 8])
    for link, known in ((0.0, True), (100.0 * GIGABIT, False)):
        of = profile(over(link, rows(asked[:1], device="V100")), law.step_s(asked[:1]))
        answer = answered(of, over(link, rows(asked, device="V100")))
        assert ("CLUSTER_NOT_KNOWN" not in notices(answer)) == known
        if not known:
            assert "over a link of 1.25e+10 bytes/s" in notices(answer)["CLUSTER_NOT_KNOWN"]
