"""LINE's solvers (G. Casale et al., https://line-solver.sourceforge.net) on random networks."""

from __future__ import annotations

import contextlib
import io
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nodewise_laws import (
    bard_schweitzer,
    exact_mva,
    exact_mva_many,
    exact_mva_multiclass,
    flow_capped_rates,
    linearizer,
    load_dependent,
)

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

FloatArray = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def line() -> ModuleType:
    # Its import warns and prints by itself; neither is our failure.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        module: ModuleType = pytest.importorskip("line_solver", reason="LINE (line-solver) is not installed")
    return module


def _model(
    line: ModuleType,
    demands_s: FloatArray,
    think_s: FloatArray,
    populations: list[int],
    rates: FloatArray | None = None,
) -> Any:
    """Build a delay station and processor-sharing stations in a ring; demands (C, K), think (C,), rates (K, n)."""
    model = line.Network("ring")
    delay = line.Delay(model, "delay")
    queues = [line.Queue(model, f"station{k}", line.SchedStrategy.PS) for k in range(demands_s.shape[1])]
    classes = [line.ClosedClass(model, f"class{c}", n, delay, 0) for c, n in enumerate(populations)]
    for job_class, thinking, demands in zip(classes, think_s, demands_s, strict=True):
        delay.setService(job_class, line.Exp.fitMean(float(thinking)))
        for queue, demand in zip(queues, demands, strict=True):
            queue.setService(job_class, line.Exp.fitMean(float(demand)))
    for queue, row in zip(queues, () if rates is None else rates, strict=rates is not None):
        queue.setLoadDependence(row)
    routing = model.initRoutingMatrix()
    for job_class in classes:
        routing[job_class] = line.Network.serialRouting([delay, *queues])
    model.link(routing)
    return model


def _solve(solver: Any, classes: int) -> tuple[FloatArray, FloatArray]:
    """Return throughput (C,) and queue lengths (C, K); LINE reports what it does on standard output."""
    with contextlib.redirect_stdout(io.StringIO()):
        table = solver.getAvgTable()
    throughput = np.array(table["Tput"], dtype=np.float64).reshape(-1, classes)
    queue_length = np.array(table["QLen"], dtype=np.float64).reshape(-1, classes)
    return throughput[0], queue_length[1:].T


@pytest.mark.parametrize("seed", range(40))
def test_single_class_networks_equal_line(line: ModuleType, seed: int) -> None:
    random = np.random.default_rng(seed)
    stations, population = int(random.integers(1, 4)), int(random.integers(1, 21))
    demands, think = random.uniform(0.01, 0.5, stations), float(random.uniform(0.01, 2.0))
    model = _model(line, demands[np.newaxis], np.array([think]), [population])
    throughput, queue_length = _solve(line.MVA(model, method="exact"), 1)
    curve = exact_mva(demands, think, population)
    np.testing.assert_allclose(curve.throughput_per_s[-1], throughput[0], rtol=1e-6)
    np.testing.assert_allclose(curve.queue_length[-1], queue_length[0], rtol=1e-6)
    many = exact_mva_many(demands[np.newaxis], think, population)
    np.testing.assert_allclose(many.throughput_per_s[0, -1], throughput[0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_networks_of_two_and_three_classes_equal_line(line: ModuleType, seed: int) -> None:
    random = np.random.default_rng(1000 + seed)
    classes, stations = int(random.integers(2, 4)), int(random.integers(1, 4))
    demands, think = random.uniform(0.01, 0.5, (classes, stations)), random.uniform(0.01, 2.0, classes)
    populations = random.integers(1, 6, classes).tolist()
    throughput, queue_length = _solve(line.MVA(_model(line, demands, think, populations), method="exact"), classes)
    solved = exact_mva_multiclass(demands, think, populations)
    np.testing.assert_allclose(solved.throughput_per_s, throughput, rtol=1e-6)
    np.testing.assert_allclose(solved.queue_length, queue_length, rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_small_networks_equal_the_markov_chain(line: ModuleType, seed: int) -> None:
    """The chain is solved state by state: an oracle that shares no recursion with ours."""
    random = np.random.default_rng(2000 + seed)
    stations, population = int(random.integers(1, 3)), int(random.integers(2, 7))
    demands, think = random.uniform(0.05, 0.5, stations), float(random.uniform(0.1, 1.0))
    model = _model(line, demands[np.newaxis], np.array([think]), [population])
    throughput, queue_length = _solve(line.CTMC(model), 1)
    curve = exact_mva(demands, think, population)
    np.testing.assert_allclose(curve.throughput_per_s[-1], throughput[0], rtol=1e-6)
    np.testing.assert_allclose(curve.queue_length[-1], queue_length[0], rtol=1e-6)


def _rates(random: np.random.Generator, stations: int, population: int) -> FloatArray:
    """Relative rates of each station: those of capped flows, or falling, or anything."""
    return np.stack(
        [
            (
                flow_capped_rates(population, float(random.uniform(0.5, 6.0))),
                1.0 / (1.0 + random.uniform(0.0, 0.3) * np.arange(population)),
                random.uniform(0.3, 3.0, population),
            )[int(random.integers(3))]
            for _ in range(stations)
        ]
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("solver", ["MVA", "NC"])
def test_load_dependent_networks_equal_line(line: ModuleType, seed: int, solver: str) -> None:
    random = np.random.default_rng(3000 + seed)
    stations, population = int(random.integers(1, 4)), int(random.integers(1, 13))
    demands, think = random.uniform(0.01, 0.5, stations), float(random.uniform(0.01, 2.0))
    rates = _rates(random, stations, population)
    model = _model(line, demands[np.newaxis], np.array([think]), [population], rates)
    throughput, queue_length = _solve(getattr(line, solver)(model, method="exact"), 1)
    curve = load_dependent(demands, rates, think, population)
    np.testing.assert_allclose(curve.throughput_per_s[-1], throughput[0], rtol=1e-6)
    np.testing.assert_allclose(curve.queue_length[-1], queue_length[0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_small_load_dependent_networks_equal_the_markov_chain(line: ModuleType, seed: int) -> None:
    random = np.random.default_rng(4000 + seed)
    stations, population = int(random.integers(1, 3)), int(random.integers(2, 7))
    demands, think = random.uniform(0.05, 0.5, stations), float(random.uniform(0.1, 1.0))
    rates = _rates(random, stations, population)
    model = _model(line, demands[np.newaxis], np.array([think]), [population], rates)
    throughput, queue_length = _solve(line.CTMC(model), 1)
    curve = load_dependent(demands, rates, think, population)
    np.testing.assert_allclose(curve.throughput_per_s[-1], throughput[0], rtol=1e-6)
    np.testing.assert_allclose(curve.queue_length[-1], queue_length[0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_approximations_of_several_classes_are_near_those_of_line(line: ModuleType, seed: int) -> None:
    """LINE stops its fixed points at 1e-4 or so, and counts estimates of its own."""
    random = np.random.default_rng(5000 + seed)
    classes, stations = int(random.integers(2, 4)), int(random.integers(1, 4))
    demands, think = random.uniform(0.01, 0.5, (classes, stations)), random.uniform(0.01, 2.0, classes)
    populations = random.integers(1, 12, classes).tolist()
    model = _model(line, demands, think, populations)
    schweitzer, _ = _solve(line.MVA(model, method="bs"), classes)
    linear, _ = _solve(line.MVA(model, method="lin"), classes)
    np.testing.assert_allclose(bard_schweitzer(demands, think, populations).throughput_per_s, schweitzer, rtol=2e-3)
    np.testing.assert_allclose(linearizer(demands, think, populations).throughput_per_s, linear, rtol=5e-3)
