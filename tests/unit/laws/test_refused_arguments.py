"""Arguments that laws refuse, each with the text that names the argument."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nodewise_laws.mva import overlapped_mva
from nodewise_partitioning.layered.splits import min_max_split
from nodewise_transient.lifetimes import Provenance, weibull


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (
            lambda: overlapped_mva([1.0], [0.0], 1.0, 2, residual_share=[2.0]),
            "residual_share must be from 0 to 1 and of the shape of demands_s, (1,), got [2.0]",
        ),
        (lambda: min_max_split([1.0, 2.0], 3), "stages must be 1 to the number of layers (2), got 3"),
        (lambda: weibull(0.0, 1.0, provenance=Provenance(data_set="a")), "scale_s and shape must be positive"),
    ],
)
def test_the_text_names_the_argument(work: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        work()
    assert str(caught.value) == text
