"""Third parties' plugins fail in every way at once: their own callers learn it, nobody else notices.

One server with a dozen faults. Every fault in every method of every kind, with latencies: ``make chaos``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from logged_server import LoggedServer
from offenders import NOT_FOUND, ask, prepare
from patience import PATIENCE_S
from planted_distributions import WELL, Fault, planted
from serving import Stubs
from steady_callers import USUAL, SteadyCallers, predicting

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

FAULTS = [
    Fault("estimator", "assess", "os-exit"),
    Fault("estimator", "fit", "raise"),
    Fault("estimator", "fit", "gil"),
    Fault("estimator", "predict", "segfault"),
    Fault("estimator", "predict", "nan"),
    Fault("estimator", "predict", "allocate"),
    Fault("estimator", "fit", "print"),
    Fault("estimator", "fit", "fork"),
    Fault("estimator", "import", "exit"),
    Fault("estimator", "api", "none"),
    Fault("policy", "decide", "hang"),
    Fault("policy", "decide", "interrupt"),
    Fault("reader", "read", "os-exit"),
    Fault("diagnoser", "replay", "hang"),
]
LIMITS = {
    "NODEWISE_HOSTS__CALL_BUDGET_S": "2",
    "NODEWISE_HOSTS__LONG_CALL_BUDGET_S": "4",
    "NODEWISE_HOSTS__MEMORY_BYTES": str(1 << 30),
    "NODEWISE_COMPUTE_PROCESSES": "1",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoggedServer]:
    folder = tmp_path_factory.mktemp("planted")
    environment = planted(folder / "site", [WELL, *FAULTS]) | LIMITS
    store = f"sqlite:{folder}/store.db"
    with LoggedServer(folder, "--store", store, environment=environment) as found:
        with Stubs(found.target) as stubs:
            prepare(stubs, PATIENCE_S)
        yield found


def test_every_offender_costs_its_own_callers_one_clear_error_and_others_nothing(server: LoggedServer) -> None:
    callers = {**USUAL, "well": predicting(WELL.name)}
    with SteadyCallers(server.target, callers, calls_per_s=4.0) as others, Stubs(server.target) as stubs:
        for fault in FAULTS:
            failure = ask(stubs, fault, PATIENCE_S)
            if fault.answers:
                assert failure is None, (fault.name, failure and failure.message)
                continue
            assert failure is not None, fault.name
            expected = f"{fault.kind.upper()}_" if fault.loads else NOT_FOUND[fault.kind]
            assert failure.reason.startswith(expected), (fault.name, failure.reason, failure.message)
            assert "secret" not in str(failure.status)
        seen = others.answered()
        assert seen
    assert others.failures == []
    assert set(others.window.seconds) == set(callers)


def test_the_log_is_json_whatever_plugins_write(server: LoggedServer) -> None:
    objects, others = server.logged()
    assert objects
    assert others == []
