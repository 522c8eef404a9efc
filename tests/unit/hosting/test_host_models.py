"""What a host keeps for its worker is bounded by bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.processes.models import MOST, Models


def kept(most_bytes: int, **sizes: int) -> Models:
    models = Models()
    models.most_bytes = most_bytes
    for name, size in sizes.items():
        assert models.keep(np.zeros(size, np.int8)) == int(name[1:])
    return models


def test_the_least_recently_used_make_room_for_bytes() -> None:
    models = kept(10_000, m1=4_000, m2=4_000)
    models.used(1)
    models.keep(np.zeros(4_000, np.int8))
    assert len(models.used(1)) == len(models.used(3)) == 4_000
    with pytest.raises(KeyError):
        models.used(2)


def test_one_that_is_larger_than_all_may_be_stays_until_the_next() -> None:
    models = kept(1_000, m1=50_000)
    assert len(models.used(1)) == 50_000
    models.keep(np.zeros(10, np.int8))
    with pytest.raises(KeyError):
        models.used(1)


def test_what_is_dropped_takes_no_room() -> None:
    models = kept(10_000, m1=4_000, m2=4_000)
    models.drop(1)
    models.drop(1)
    models.keep(np.zeros(4_000, np.int8))
    assert len(models.used(2)) == 4_000


def test_there_are_no_more_than_so_many_however_small() -> None:
    models = kept(1 << 40)
    for _ in range(MOST + 1):
        models.keep(None)
    with pytest.raises(KeyError):
        models.used(1)
    models.used(2)


def test_one_that_cannot_be_looked_at_is_kept() -> None:
    class Wild:
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(name)

    models = Models()
    models.keep(Wild())
    assert type(models.used(1)) is Wild


def test_a_model_built_on_one_that_is_gone_says_so() -> None:
    with pytest.raises(NodewiseError) as caught:
        Models().built_on(1).predict(None, None)
    assert (caught.value.reason, caught.value.retry_after_s) == (Reason.ESTIMATOR_UNAVAILABLE, 0.1)
