"""Every moment of a step is accounted for, by what the device does, else by what its host does meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_traces import MAIN, NobodyWaits, Recorder

from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise.domain.trace import EventKind, Frames, Trace
from nodewise_diagnosis.diagnosing import diagnose_traces

STEP_US = 10_000


def _found(trace: Trace) -> Diagnosis:
    return diagnose_traces([trace], Profile(), DiagnosisQuestion(strategies=0), NobodyWaits())


def _parts(found: Diagnosis) -> dict[tuple[str, str], float]:
    return {(one.kind, one.what): round(one.seconds * 1e6, 3) for one in found.ranks[0].parts}


def _steps(idle: tuple[str, str, EventKind] | None, count: int = 3) -> Recorder:
    """Steps of a kernel of 2 ms, 6 ms of the host doing something, and a kernel of 1.9 ms."""
    recorder = Recorder()
    for step in range(count):
        at = float(step * STEP_US)
        recorder.step(step + 1, at, at + STEP_US)
        recorder.call("cudaLaunchKernel", at, at + 5, 2 * step)
        recorder.kernel("gemm", at + 10, at + 2000, 2 * step)
        if idle is not None:
            recorder.event(idle[1], at + 2000, at + 8000, kind=idle[2])
        recorder.call("cudaLaunchKernel", at + 8000, at + 8005, 2 * step + 1)
        recorder.kernel("gemm", at + 8010, at + STEP_US - 50, 2 * step + 1)
        recorder.call("cudaDeviceSynchronize", at + 8010, at + STEP_US - 40)
    return recorder


@pytest.mark.parametrize(
    "idle",
    [
        ("allocation", "cudaMalloc", EventKind.CALL),
        ("startup", "cuModuleLoadData", EventKind.CALL),
        ("host_computation", "aten::uniform_", EventKind.OPERATOR),
        ("loading", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", EventKind.ANNOTATION),
        ("python", "checkpoint", EventKind.ANNOTATION),
        ("garbage_collection", "gc.collect", EventKind.ANNOTATION),
    ],
)
def test_idle_time_is_named_by_what_the_host_does(idle: tuple[str, str, EventKind]) -> None:
    found = _found(_steps(idle).trace())
    assert _parts(found)[idle[:2]] == pytest.approx(6000, abs=1)
    assert found.bound_by == ("loading" if idle[0] == "loading" else "host")
    assert idle[1] in found.verdict
    first = found.bottlenecks[0]
    assert idle[1] in first.what
    assert first.gain_if_removed_s <= 6e-3 + 1e-9


def test_time_without_any_event_is_unexplained_and_said_so() -> None:
    found = _found(_steps(None).trace())
    assert _parts(found)["unexplained", "host activity that was not recorded"] == pytest.approx(6000, abs=20)
    assert "unexplained" in found.verdict


def test_a_function_of_python_explains_it() -> None:
    trace = _steps(None).trace()
    begins = np.array([step * STEP_US * 1000 + 2_000_000 for step in range(3)])
    frames = Frames(
        name=np.full(3, len(trace.names)),
        lane=np.full(3, MAIN),
        begin_ns=begins,
        duration_ns=np.full(3, 6_000_000),
    )
    found = _found(replace(trace, names=(*trace.names, "augment.py(12): rotate"), frames=frames))
    assert _parts(found)["python", "augment.py(12): rotate"] == pytest.approx(6000, abs=20)


@given(
    st.lists(
        st.tuples(st.integers(1, 300), st.integers(1, 400), st.integers(0, 2000), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_parts_add_up_to_the_step_whatever_was_recorded(works: list[tuple[int, int, int, bool]]) -> None:
    recorder = Recorder()
    now, busy, correlation = 0.0, 0.0, 0
    for step in range(2):
        begin = now
        for launch, kernel, pause, waits in works:
            correlation += 1
            recorder.call("cudaLaunchKernel", now, now + launch, correlation)
            busy = max(busy, now + launch) + kernel
            recorder.kernel("gemm" if waits else "elementwise", busy - kernel, busy, correlation)
            now += launch + pause
            if waits:
                recorder.call("cudaStreamSynchronize", now, max(now, busy) + 3)
                now = max(now, busy) + 3
        now += 1
        recorder.step(step + 1, begin, now)
    (one,) = _found(recorder.trace()).ranks
    assert sum(part.seconds for part in one.parts) == pytest.approx(one.step_s, rel=1e-9)
    assert one.compute_s * 2e6 == pytest.approx(2 * sum(kernel for _, kernel, _, _ in works), rel=1e-6)


def test_a_step_in_which_little_is_done_is_kept_apart() -> None:
    recorder = _steps(("python", "train", EventKind.ANNOTATION), count=5)
    trace = recorder.trace()
    # The third step loses all but one of its kernels.
    kernels = np.flatnonzero(trace.kind == EventKind.KERNEL)
    lost = kernels[4:6]
    kept = np.setdiff1d(np.arange(len(trace)), lost)
    columns = ("name", "lane", "kind", "begin_ns", "duration_ns", "correlation", "sequence", "forward_lane", "bytes")
    found = _found(replace(trace, **{column: getattr(trace, column)[kept] for column in columns}))
    assert found.step_s * 1e6 == pytest.approx(STEP_US, abs=100)
    assert any("steps 3 do less than half" in warning for warning in found.warnings)
