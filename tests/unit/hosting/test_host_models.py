"""What a host keeps for its worker is bounded by bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.processes.models import MOST, Models


def models_of(most_bytes: int, *sizes: int) -> tuple[Models, list[int]]:
    """Models of so many bytes, and their numbers."""
    models = Models()
    models.most_bytes = most_bytes
    return models, [models.keep(np.zeros(size, np.int8)) for size in sizes]


def test_the_least_recently_used_make_room_for_bytes() -> None:
    models, (first, second) = models_of(10_000, 4_000, 4_000)
    models.use(first)
    third = models.keep(np.zeros(4_000, np.int8))
    assert len(models.use(first)) == len(models.use(third)) == 4_000
    with pytest.raises(KeyError):
        models.use(second)


def test_one_that_is_larger_than_all_may_be_stays_until_the_next() -> None:
    models, (large,) = models_of(1_000, 50_000)
    assert len(models.use(large)) == 50_000
    models.keep(np.zeros(10, np.int8))
    with pytest.raises(KeyError):
        models.use(large)


def test_what_is_dropped_takes_no_room() -> None:
    models, (first, second) = models_of(10_000, 4_000, 4_000)
    models.drop(first)
    models.drop(first)
    models.keep(np.zeros(4_000, np.int8))
    assert len(models.use(second)) == 4_000


def test_there_are_no_more_than_so_many_however_small() -> None:
    models, _ = models_of(1 << 40)
    numbers = [models.keep(None) for _ in range(MOST + 1)]
    with pytest.raises(KeyError):
        models.use(numbers[0])
    models.use(numbers[1])


def test_a_process_that_has_started_anew_does_not_know_the_models_of_the_one_before() -> None:
    _, before = models_of(1 << 40, 10, 10)
    now, _ = models_of(1 << 40, 10, 10)
    for number in before:
        with pytest.raises(KeyError):
            now.use(number)


def test_one_that_cannot_be_looked_at_is_kept() -> None:
    class Wild:
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(name)

    models = Models()
    assert type(models.use(models.keep(Wild()))) is Wild


def test_a_model_built_on_one_that_is_gone_says_so() -> None:
    with pytest.raises(NodewiseError) as caught:
        Models().built_on(1).predict(None, None)
    assert (caught.value.reason, caught.value.retry_after_s) == (Reason.ESTIMATOR_UNAVAILABLE, 0.1)
