"""What short and long columns say of their values is the same."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise.domain.columns import SHARED_ROWS, constant_floats, constant_ints, holds, only_value


@pytest.mark.parametrize("rows", [1, 16, SHARED_ROWS, SHARED_ROWS + 1])
def test_constant_columns_hold_their_value_alone(rows: int) -> None:
    column = constant_ints(rows, 3)
    assert holds(column, 3)
    assert not holds(column, 0)
    assert only_value(column) == 3
    assert only_value(constant_floats(rows, 0.5)) == 0.5


@pytest.mark.parametrize("rows", [2, 16, SHARED_ROWS, SHARED_ROWS + 1])
def test_one_row_that_differs_is_seen(rows: int) -> None:
    column = np.zeros(rows, dtype=np.int64)
    column[-1] = -1
    assert holds(column, -1)
    assert holds(column, 0)
    assert only_value(column) is None


def test_without_rows_nothing_is_held() -> None:
    assert not holds(constant_ints(0, 1), 1)
    assert only_value(constant_ints(0, 1)) is None
