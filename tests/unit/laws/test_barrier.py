"""Round times of synchronous training at points that can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise_laws import barrier_round_best_overlap_s, barrier_round_no_overlap_s


def test_no_overlap_by_hand() -> None:
    round_s = barrier_round_no_overlap_s(
        [1, 4], download_s=0.1, upload_s=0.2, update_s=0.05, maximum_compute_s=[1.0, 1.3]
    )
    np.testing.assert_allclose(round_s, (0.35 + 1.0, 4 * 0.35 + 1.3))


def test_best_overlap_takes_the_longer_of_the_two_endings() -> None:
    # The slowest worker ends the round; then the server does.
    for exchange_s, expected_s in ((0.01, 4 * 0.1 + 1.3 + 0.01), (0.25, 4 * 0.1 + 1.0 + 4 * 0.25)):
        round_s = barrier_round_best_overlap_s(
            4, download_s=0.1, upload_s=exchange_s, update_s=0.0, compute_s=1.0, maximum_compute_s=1.3
        )
        assert round_s == pytest.approx(expected_s)


def test_arguments_broadcast() -> None:
    round_s = barrier_round_best_overlap_s(
        np.arange(1, 4),
        download_s=[[0.1], [0.2]],
        upload_s=0.1,
        update_s=0.0,
        compute_s=[[1.0], [2.0]],
        maximum_compute_s=3.0,
    )
    assert round_s.shape == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "workers must be whole numbers at least 1"),
        ({"download_s": -1.0}, "download_s must be finite and at least 0"),
        ({"upload_s": float("nan")}, "upload_s must be finite and at least 0"),
        ({"update_s": float("inf")}, "update_s must be finite and at least 0"),
        ({"maximum_compute_s": [1.0, 2.0, 3.0], "workers": [1, 2]}, "broadcast together"),
        ({"compute_s": -1.0}, "compute_s must be finite and at least 0"),
        ({"compute_s": 2.0}, "maximum_compute_s must be at least compute_s"),
    ],
)
def test_names_the_argument_that_is_wrong(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "workers": 2, "download_s": 0.1, "upload_s": 0.1, "update_s": 0.0,
        "compute_s": 1.0, "maximum_compute_s": 1.2,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        barrier_round_best_overlap_s(**(arguments | change))  # type: ignore[arg-type]
