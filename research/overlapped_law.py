"""The law of the fixed seconds that `scaling` ships, learned and scored with whole sources left out.

``python research/overlapped_law.py TABLE.csv... [--without kind|organisation|device] [--shares TABLE.csv...]``

Jobs are named ``kind/organisation/device/round``. The law is the one under which the jobs' rows are likeliest, kinds
weighing alike, as one kind was often entered by many. Each job is then predicted under the law of the others, from its
first two rows that may be seen and from the first alone, beside rules of one line.

``--shares`` writes into the shipped prior how many jobs of each device hide their exchange, by all rows of each.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from scipy.special import expit, logit

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import Floats
from nodewise_scaling.device import INTERVAL_LEVEL, DeviceModel
from nodewise_scaling.estimator import log_peak, odds_of, share_of
from nodewise_scaling.fitting import fit_job
from nodewise_scaling.growth import with_growth
from nodewise_scaling.overlap import NOISE_SD, Law, fit_overlap
from nodewise_scaling.parameters import LEVEL
from nodewise_scaling.points import average
from nodewise_scaling.prior import PSEUDO_JOBS, Knowledge, load_default_prior

NOMINAL: Final = 1.6448536269514722
"""Deviations of a normal 90 % interval."""

LANGUAGE_MODELS: Final = ("gpt", "llama")
"""What the names of language models begin with."""

SHIPPED: Final = Path(__file__).resolve().parent.parent / "plugins" / "nodewise_scaling" / "shipped_prior.json"

ROUNDS: Final = 100
"""Of expectation and maximisation."""

HIDDEN: Final = ", all rows: hidden exchange"
"""What is learned from a table besides the form."""

PARTS: Final = {"kind": 0, "organisation": 1, "device": 2}
"""Of a job's name."""


Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job's rows: columns of KEYS, steps, whether they may be seen; and ln of its device's peak over an A100's."""

    name: str
    device: str
    keys: Floats
    step_s: Floats
    shown: Mask
    log_peak: float | None

    def part(self, name: str) -> str:
        """Of the job's name."""
        return self.name.split("/")[PARTS[name]]


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What other jobs teach: the law, and the prior with the shares of jobs that hide their exchange."""

    law: Law
    knowledge: Knowledge


Predict = Callable[[Job, Mask, Lesson], tuple[Floats, Floats]]
"""ln of a job's steps, and its deviation (0 = none stated), from the rows of a mask and a lesson."""


def by_both(job: Job, shown: Mask, lesson: Lesson) -> tuple[Floats, Floats]:
    """The median of both hypotheses, as `scaling` answers; of the form the prior is as shipped."""
    points, knowledge = average(job.keys[shown], job.step_s[shown]), lesson.knowledge
    known = knowledge if points.exchange_seen else knowledge.where_unseen
    mean, sd = with_growth(points, *known.of(job.device))
    fit = fit_job(replace(points, over_fixed=known.over_fixed), mean, sd)
    other = fit_overlap(points, job.log_peak, lesson.law)
    share = share_of(other, fit, float(sd[LEVEL]), knowledge.overlapped_share(job.device))
    multiplier = known.multiplier(job.device, INTERVAL_LEVEL)
    model = DeviceModel(fit, multiplier, points, overlapped=other, overlapped_share=share)
    step_s, spread, _ = model.predict(job.keys)
    return np.log(step_s), spread


def by_law(job: Job, shown: Mask, lesson: Lesson) -> tuple[Floats, Floats]:
    """The hypothesis alone."""
    fit = fit_overlap(average(job.keys[shown], job.step_s[shown]), job.log_peak, lesson.law)
    expected, variance = fit.predict(job.keys)
    return expected, np.sqrt(variance + NOISE_SD**2)


def by_line(job: Job, shown: Mask, lesson: Lesson) -> tuple[Floats, Floats]:  # noqa: ARG001 - rules are called alike
    """The line c + s m by relative non-negative least squares; through the origin where one batch was measured."""
    samples, step_s = _samples(job), job.step_s[shown]
    constants = np.array([0.0, (step_s / samples[shown]).mean()])
    if len(np.unique(samples[shown])) > 1:
        columns = np.stack([1.0 / step_s, samples[shown] / step_s], axis=1)
        constants, _ = nnls(columns, np.ones(len(step_s)))
    return np.log(np.maximum(constants[0] + constants[1] * samples, 1e-12)), np.zeros(len(samples))


def by_last(job: Job, shown: Mask, lesson: Lesson) -> tuple[Floats, Floats]:  # noqa: ARG001 - rules are called alike
    """Samples per second of one worker are those of the largest run."""
    samples, last = _samples(job), np.flatnonzero(shown)[np.argmax(job.keys[shown, 1])]
    return np.log(samples / samples[last] * job.step_s[last]), np.zeros(len(samples))


def by_power(job: Job, shown: Mask, lesson: Lesson) -> tuple[Floats, Floats]:
    """Samples per second are a power of the workers; as the last run where one number of workers was measured."""
    samples, workers = _samples(job), np.log(job.keys[:, 1])
    if len(np.unique(workers[shown])) < 2:
        return by_last(job, shown, lesson)
    power, level = np.polyfit(workers[shown], np.log(samples * job.keys[:, 1] / job.step_s)[shown], 1)
    return np.log(samples * job.keys[:, 1]) - level - power * workers, np.zeros(len(samples))


RULES: Final[Mapping[str, Predict]] = {
    "scaling": by_both,
    "law": by_law,
    "c + s m": by_line,
    "last": by_last,
    "power law": by_power,
}


def learned(jobs: Sequence[Job], peaks: float | None = None) -> Law:
    """The law under which some jobs' rows are likeliest; ``peaks`` is the exponent of the peak if it has its own.

    ``beta`` is held near 1/2 where they do not tell it.
    """
    counts = Counter(job.part("kind") for job in jobs)
    seen = [(average(job.keys, job.step_s), job.log_peak, 1.0 / counts[job.part("kind")]) for job in jobs]

    def cost(at: Floats) -> float:
        law = Law(float(at[0]), float(at[1]), float(np.exp(at[2])))
        stretch = 1.0 if peaks is None else peaks / law.beta
        told = (
            weight * fit_overlap(points, peak and peak * stretch, law).log_evidence for points, peak, weight in seen
        )
        return 0.5 * ((law.beta - 0.5) / 0.5) ** 2 - sum(told)

    found = minimize(cost, [-3.5, 0.6, -1.4], method="Nelder-Mead", options={"xatol": 0.03, "fatol": 0.03})
    law = Law(float(found.x[0]), float(found.x[1]), float(np.exp(found.x[2])))
    if peaks is not None:
        print(f"exponent of the peak {peaks:.1f}: {law}, ln likelihood {-found.fun:.2f}")
    return law


def read(path: Path) -> list[Job]:
    """The jobs of a table."""
    catalogue = load_catalogue()
    rows: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            rows[row["job"], row["device"]].append(row)
    return [
        Job(
            name,
            device,
            np.array([_key(row) for row in own]),
            np.array([1.0 / float(row["steps_per_s"]) for row in own]),
            np.array([row["split"] == "train" for row in own]),
            log_peak(device, catalogue),
        )
        for (name, device), own in rows.items()
    ]


def _key(row: Mapping[str, str]) -> tuple[float, ...]:
    nodes, workers, accumulation = float(row["nodes"]), float(row["workers"]), float(row.get("accumulation") or 1)
    batch = float(row.get("global_batch") or 0) / (workers * accumulation) or float(row["batch_per_worker"])
    placed = [float(part) for part in (row.get("placement") or "").split("+") if part]
    return nodes, workers, max(placed, default=float(np.ceil(workers / nodes))), batch, accumulation


def shares_of(jobs: Iterable[Job], law: Law) -> dict[str, tuple[float, float]]:
    """By device the jobs whose exchange hides, by their probabilities, and all that ran on several workers.

    A job's odds are how much likelier its rows that may not be seen are by this hypothesis, given the others; the
    device's share is the one that its jobs make likeliest (expectation and maximisation), with PSEUDO_JOBS beside them.
    """
    knowledge, odds = load_default_prior(), defaultdict[str, list[float]](list)
    for job in jobs:
        told = []
        for rows in (job.shown, np.ones(len(job.step_s), dtype=bool)):
            points = average(job.keys[rows], job.step_s[rows])
            if not points.exchange_seen:
                break
            mean, sd = with_growth(points, *knowledge.of(job.device))
            told.append(odds_of(fit_overlap(points, job.log_peak, law), fit_job(points, mean, sd), float(sd[LEVEL])))
        else:
            odds[job.device].append(told[1] - told[0])
    found = {}
    for device, logs in sorted(odds.items()):
        hidden = 0.5 * len(logs)
        for _ in range(ROUNDS):
            share = (hidden + 0.5 * PSEUDO_JOBS) / (len(logs) + PSEUDO_JOBS)
            hidden = float(expit(np.array(logs) + logit(share)).sum())
        found[device] = (round(hidden, 2), float(len(logs)))
    return found


def _samples(job: Job) -> Floats:
    return np.asarray(job.keys[:, 3] * job.keys[:, 4])


def scored(jobs: Sequence[Job], lessons: Mapping[str, Lesson], part: str, how: Predict, rows: int) -> str:
    """Errors over some jobs, each by what the others teach."""
    means, errors, inside, widths = [], [], [], []
    for job in jobs:
        shown = job.shown & (np.cumsum(job.shown) <= rows)
        predicted, spread = how(job, shown, lessons[job.part(part)])
        error = (predicted - np.log(job.step_s))[~job.shown]
        means.append(np.abs(error).mean())
        errors += error.tolist()
        inside += (np.abs(error) <= NOMINAL * spread[~job.shown]).tolist()
        widths += (2.0 * NOMINAL * spread[~job.shown]).tolist()
    rates = np.abs(np.expm1(-np.array(errors)))
    told = f"{100 * rates.mean():.1f} / {100 * np.median(rates):.1f} / {np.mean(means):.3f}"
    return (
        told if not any(widths) else f"{told}; coverage {100 * np.mean(inside):.0f} %, ln-width {np.mean(widths):.2f}"
    )


def main() -> None:
    """Learn and print: mape of throughput / its median / mean over jobs of mean |ln|."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--without", choices=sorted(PARTS), default="kind")
    parser.add_argument("--shares", type=Path, nargs="+")
    parser.add_argument("--peaks", action="store_true", help="tell the exponent of the peak apart")
    arguments = parser.parse_args()
    jobs, part = [job for path in arguments.tables for job in read(path)], arguments.without
    law = learned(jobs)
    print(f"of all: {law}")
    if arguments.shares:
        shares = shares_of((job for path in arguments.shares for job in read(path)), law)
        print(f"jobs that hide their exchange, and jobs: {shares}")
        names = sorted({path.name for path in (*arguments.tables, *arguments.shares)})
        known = [each for each in load_default_prior().sources if not each.endswith(HIDDEN)]
        added = [f"{name}{HIDDEN}" for name in names if not any(each.startswith(name) for each in known)]
        sources = (*known, *added)
        document = replace(load_default_prior(), overlapped=shares, sources=sources).document()
        SHIPPED.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if arguments.peaks:
        for exponent in (0.0, 0.3, 0.6, 0.9):
            learned(jobs, exponent)
    lessons = {}
    elsewhere = {
        name: told for name, told in load_default_prior().overlapped.items() if name in load_default_prior().offset
    }
    for name in sorted({job.part(part) for job in jobs}):
        others = [job for job in jobs if job.part(part) != name]
        law = learned(others)
        shares = elsewhere | shares_of(others, law)
        lessons[name] = Lesson(law, replace(load_default_prior(), overlapped=shares))
        print(f"without {name}: {law}")
    for rows in (2, 1):
        for language in (False, True):
            some = [job for job in jobs if job.name.startswith(LANGUAGE_MODELS) == language]
            if not some:
                continue
            print(f"{'language models' if language else 'data-parallel'}, {rows} row{'s' if rows > 1 else ''} shown")
            for title, how in RULES.items():
                print(f"  {title}: {scored(some, lessons, part, how, rows)}")


if __name__ == "__main__":
    main()
