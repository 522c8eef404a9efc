"""How a step grows with the samples of one worker: fixed seconds told by the step itself, kinds of models left out.

``python research/batch_law.py TABLE.csv [--noise 0.1]``

::

    T(m) = T_L (f + (1 - f) m / m_L),   c = f T_L,   ln c ~ alpha + beta ln T_L + deviation x t(4)

m samples of one worker (replica) in a step, over all micro-steps; T_L the step at m_L, the most that was measured. One
row tells T_L, two of different m also f; the law of c, learned from models of other kinds, tells f where rows do not.
The posterior of f is summed on a grid, with T_L at its best for each f. Beside it stand three rules of one line.

Source of the form: the launches, updates and exchange of a step do not shrink with its samples, the arithmetic does.
That c follows the step is an observation (research/batch_law.md).
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import logsumexp
from scipy.stats import t as student

from nodewise.plugin import Floats

NOMINAL: Final = 1.6448536269514722
"""Deviations of a normal 90 % interval."""

DEGREES: Final = 4.0
"""Degrees of freedom of the law's tails: a kind that is unlike the others may say so."""

SHARES: Final = np.exp(np.linspace(np.log(1e-4), np.log(0.99), 240))
"""Grid of f."""

LANGUAGE_MODELS: Final = ("gpt", "llama")
"""What the names of language models begin with."""


class Row(NamedTuple):
    """A measured configuration: workers, samples of one of them in a step, seconds of the step."""

    workers: float
    samples: float
    step_s: float


@dataclass(frozen=True, slots=True)
class Law:
    """Where ln of the fixed seconds lies: ``alpha + beta ln T_L``, with a deviation."""

    alpha: float
    beta: float
    deviation: float


Predict = Callable[[Sequence[Row], Sequence[Row], Law, float], tuple[Floats, Floats]]
"""ln of the asked rows' steps, and its deviation (0 = none stated), from shown rows, a law, and the noise."""


def posterior(shown: Sequence[Row], law: Law, noise: float) -> tuple[Floats, Floats]:
    """(grid,) ln T_L that suits each f best, and ln of f's weight; the weights' sum is the rows' likelihood."""
    samples, step_s = np.array([row.samples for row in shown]), np.array([row.step_s for row in shown])
    relative = np.log(SHARES[:, np.newaxis] + (1.0 - SHARES[:, np.newaxis]) * samples / samples.max())
    log_largest = (np.log(step_s) - relative).mean(axis=1)
    misfit = (np.log(step_s) - relative - log_largest[:, np.newaxis]) / noise
    fixed = (np.log(SHARES) + log_largest - law.alpha - law.beta * log_largest) / law.deviation
    weight = student.logpdf(fixed, DEGREES) - np.log(law.deviation) - 0.5 * (misfit**2).sum(axis=1)
    return log_largest, weight - (len(shown) - 1) * np.log(noise)


def by_law(shown: Sequence[Row], asked: Sequence[Row], law: Law, noise: float) -> tuple[Floats, Floats]:
    """The mean of the posterior, and all that is unsure of it."""
    log_largest, weight = posterior(shown, law, noise)
    weight = np.exp(weight - logsumexp(weight))
    grown = np.array([row.samples for row in asked]) / max(row.samples for row in shown)
    logs = log_largest[:, np.newaxis] + np.log(SHARES[:, np.newaxis] + (1.0 - SHARES[:, np.newaxis]) * grown)
    mean = weight @ logs
    return mean, np.sqrt(weight @ (logs - mean) ** 2 + noise**2 * (1.0 + 1.0 / len(shown)))


def by_line(shown: Sequence[Row], asked: Sequence[Row], law: Law, noise: float) -> tuple[Floats, Floats]:  # noqa: ARG001
    """The line c + s m by relative non-negative least squares; through the origin where one batch was measured."""
    samples, step_s = np.array([row.samples for row in shown]), np.array([row.step_s for row in shown])
    constants = np.array([0.0, (step_s / samples).mean()])
    if len(np.unique(samples)) > 1:
        constants, _ = nnls(np.stack([1.0 / step_s, samples / step_s], axis=1), np.ones(len(shown)))
    found = np.log(np.maximum(constants[0] + constants[1] * np.array([row.samples for row in asked]), 1e-12))
    return found, np.zeros(len(asked))


def by_last(shown: Sequence[Row], asked: Sequence[Row], law: Law, noise: float) -> tuple[Floats, Floats]:  # noqa: ARG001
    """Samples per second of one worker are those of the largest run."""
    last = max(shown, key=lambda row: row.workers)
    return np.log([row.samples / last.samples * last.step_s for row in asked]), np.zeros(len(asked))


def by_power(shown: Sequence[Row], asked: Sequence[Row], law: Law, noise: float) -> tuple[Floats, Floats]:
    """Samples per second are a power of the workers; as the last run where one number of workers was measured."""
    workers = np.log([row.workers for row in shown])
    if len(np.unique(workers)) < 2:
        return by_last(shown, asked, law, noise)
    rates = np.log([row.samples * row.workers / row.step_s for row in shown])
    power, level = np.polyfit(workers, rates, 1)
    logs = [np.log(row.samples * row.workers) - level - power * np.log(row.workers) for row in asked]
    return np.array(logs), np.zeros(len(asked))


def learned(jobs: Sequence[Sequence[Row]], noise: float) -> Law:
    """The law under which some jobs' rows are likeliest. ``beta`` is held near 1/2 where they do not tell it."""

    def cost(at: Floats) -> float:
        law = Law(float(at[0]), float(at[1]), float(np.exp(at[2])))
        return 0.5 * ((law.beta - 0.5) / 0.5) ** 2 - sum(
            float(logsumexp(posterior(job, law, noise)[1])) for job in jobs
        )

    found = minimize(cost, [-3.0, 0.5, -0.7], method="Nelder-Mead", options={"xatol": 0.02, "fatol": 0.02}).x
    return Law(float(found[0]), float(found[1]), float(np.exp(found[2])))


def read(path: Path) -> dict[str, tuple[list[Row], list[Row]]]:
    """Rows that may be seen, and those to predict, by job."""
    jobs: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            workers = float(row["workers"])
            own = float(row["batch_per_worker"] or 0) * float(row.get("accumulation") or 1)
            samples = float(row.get("global_batch") or 0) / workers or own
            found = Row(workers, samples, 1.0 / float(row["steps_per_s"]))
            jobs[row["job"]][row["split"] == "test"].append(found)
    return jobs


def scored(jobs: Mapping[str, tuple[list[Row], list[Row]]], laws: Mapping[str, Law], how: Predict, noise: float) -> str:
    """Errors over some jobs, each under the law of the other kinds."""
    means, errors, inside, widths = [], [], [], []
    for name, (shown, asked) in jobs.items():
        predicted, spread = how(shown, asked, laws[_kind(name)], noise)
        error = predicted - np.log([row.step_s for row in asked])
        means.append(np.abs(error).mean())
        errors += error.tolist()
        inside += (np.abs(error) <= NOMINAL * spread).tolist()
        widths += (2.0 * NOMINAL * spread).tolist()
    rates = np.abs(np.expm1(-np.array(errors)))
    told = f"{100 * rates.mean():.1f} / {100 * np.median(rates):.1f} / {np.mean(means):.3f}"
    return (
        told if not any(widths) else f"{told}; coverage {100 * np.mean(inside):.0f} %, ln-width {np.mean(widths):.2f}"
    )


def _kind(job: str) -> str:
    return job.split("/", maxsplit=1)[0]


def main() -> None:
    """Learn and print: mape of throughput / its median / mean over jobs of mean |ln|."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--noise", type=float, default=0.1)
    arguments = parser.parse_args()
    jobs, noise = read(arguments.table), arguments.noise
    laws = {}
    for kind in sorted({_kind(name) for name in jobs}):
        laws[kind] = learned([shown + asked for name, (shown, asked) in jobs.items() if _kind(name) != kind], noise)
        print(f"without {kind}: {laws[kind]}")
    rules: dict[str, Predict] = {"law": by_law, "c + s m": by_line, "last known": by_last, "power law": by_power}
    for rows in (2, 1):
        for language in (False, True):
            some = {
                name: (shown[:rows], asked)
                for name, (shown, asked) in jobs.items()
                if name.startswith(LANGUAGE_MODELS) == language
            }
            if not some:
                continue
            print(f"{'language models' if language else 'data-parallel'}, {rows} row{'s' if rows > 1 else ''} shown")
            for title, how in rules.items():
                print(f"  {title}: {scored(some, laws, how, noise)}")


if __name__ == "__main__":
    main()
