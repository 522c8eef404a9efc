"""For all tests: what holds for our processes holds for those of the tests, however they were started."""

import signal
from collections.abc import Iterator

import pytest

from nodewise.runtime.blas import one_thread_each

one_thread_each()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of Ctrl-C: a shell's background job starts without one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
