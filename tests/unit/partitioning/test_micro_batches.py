"""The micro-batch of rows that state a global batch alone."""

from __future__ import annotations

import numpy as np
from partitioned_transformers import GPT3, SMALL, KnownContext, profile, rows

from nodewise.plugin import Configurations, Options, Predictions, Profile, RowStatus, as_ints
from nodewise_partitioning.estimator import PartitioningEstimator


def answered(configurations: Configurations, of: Profile) -> Predictions:
    return PartitioningEstimator().fit(of, KnownContext()).predict(configurations, Options())


def test_a_global_batch_is_cut_into_the_quickest_micro_batch_that_fits() -> None:
    asked = rows(1, nodes=1, workers=8, global_batch=512)
    found = answered(asked, profile(SMALL))
    sizes = [2**power for power in range(7)]
    tried = rows(len(sizes), nodes=1, workers=8, global_batch=512, batch_per_worker=sizes)
    each = answered(tried, profile(SMALL))
    fits = each.status == RowStatus.ANSWERED
    assert found.status.tolist() == [RowStatus.ANSWERED]
    upper = each.extra["memory_upper_bytes"]
    sure = fits & (upper <= 80e9)
    np.testing.assert_allclose(found.step_s, each.step_s[sure].min())
    assert "MICRO_BATCH_CHOSEN" in [notice.reason for notice in found.notices]


def test_a_stated_micro_batch_stays_and_each_row_is_cut_by_itself() -> None:
    mixed = rows(3, nodes=[1, 2, 1], workers=[8, 16, 8], global_batch=[64, 512, 64], batch_per_worker=[4, 0, 0])
    together = answered(mixed, profile(SMALL))
    for row in range(3):
        alone = answered(mixed.take(as_ints([row])), profile(SMALL))
        np.testing.assert_allclose(alone.step_s, together.step_s[row : row + 1])


def test_what_fits_with_no_micro_batch_is_told_by_the_smallest_lack() -> None:
    found = answered(rows(1, nodes=1, workers=8, global_batch=512), profile(GPT3))
    least = answered(rows(1, nodes=1, workers=8, global_batch=512, batch_per_worker=1), profile(GPT3))
    assert found.status.tolist() == [RowStatus.INFEASIBLE_MEMORY]
    np.testing.assert_allclose(found.excess_memory_bytes, least.excess_memory_bytes)
    assert "a micro-batch of" in next(each.message for each in found.notices if each.reason == "NEAREST_TRIED")
