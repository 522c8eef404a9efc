"""A batch that is sent to two replicas at the same moment is stored once, and both say that it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sent_twice import expected, send_twice, stored_rates
from serving import Stubs
from warm_servers import warm_servers

pytestmark = [pytest.mark.chaos, pytest.mark.stores, pytest.mark.timeout(1800)]

BATCHES = 200
"""``make chaos CHAOS=twice`` sends ten thousand."""


def test_a_batch_sent_to_both_replicas_is_stored_once(tmp_path: Path, database: Callable[[], str]) -> None:
    settings = {"store": database(), "traces": str(tmp_path / "traces")}
    with (
        warm_servers() as ones,
        warm_servers() as others,
        ones.start(**settings) as one,
        others.start(**settings) as other,
        Stubs(one.target) as here,
        Stubs(other.target) as there,
    ):
        send_twice(here, there, BATCHES)
        assert stored_rates(here) == expected(BATCHES)
