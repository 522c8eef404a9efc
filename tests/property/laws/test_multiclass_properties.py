"""What holds of Bard-Schweitzer and Linearizer, and how near they are to the exact solution, on random networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_laws import MulticlassMva, bard_schweitzer, exact_mva, exact_mva_multiclass, linearizer, multiclass
from nodewise_laws.linearizer import TOLERANCE

QUICK = settings(derandomize=True, deadline=None, max_examples=32)
# What the fixed point is solved to, over the sums that follow it.
SOLVED = 1e-8


@dataclass(frozen=True)
class Problem:
    """One network of several classes."""

    demands_s: npt.NDArray[np.float64]
    think_s: npt.NDArray[np.float64]
    populations: npt.NDArray[np.int64]

    @property
    def solved(self) -> list[MulticlassMva]:
        return [
            approximate(self.demands_s, self.think_s, self.populations) for approximate in (bard_schweitzer, linearizer)
        ]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw one of up to three classes; its demands span three orders of magnitude."""
    classes, stations = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    row = st.lists(st.floats(-3.0, 0.0).map(lambda power: 10.0**power), min_size=stations, max_size=stations)
    demands = draw(st.lists(row, min_size=classes, max_size=classes))
    think = draw(st.lists(st.floats(0.01, 10.0) | st.just(0.0), min_size=classes, max_size=classes))
    populations = draw(st.lists(st.integers(0, 8), min_size=classes, max_size=classes).filter(any))
    return Problem(np.array(demands), np.array(think), np.array(populations))


@QUICK
@given(problems())
def test_linearizer_is_within_three_per_cent_of_exact(problem: Problem) -> None:
    exact = exact_mva_multiclass(problem.demands_s, problem.think_s, problem.populations)
    schweitzer, linear = problem.solved
    np.testing.assert_allclose(linear.throughput_per_s, exact.throughput_per_s, rtol=0.03)
    assert np.abs(linear.queue_length - exact.queue_length).max() <= 0.03 * problem.populations.sum()
    # It sees more of an arriving customer's queue than there is.
    np.testing.assert_allclose(schweitzer.throughput_per_s, exact.throughput_per_s, rtol=0.35)


@QUICK
@given(problems())
def test_the_laws_hold_of_approximations_too(problem: Problem) -> None:
    for solved in problem.solved:
        assert solved.residual <= TOLERANCE
        somewhere = solved.queue_length.sum(axis=1) + solved.throughput_per_s * problem.think_s
        np.testing.assert_allclose(somewhere, problem.populations, rtol=SOLVED)
        assert np.all(solved.utilisation.sum(axis=0) <= 1.01)
        alone = problem.populations / (problem.think_s + problem.demands_s.sum(axis=1))
        assert np.all(solved.throughput_per_s <= alone * (1.0 + SOLVED))
        assert np.all(solved.residence_s >= np.where(problem.populations[:, np.newaxis] > 0, problem.demands_s, 0.0))


@QUICK
@given(problems())
def test_order_of_classes_and_stations_and_unit_of_time_change_nothing(problem: Problem) -> None:
    turned = Problem(problem.demands_s[::-1, ::-1] * 7.0, problem.think_s[::-1] * 7.0, problem.populations[::-1])
    for solved, other in zip(problem.solved, turned.solved, strict=True):
        np.testing.assert_allclose(other.throughput_per_s[::-1] * 7.0, solved.throughput_per_s, rtol=SOLVED)


@QUICK
@given(problems())
def test_classes_that_are_alike_are_nearly_one_class(problem: Problem) -> None:
    """Linearizer's one customer less is of some class, so it may; by far less than it errs."""
    demands, think = problem.demands_s[:1], problem.think_s[:1]
    total = int(problem.populations.sum())
    single = exact_mva(demands[0], float(think[0]), total).throughput_per_s[-1]
    classes = problem.populations.size
    split = linearizer(np.repeat(demands, classes, axis=0), np.repeat(think, classes), problem.populations)
    np.testing.assert_allclose(split.throughput_per_s.sum(), single, rtol=0.02)
    np.testing.assert_allclose(
        split.throughput_per_s * total, problem.populations * split.throughput_per_s.sum(), rtol=0.02
    )


@QUICK
@given(problems(), st.integers(0, 5_000))
def test_the_choice_follows_its_cap(problem: Problem, max_states: int) -> None:
    states = int(np.prod(problem.populations + 1)) * problem.demands_s.shape[1]
    solved = multiclass(problem.demands_s, problem.think_s, problem.populations, max_states=max_states)
    assert solved.method == ("exact" if states <= max_states else "linearizer")
