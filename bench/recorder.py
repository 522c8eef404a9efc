"""What measuring and recording cost a training step: the same steps in turn, without and with. Mostly needs PyTorch.

Two jobs of one process on the CPU: one whose steps are arithmetic (matrix products) and one of many small operations,
the worst case for a profiler. `waits` is a recorder whose window is far away, `live` one that reports the times of all
steps with their parts (the reports themselves are another thread's), `records` the recorded steps themselves;
`trace_export` is the once that the loop stands still until the trace is written. Seconds are processor seconds of the
training thread, so that what else runs on the machine does not count. The meter of callbacks needs no PyTorch.
"""

from __future__ import annotations

import importlib.util
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from operator import truediv
from pathlib import Path
from typing import Any

from results import Result

ROUNDS = 15
STEPS = 20
METER_STEPS = 100_000
STEP_S = 0.1


def jobs(torch: Any) -> dict[str, tuple[Any, Callable[[], None]]]:
    torch.set_num_threads(1)
    large = torch.nn.Sequential(*(torch.nn.Linear(768, 768) for _ in range(6)))
    small = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(50)))
    batch_large, batch_small = torch.randn(64, 768), torch.randn(8, 16)

    def step_of(network: Any, batch: Any) -> Callable[[], None]:
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, foreach=False)

        def step() -> None:
            optimizer.zero_grad()
            network(batch).square().mean().backward()
            optimizer.step()

        return step

    return {
        "arithmetic": (large, step_of(large, batch_large)),
        "small_operations": (small, step_of(small, batch_small)),
    }


def times(step: Callable[[], None], recorder: Any, count: int) -> list[float]:
    """Processor seconds of every step, that of `recorder.step` included."""
    found = []
    for _ in range(count):
        begun_at = time.thread_time()
        step()
        if recorder is not None:
            recorder.step()
        found.append(time.thread_time() - begun_at)
    return found


def measured(model: Any, step: Callable[[], None], folder: Path) -> dict[str, list[float]]:
    """Median seconds of a step, one entry per round: the kinds take turns, so that a machine's moods hit all alike."""
    from nodewise_client.torch import Recorder  # noqa: PLC0415 - only where there is PyTorch

    found: dict[str, list[float]] = {"without": [], "waits": [], "live": [], "records": [], "export": []}
    times(step, None, STEPS)
    for number in range(ROUNDS):
        found["without"].append(statistics.median(times(step, None, STEPS)))
        with Recorder(None, "bench", steps=range(10**6, 10**6 + 1), keep=folder) as recorder:
            found["waits"].append(statistics.median(times(step, recorder, STEPS)))
        # Nobody is at that address: reports are another thread's.
        with Recorder("127.0.0.1:1", "bench", steps=None, live=True, model=model, timeout_s=0.0) as recorder:
            found["live"].append(statistics.median(times(step, recorder, STEPS)))
        with Recorder(None, "bench", steps=range(3, 3 + STEPS), keep=folder / str(number)) as recorder:
            recorded = times(step, recorder, 3 + STEPS)[3:]
        # The last recorded step ends with the writing of the trace.
        found["records"].append(statistics.median(recorded[:-1]))
        found["export"].append(recorded[-1] - found["records"][-1])
    return found


def meter_cost(folder: Path) -> Iterator[Result]:
    """What a step of `StepMeter` costs, its windows included, beside a step of 100 ms."""
    from nodewise_client.callbacks import StepMeter  # noqa: PLC0415 - only here

    costs = []
    for number in range(ROUNDS):
        meter = StepMeter("bench", file=folder / f"{number}.csv")
        begun_at = time.thread_time()
        for _ in range(METER_STEPS):
            pass
        plain = time.thread_time() - begun_at
        begun_at = time.thread_time()
        for _ in range(METER_STEPS):
            meter.step()
        costs.append((time.thread_time() - begun_at - plain) / METER_STEPS)
        meter.close()
    yield Result("meter_of_steps_of_100_ms", 1e6 * (STEP_S + statistics.median(costs)), "us", 1e6 * STEP_S)


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        yield from meter_cost(Path(folder))
    if importlib.util.find_spec("torch") is None:
        return
    import torch  # noqa: PLC0415 - the same

    logging.getLogger("nodewise_client.recorder").setLevel(logging.ERROR)

    with tempfile.TemporaryDirectory() as folder:
        for name, (model, step) in jobs(torch).items():
            found = measured(model, step, Path(folder) / name)
            plain_ms = 1e3 * statistics.median(found["without"])
            for kind, label in (
                ("waits", "waits"),
                ("live", "live"),
                ("records", "records"),
                ("export", "trace_export"),
            ):
                ratio = statistics.median(map(truediv, found[kind], found["without"]))
                yield Result(f"recorder_{label}_{name}", ratio * plain_ms, "ms", plain_ms)
