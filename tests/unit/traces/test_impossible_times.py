"""Times that cannot be are repaired where other events tell how, else left out; both are told."""

from __future__ import annotations

import pytest
from kineto_documents import Event, document, names_of, one_step, read, span

from nodewise.plugin import EventKind


def _kernels(events: list[Event]) -> list[Event]:
    return [event for event in events if event["cat"] == "kernel"]


def test_work_at_time_0_is_left_out_and_told() -> None:
    events = one_step(30)
    for event in events:
        event["ts"] += 1.7e15
    for event in _kernels(events)[20:]:
        event["ts"] = 0.0
    found = read(document(events))
    assert sum(name.startswith("kernel") for name in names_of(found)) == 20
    assert "10 device events begin before the calls that launched them, and were ignored" in str(found.report)


def test_work_that_a_clock_of_its_own_timed_is_moved() -> None:
    events = one_step(30)
    for event in _kernels(events):
        event["ts"] -= 50_000.0
    found = read(document(events))
    kernels = [place for place, name in enumerate(names_of(found)) if name.startswith("kernel")]
    # Not before the launches, which are 10 us earlier than the kernels were.
    assert found.begin_ns[kernels].tolist() == [(20 + 100 * number) * 1_000 for number in range(30)]
    assert "their clock was set differently" in str(found.report)


@pytest.mark.parametrize(("correlation", "lasts"), [(3, 100.0), (4, 250.0)])
def test_work_that_outlasts_what_follows_on_its_stream_is_cut_unless_one_launch_put_both_there(
    correlation: int, lasts: float
) -> None:
    events = one_step(30)
    kernels = _kernels(events)
    kernels[2]["dur"] = 250.0
    kernels[3]["args"]["correlation"] = kernels[4]["args"]["correlation"] = 3 if correlation == 4 else 4
    found = read(document(events))
    (place,) = [place for place, name in enumerate(names_of(found)) if name == "kernel2"]
    assert found.duration_ns[place] == lasts * 1_000
    assert ("overlap the next event" in str(found.report)) == (lasts == 100.0)


def test_work_that_outlasts_the_steps_by_far_takes_as_long_as_its_like() -> None:
    events = one_step(4)
    for event in _kernels(events):
        event["name"] = "gemm"
    _kernels(events)[-1]["dur"] = 3.6e9
    found = read(document(events))
    assert found.duration_ns.max() == 1_000_000
    assert "last far longer than the steps" in str(found.report)


def test_a_mark_that_holds_no_work_is_no_step() -> None:
    found = read(document([*one_step(), span("ProfilerStep#4", "user_annotation", 1000, 49)]))
    assert found.steps.number.tolist() == [3]
    assert "holds no work" in str(found.report)


def test_work_without_correlation_is_linked_by_its_operator() -> None:
    events = one_step()
    for number, event in enumerate(events[1:]):
        event["args"].pop("correlation", None)
        event["args"]["External id"] = number // 3
    found = read(document(events))
    assert found.report.counts["device_events_unlinked"] == 0


def test_calls_of_python_are_kept_apart_from_events() -> None:
    calls = [
        span("data.py(3): decode", "python_function", 100, 600),
        # Of short ones those that are inside no other short one.
        span("data.py(9): crop", "python_function", 110, 400),
        span("<built-in function len>", "python_function", 120, 10),
        span("data.py(20): pad", "python_function", 800, 100),
        span("<built-in function len>", "python_function", 850, 10, tid=8),
    ]
    found = read(document([*one_step(), *calls]))
    names = [found.names[name] for name in found.frames.name]
    assert names == ["data.py(3): decode", "data.py(9): crop", "data.py(20): pad", "<built-in function len>"]
    assert found.frames.duration_ns.tolist() == [600_000, 400_000, 100_000, 10_000]
    assert len(found) == 13


def test_a_kernel_of_an_unknown_library_is_an_exchange_if_the_process_group_launched_it() -> None:
    around = span("record_param_comms", "cpu_op", 105, 60)
    found = read(document([*one_step(), around]))
    assert [names_of(found)[event] for event in found.collectives.event] == ["kernel1"]


def test_work_of_a_host_that_runs_ahead_may_outlast_its_marks() -> None:
    events = [span(f"ProfilerStep#{step}", "user_annotation", 100 * step, 90) for step in range(4)]
    for number in range(4):
        events += [
            span("cudaLaunchKernel", "cuda_runtime", 100 * number + 10, 5, correlation=number + 1),
            span("wait", "kernel", 20 + 3000 * number, 2900, pid=0, device=0, stream=7, correlation=number + 1),
        ]
    found = read(document(events))
    kernels = found.duration_ns[found.kind == EventKind.KERNEL]
    assert kernels.tolist() == [2_900_000] * 4
    assert "durations_outlasting" not in found.report.counts
