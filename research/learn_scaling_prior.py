"""Learn the prior that the scaling estimator ships from measurement tables, all rows of them.

``python research/learn_scaling_prior.py TABLE.csv... [--out plugins/nodewise_scaling/shipped_prior.json]``

Empirical Bayes by expectation and maximisation over the jobs (A. P. Dempster, N. M. Laird and D. B. Rubin, J. Royal
Stat. Soc. B 39(1), 1977): each job is fitted under the prior of the others' making, the prior is made of the fits.

How many jobs of a device hide their exchange is kept as it was shipped (``overlapped_law.py``).

Scores of intervals come from predicting each table's test rows from its train rows with a prior that saw no job of
the same model (the part of a job's name before its slash).
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_scaling.device import DeviceModel
from nodewise_scaling.fitting import fit_job
from nodewise_scaling.growth import with_growth
from nodewise_scaling.parameters import COUNT, HYPER_MEAN, HYPER_SD, JOB_SHARE, NAMES
from nodewise_scaling.points import Points, average
from nodewise_scaling.prior import NO_BOUNDS, Knowledge, Lesson, load_default_prior, offset_of

Key = tuple[float, float, float, float, float]
Row = tuple[Key, float, bool]
"""Columns of KEYS, step seconds, and whether it is a test row."""

OUT = Path(__file__).resolve().parent.parent / "plugins" / "nodewise_scaling" / "shipped_prior.json"
SMALL_SERIES = 1.0 / 3.0
"""Weight of the scores of a job that varies nothing but its scale: several of them are one network."""


HYPER_JOBS: Final = 3.0
"""Jobs that the hyper-prior weighs in learned spreads."""

HYPER_WEIGHT: Final = 1.5
"""What it weighs in learned means."""

LEAST_SPREAD: Final = 0.5
MOST_SPREAD: Final = 1.2
"""Learned spreads between jobs stay within these multiples of the hyper-prior's: few jobs tell them badly."""

FIXED: Final = (NAMES.index("overlap"),)
"""Never learned: a job's few points hardly tell it from the exchange, and jobs that do would teach the others noise."""

_ROUNDS: Final = 8
_SMALLEST_VARIANCE: Final = 1e-8

_BY_HAND: Final = Knowledge(
    mean=HYPER_MEAN,
    job_sd=HYPER_SD * np.sqrt(JOB_SHARE),
    device_sd=HYPER_SD * np.sqrt(1.0 - JOB_SHARE),
    sources=("no profile: a hyper-prior set by hand",),
)
HYPER: Final = replace(_BY_HAND, unseen=replace(_BY_HAND, over_fixed=False))


def main() -> None:
    """Read, learn, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    tables = {path.stem: _read(path) for path in arguments.tables}
    everything = _merged(tables.values())
    names = sorted(everything)
    sources = tuple(f"{stem}.csv, all rows" for stem in tables)
    knowledge = learned([_lesson(name, everything[name]) for name in names], sources)
    scores: list[tuple[str, Floats, float]] = []
    scores_unseen: list[tuple[str, Floats, float]] = []
    for stem, table in tables.items():
        for name in sorted(table):
            others = [_lesson(other, everything[other]) for other in names if _model(other) != _model(name)]
            prior = learned(others)
            weight = SMALL_SERIES if "batch" in name[0] else 1.0
            for found, known in ((scores, prior), (scores_unseen, prior.where_unseen)):
                score = _score(name, table[name], known)
                if score is not None:
                    found.append((name[1], score, weight))
                    seen = "" if known.over_fixed else ", from one worker"
                    print(f"{stem} {name[0]} {name[1]}{seen}: median score {np.median(score):.2f}")
    unseen = replace(knowledge.where_unseen, scores=tuple(scores_unseen))
    document = replace(
        knowledge, scores=tuple(scores), unseen=unseen, overlapped=load_default_prior().overlapped
    ).document()
    arguments.out.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


Job = tuple[str, str]
"""Name and device."""


def _read(path: Path) -> dict[Job, list[Row]]:
    jobs: dict[Job, list[Row]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            nodes, workers = float(row["nodes"]), float(row["workers"])
            placed = [float(part) for part in row["placement"].split("+")] if row["placement"] else []
            fullest = max(placed, default=float(np.ceil(workers / nodes)))
            key = (nodes, workers, fullest, float(row["batch_per_worker"]), 1.0)
            jobs[row["job"], row["device"]].append((key, 1.0 / float(row["steps_per_s"]), row["split"] == "test"))
    return jobs


def _merged(tables: Iterable[dict[Job, list[Row]]]) -> dict[Job, list[Row]]:
    """Of each job the table that has most of it."""
    found: dict[Job, list[Row]] = {}
    for table in tables:
        for job, rows in table.items():
            if len(rows) > len(found.get(job, ())):
                found[job] = rows
    return found


def _points(rows: Iterable[Row]) -> Points:
    listed = list(rows)
    return average(np.array([key for key, _, _ in listed]), np.array([step_s for _, step_s, _ in listed]))


def _lesson(job: Job, rows: list[Row]) -> Lesson:
    return job[1], _points(rows)


def _model(job: Job) -> str:
    return job[0].split("/")[0]


def _score(job: Job, rows: list[Row], knowledge: Knowledge) -> Floats | None:
    """|ln(measured / predicted)| over the deviation, of the test rows, thinned to 200.

    What is known where exchange was not seen is tried from the runs of one worker, on all others, of jobs where these
    ran several batches: of a job that ran one, nobody knows how its compute grows.
    """
    shown = [not test if knowledge.over_fixed else key[1] == 1.0 for key, _, test in rows]
    train = [row for row, told in zip(rows, shown, strict=True) if told]
    test = [row for row, told in zip(rows, shown, strict=True) if not told]
    if not train or not test or (not knowledge.over_fixed and len({key[3] for key, _, _ in train}) == 1):
        return None
    seen = replace(_points(train), over_fixed=knowledge.over_fixed)
    model = DeviceModel(fit_job(seen, *with_growth(seen, *knowledge.of(job[1]))), 1.6448536269514722, seen)
    predicted, spread, _ = model.predict(np.array([key for key, _, _ in test]))
    measured = np.array([step_s for _, step_s, _ in test])
    scores = np.sort(np.abs(np.log(measured / predicted)) / spread)
    return np.asarray(scores[np.unique(np.linspace(0, len(scores) - 1, 200).astype(int))])


def learned(lessons: Sequence[Lesson], sources: tuple[str, ...] = ()) -> Knowledge:
    """Learn a prior from jobs, beginning with the hyper-prior; devices' shares of hidden exchange are as shipped."""
    if not lessons:
        return HYPER
    return replace(
        _learned(lessons, sources, over_fixed=True),
        unseen=_learned(lessons, sources, over_fixed=False),
        overlapped=load_default_prior().overlapped,
    )


def _learned(told: Sequence[Lesson], sources: tuple[str, ...], *, over_fixed: bool) -> Knowledge:
    lessons = [(device, replace(points, over_fixed=over_fixed)) for device, points in told]
    devices = sorted({device for device, _ in lessons})
    offset = {device: np.zeros(COUNT) for device in devices}
    offset_variance = {device: np.zeros(COUNT) for device in devices}
    mean = HYPER_MEAN.copy()
    job_variance = HYPER_SD**2 * JOB_SHARE
    device_variance = np.maximum(HYPER_SD**2 * (1.0 - JOB_SHARE), _SMALLEST_VARIANCE)
    for _ in range(_ROUNDS):
        fits = [
            fit_job(points, mean + offset[device], np.sqrt(job_variance), bounds=NO_BOUNDS)
            for device, points in lessons
        ]
        for device in devices:
            members = [fit for (name, _), fit in zip(lessons, fits, strict=True) if name == device]
            offset[device], offset_variance[device] = offset_of(
                members, mean, offset[device], np.zeros(COUNT), device_variance, job_variance
            )
        apart = np.array([fit.theta - offset[device] for (device, _), fit in zip(lessons, fits, strict=True)])
        pull = HYPER_WEIGHT / HYPER_SD**2
        mean = (HYPER_MEAN * pull + apart.sum(axis=0) / job_variance) / (pull + len(fits) / job_variance)
        unsure = np.array([np.diag(fit.theta_covariance) for fit in fits])
        usual = HYPER_JOBS * JOB_SHARE * HYPER_SD**2 * 0.5
        job_variance = (usual + ((apart - mean) ** 2 + unsure).sum(axis=0)) / (HYPER_JOBS * 0.5 + len(fits))
        limits = HYPER_SD**2 * JOB_SHARE
        job_variance = np.clip(job_variance, LEAST_SPREAD**2 * limits, MOST_SPREAD**2 * limits)
        for index in FIXED:
            mean[index], job_variance[index] = HYPER_MEAN[index], HYPER_SD[index] ** 2
            for device in devices:
                offset[device][index] = 0.0
        spread = sum((offset[device] ** 2 + offset_variance[device] for device in devices), start=np.zeros(COUNT))
        usual = HYPER_JOBS * (1.0 - JOB_SHARE) * HYPER_SD**2 * 0.5
        device_variance = np.maximum((usual + spread) / (HYPER_JOBS * 0.5 + len(devices)), _SMALLEST_VARIANCE)
    return Knowledge(
        mean=mean,
        job_sd=np.sqrt(job_variance),
        device_sd=np.sqrt(device_variance),
        offset=offset,
        offset_variance=offset_variance,
        sources=sources,
        over_fixed=over_fixed,
    )


if __name__ == "__main__":
    main()
