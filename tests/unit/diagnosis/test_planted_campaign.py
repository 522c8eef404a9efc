"""Faults of every kind, planted into simulated and recorded jobs: the diagnosis names the cause and no other one."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from planted_campaign import FOUND, WRONG, faults, judged


def _counts(every: int) -> tuple[Counter[str], Counter[str], str]:
    planted, healthy = Counter[str](), Counter[str]()
    missed = []
    for one in (judged(fault) for fault in islice(faults(), 0, None, every)):
        if one.counts:
            (healthy if one.fault.kind == "nothing" else planted)[one.result] += 1
            if one.result != FOUND:
                missed.append(f"{one.fault.kind} {one.fault.size:.0%} {one.fault.job}: {one.result}: {one.told[:160]}")
    return planted, healthy, "\n".join(missed)


def test_a_sample_of_planted_faults_is_found() -> None:
    planted, healthy, missed = _counts(every=11)
    assert planted.total() >= 30
    assert planted[FOUND] == planted.total(), missed
    assert healthy[FOUND] == healthy.total() > 0, missed


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_planted_faults_are_found_and_no_other_cause_is_named() -> None:
    planted, healthy, missed = _counts(every=2)
    assert planted.total() >= 200
    assert planted[FOUND] >= 0.97 * planted.total(), missed
    assert planted[WRONG] <= 0.01 * planted.total(), missed
    assert healthy[FOUND] >= 0.99 * healthy.total() > 0, missed
