"""Score the estimator `scaling` on jobs of models that its prior has not seen: `score_scaling.py TABLE.csv...`.

The shipped prior was learned from published tables, so that a backtest on these tables flatters it. Here each job is
predicted from its train rows under a prior, and with scores of intervals, that come from all rows of all given tables,
but for jobs of the same model (the part of a job's name before its slash). The scores of the others come from priors
without the predicted model and without their own.

Beside it the width of intervals about the reference form (`reference_intervals.py`), which the plugin of published
baselines has: `PYTHONPATH=examples/plugins/nodewise_baselines`.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from learn_scaling_prior import HYPER, SMALL_SERIES, _lesson, _merged, _points, _read, _score, learned
from nodewise.domain.columns import Floats, as_ints, freeze
from nodewise.evaluation.metrics import Outcomes, metrics_by
from nodewise_scaling.device import INTERVAL_LEVEL, NOMINAL, DeviceModel
from nodewise_scaling.fitting import fit_job
from nodewise_scaling.growth import with_growth
from nodewise_scaling.prior import Knowledge
from nodewise_values import Metrics

# The reference's plugin is an example, not installed with the server.
BASELINES: Final = find_spec("nodewise_baselines") is not None
if BASELINES:
    from reference_intervals import extrapolated, widths_of

Job = tuple[str, str]
"""Name and device."""

SHARES: Final = ("mape", "median_ape", "step_mape", "regret", "within5", "coverage90", "worst_job_coverage90")
"""Printed in percent."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """Test rows of one job: step seconds as predicted, bounds of the 90 % interval, and the table's own rows."""

    rows: Sequence[Mapping[str, str]]
    step_s: Floats
    lower_s: Floats
    upper_s: Floats


class Lessons:
    """Everything that the tables say, and what is learned from the part of it that a job may know."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._tables: dict[str, dict[Job, Any]] = {path.stem: _read(path) for path in paths}
        self.jobs: dict[Job, Any] = _merged(self._tables.values())
        self.prior = lru_cache(maxsize=None)(self._prior)

    def _prior(self, models: frozenset[str], device: str) -> Knowledge:
        """From the jobs of other models than these, on other devices than this ("" = on all); of none, set by hand."""
        kept = [job for job in sorted(self.jobs) if model_of(job) not in models and job[1] != device]
        return learned([_lesson(job, self.jobs[job]) for job in kept]) if kept else HYPER

    def knowledge(self, model: str, device: str) -> Knowledge:
        """What a job may know: a prior and scores without its model, and without a device if one is named."""
        scores: dict[bool, list[tuple[str, Floats, float]]] = {True: [], False: []}
        for table in self._tables.values():
            for job in sorted(table):
                if model_of(job) == model or job[1] == device:
                    continue
                prior = self.prior(frozenset({model, model_of(job)}), device)
                for known in (prior, prior.where_unseen):
                    found = _score(job, table[job], known)
                    if found is not None:
                        scores[known.over_fixed].append((job[1], found, SMALL_SERIES if "batch" in job[0] else 1.0))
        prior = self.prior(frozenset({model}), device)
        unseen = replace(prior.where_unseen, scores=tuple(scores[False]))
        return replace(prior, scores=tuple(scores[True]), unseen=unseen)

    def reference(self, path: Path) -> dict[Job, tuple[Floats, Floats]]:
        """Widths of the reference form's intervals of a table's test rows, and whether measurements lie inside."""
        jobs = {}
        for job, rows in self._tables[path.stem].items():
            train, test = ([(row[0], row[1]) for row in rows if row[2] == held_out] for held_out in (False, True))
            if train and test:
                jobs[job] = extrapolated(train, test)
        found: dict[Job, tuple[Floats, Floats]] = widths_of(jobs, {job: model_of(job) for job in jobs})
        return found

    def predicted(self, path: Path, *, without_device: bool) -> dict[Job, Predicted]:
        """Test rows of every job of a table."""
        with path.open(encoding="utf-8", newline="") as stream:
            listed = [row for row in csv.DictReader(stream) if row["split"] == "test"]
        found = {}
        for job, rows in self._tables[path.stem].items():
            train, test = [row for row in rows if not row[2]], [row for row in rows if row[2]]
            if not train or not test:
                continue
            knowledge = self.knowledge(model_of(job), job[1] if without_device else "")
            seen = _points(train)
            fit = fit_job(seen, *with_growth(seen, *knowledge.of(job[1])))
            model = DeviceModel(fit, knowledge.multiplier(job[1], INTERVAL_LEVEL), seen)
            step_s, spread, _ = model.predict(np.array([key for key, _, _ in test]))
            own = [row for row in listed if (row["job"], row["device"]) == job]
            factor = np.exp(NOMINAL * spread)
            found[job] = Predicted(own, step_s, step_s / factor, step_s * factor)
        return found


def model_of(job: Job) -> str:
    """The network of a job."""
    return job[0].split("/")[0]


def scored(jobs: Mapping[Job, Predicted]) -> tuple[Metrics, dict[str, Metrics]]:
    """Scores of a table and of its jobs, as a backtest's."""
    several = list(jobs.values())
    rows = [row for each in several for row in each.rows]
    job = as_ints(np.repeat(np.arange(len(several)), [len(each.rows) for each in several]))
    batch = as_ints([int(row["workers"]) * int(row["batch_per_worker"]) for row in rows])
    places = [(row["nodes"], row["workers"], row["placement"], row["batch_per_worker"]) for row in rows]
    number = {place: rank for rank, place in enumerate(sorted(set(places)))}
    outcomes = Outcomes(
        answered=np.ones(len(rows), dtype=np.bool_),
        predicted_steps_per_s=_rates(each.step_s for each in several),
        lower_steps_per_s=_rates(each.upper_s for each in several),
        upper_steps_per_s=_rates(each.lower_s for each in several),
        measured_steps_per_s=freeze(np.array([float(row["steps_per_s"]) for row in rows])),
        job=job,
        global_batch=batch,
        samples_per_step=batch,
        configuration=as_ints([number[place] for place in places]),
    )
    (overall,) = metrics_by(outcomes, as_ints(np.zeros(len(rows))), 1)
    return overall, dict(zip((name for name, _ in jobs), metrics_by(outcomes, job, len(several)), strict=True))


def _rates(step_s: Iterable[Floats]) -> Floats:
    return freeze(1.0 / np.concatenate(list(step_s)))


def main() -> int:
    """Score all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path, help="measurements with train and test rows")
    parser.add_argument("--without-device", action="store_true", help="leave out jobs on the same device as well")
    parser.add_argument("--predictions", type=Path, metavar="OUT.csv", help="write the prediction of every test row")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    lessons = Lessons(arguments.tables)
    document, written, totals = {}, [], []
    for path in arguments.tables:
        predicted = lessons.predicted(path, without_device=arguments.without_device)
        overall, by_job = scored(predicted)
        summary = _summary(overall, by_job, lessons.reference(path) if BASELINES else {})
        totals.append((overall, summary))
        jobs = {name: asdict(each) for name, each in by_job.items()}
        document[path.stem] = {**asdict(overall), **summary, "jobs": jobs}
        if not arguments.json:
            _print(path.stem, overall, by_job, summary)
        written += [(path.stem, each) for each in predicted.values()]
    if arguments.json:
        print(json.dumps(document))
    else:
        rows = sum(overall.rows_count for overall, _ in totals)
        inside = sum(overall.rows_count * (overall.coverage90 or 0.0) for overall, _ in totals)
        print(f"all tables: {rows} rows, coverage90 {100.0 * inside / rows:.1f} %")
    if arguments.predictions:
        _write(arguments.predictions, written)
    return 0


def _summary(
    overall: Metrics, by_job: Mapping[str, Metrics], reference: Mapping[Job, tuple[Floats, Floats]]
) -> dict[str, Any]:
    """What a back-test does not say: the mean of the jobs' errors, the worst job, and the reference's intervals."""
    errors = {name: each.mape or 0.0 for name, each in by_job.items()}
    found: dict[str, Any] = {
        "mape_mean_of_jobs": float(np.mean(list(errors.values()))),
        "worst_job": max(errors, key=lambda name: errors[name]),
    }
    if reference:
        width = float(np.concatenate([width for width, _ in reference.values()]).mean())
        found["reference_width90"] = width
        found["reference_coverage90"] = float(np.concatenate([inside for _, inside in reference.values()]).mean())
        found["width90_over_reference"] = (overall.width90 or 0.0) / width
    return found


def _print(table: str, overall: Metrics, by_job: Mapping[str, Metrics], summary: Mapping[str, Any]) -> None:
    worst, mean = summary["worst_job"], 100.0 * summary["mape_mean_of_jobs"]
    rows, decisions = overall.rows_count, overall.groups_count
    print(f"{table}: {rows} rows, {decisions} decisions; largest error: {worst}; jobs' mean mape: {mean:.1f}")
    width = max(len(name) for name in by_job) + 2
    print(" " * width + " ".join(f"{name.removesuffix('_job_coverage90'):>10}" for name in (*SHARES, "width90")))
    for name, each in {"all": overall, **by_job}.items():
        shares = [getattr(each, share) for share in SHARES]
        cells = [f"{100.0 * share:10.1f}" if share is not None else " " * 10 for share in shares]
        print(f"{name:{width}}" + " ".join([*cells, f"{each.width90 or 0.0:10.2f}"]))
    if "reference_width90" in summary:
        print(
            f"reference form, conformal: width90 {summary['reference_width90']:.2f}, "
            f"coverage90 {100.0 * summary['reference_coverage90']:.1f}; "
            f"width90 over its: {summary['width90_over_reference']:.2f}"
        )
    print(flush=True)


def _write(path: Path, predicted: Sequence[tuple[str, Predicted]]) -> None:
    names = ("table", "job", "device", "nodes", "workers", "placement", "batch_per_worker")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow((*names, "measured_step_s", "step_s", "lower_step_s", "upper_step_s"))
        for table, each in predicted:
            for row, *steps in zip(each.rows, each.step_s, each.lower_s, each.upper_s, strict=True):
                told = [table, *(row[name] for name in names[1:]), 1.0 / float(row["steps_per_s"]), *steps]
                writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in told])


if __name__ == "__main__":
    sys.exit(main())
