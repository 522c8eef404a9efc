"""Who hangs and who is starved, from looks at CPU time and sleep; and looks at real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S

from nodewise.runtime.vitals import Pulse, Vitals, memory_bytes, rss_bytes, vitals_of

LIMIT_S = 10.0


@given(st.lists(st.tuples(st.floats(0.0, 0.05), st.booleans()), max_size=150))
def test_who_waits_for_a_core_never_hangs(looks: list[tuple[float, bool]]) -> None:
    """Silent for as long as one likes, with a twentieth of a core and never asleep twice in a row."""
    pulse, cpu_s, slept = Pulse(LIMIT_S), 0.0, False
    for spent_s, asleep in looks:
        cpu_s += spent_s
        slept = asleep and not slept
        assert not pulse.hangs(Vitals(cpu_s, slept), 1.0)


def test_who_computes_without_a_sign_hangs_by_cpu_time() -> None:
    pulse = Pulse(LIMIT_S)
    # An eighth of a core: eighty looks for ten seconds.
    found = [pulse.hangs(Vitals(5.0 + look / 8.0, asleep=False), 1.0) for look in range(100)]
    assert found.index(True) == 80


def test_who_sleeps_without_a_sign_hangs_by_looks() -> None:
    pulse = Pulse(LIMIT_S)
    found = [pulse.hangs(Vitals(5.0, asleep=True), 1.0) for _ in range(20)]
    assert found.index(True) == 10


def test_a_thread_that_wakes_to_ask_for_the_interpreter_hides_no_hang() -> None:
    """Awake at every third look."""
    pulse = Pulse(LIMIT_S)
    found = [pulse.hangs(Vitals(5.0, asleep=look % 3 != 0), 1.0) for look in range(40)]
    assert found.index(True) < 3 * LIMIT_S + 3


def test_each_sign_starts_anew() -> None:
    pulse = Pulse(LIMIT_S)
    for second in range(100):
        if second % 9 == 0:
            pulse.beat()
        assert not pulse.hangs(Vitals(float(second), asleep=True), 1.0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_the_kernel_tells_sleep_from_work() -> None:
    program = "import sys; print(flush=True); sys.stdin.read(1); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        until(lambda: (seen := vitals_of(process.pid)) is not None and seen.asleep)
        assert rss_bytes(process.pid) > 1 << 20
        process.stdin.write(b"x")
        process.stdin.flush()
        process.stdout.readline()
        before = vitals_of(process.pid)
        assert before is not None
        until(lambda: (seen := vitals_of(process.pid)) is not None and seen.cpu_s > before.cpu_s and not seen.asleep)
        process.kill()
    assert vitals_of(process.pid) is None
    assert rss_bytes(process.pid) == 0
    assert (memory_bytes() or 0) > 1 << 28


def until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.01)
