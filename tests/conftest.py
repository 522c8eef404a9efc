"""For all tests: what holds for our processes holds for those of the tests, however they were started."""

import gc
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings
from measurements import WHY_NO_DATA
from postgres_clusters import PostgresCluster, running_cluster
from s3_servers import S3Server, running_s3
from structlog.testing import capture_logs

from nodewise.runtime.blas import one_thread_each
from nodewise.runtime.event_loop import COLLECT_EVERY

one_thread_each()

# Coverage counts what tests run themselves: following servers and plugin hosts too takes longer than all the tests.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

# The same examples in every run, however slow a busy machine makes one of them or their making; and
# few of them: they find nothing on the hundredth run that they did not on the first.
settings.register_profile(
    "steady", max_examples=40, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


def pytest_collection_finish() -> None:
    """Let collections of garbage not look again at what was imported: a tenth of a second each, hundreds of times."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_EVERY)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `data` where there is none, and say why."""
    if WHY_NO_DATA:
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(pytest.mark.skip(reason=WHY_NO_DATA))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of Ctrl-C: a shell's background job starts without one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """What was logged, event by event: all of it, whatever level another test of this process has set."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.reset_defaults()
    try:
        with capture_logs() as events:
            yield events
    finally:
        if before is not None:
            structlog.configure(**before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresCluster]:
    # Not pytest's own folder: another user starts the server, and the path of a socket has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="nodewise-") as folder:
        Path(folder).chmod(0o711)
        with running_cluster(lambda: Path(folder)) as running:
            yield running


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_s3(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """The URL of an empty bucket; the server is started for those who ask, and its keys are in the environment."""

    def made() -> str:
        _starts_a_store(request)
        server: S3Server = request.getfixturevalue("s3_server")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        return server.bucket()

    return made


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Callable[[], str]:
    """An empty database in PostgreSQL; the server is started for those who ask."""

    def made() -> str:
        _starts_a_store(request)
        return str(request.getfixturevalue("cluster").emptied())

    return made


def _starts_a_store(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("stores") is None:
        pytest.fail("starts a program of a store: mark the test `stores`")
