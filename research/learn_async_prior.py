"""What asynchronous jobs teach about jobs of which only throughputs are known: `learn_async_prior.py DATA`.

Learns the servers' share of a cycle and the sharpness of the knee from all rows of the testbed's jobs (DATA, and the
project's own in `queueing_own.csv`) and of CM-DARE, by source and together; then predicts every job from its rows of 1
and 4 workers with what the other source alone taught. Phase timings are not looked at.
"""

import argparse
import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import Floats, SyncMode
from nodewise_queueing.curve_model import CurveModel
from nodewise_queueing.evidence import Facts, Runs, run_log_spread
from nodewise_queueing.hypotheses import Hypotheses, shape_of
from nodewise_queueing.rows import CurveKey, Setting
from nodewise_queueing.scaling import SERVER_EXPONENT
from nodewise_queueing.servers_share import LEARNED, SharePrior, expected_of, relative_speed
from nodewise_queueing.variation import ACCELERATOR_CV

_BY_CV: Final = {0.1: "a3 a5 o1 o7 h3", 0.2: "a1 o5 o8 h1", 0.3: "a4 o3 o4 h4", 0.4: "o9 h2", 0.5: "a2 o2 o6"}
TESTBED_CV: Final = {job: cv for cv, jobs in _BY_CV.items() for job in jobs.split()}
"""Coefficient of variation of compute of the testbed's asynchronous jobs, as set (research/queueing.md)."""

SEEN: Final = (1, 4)
NINETY_PERCENT: Final = 1.645
"""Half the width of a normal 90 % interval, in deviations."""
STARTING: Final = SharePrior(share=0.25, share_spread=0.6, sharpest=4.0, by_variation=0.0, sharpness_spread=0.4)
LEAST_SPREAD: Final = 0.15
"""Of either logarithm: so few jobs do not show that others are alike."""


@dataclass(frozen=True)
class Job:
    """Steps/s of one job by its number of workers."""

    name: str
    device: str
    servers: int
    workers: Sequence[int]
    log_rate: Floats

    @property
    def cv(self) -> float:
        """Coefficient of variation of compute."""
        return TESTBED_CV.get(self.name, ACCELERATOR_CV)

    @property
    def log_cause(self) -> float:
        """What device and servers do to ln(share / (1 - share))."""
        return math.log(relative_speed(self.device, CATALOGUE) or 1.0) - SERVER_EXPONENT * math.log(self.servers)

    def runs(self, kept: Sequence[int]) -> Runs:
        """Some of its rows as evidence."""
        rows = [row for row, count in enumerate(self.workers) if count in kept]
        workers = np.array(self.workers)[rows]
        setting = Setting(servers=self.servers, link_bytes_per_s=0.0, batch_per_worker=0, accumulation=1)
        return Runs(
            workers=workers,
            log_rate=self.log_rate[rows],
            log_noise=run_log_spread(SyncMode.ASYNC, workers),
            settings=(setting,) * len(rows),
        )


CATALOGUE = load_catalogue()
_SHARES, _SHARPNESSES = np.geomspace(3e-3, 0.995, 90), np.geomspace(1.0, 12.0, 18)
GRID: Final = Hypotheses(
    mode=SyncMode.ASYNC,
    share=np.tile(_SHARES, len(_SHARPNESSES)),
    sharpness=np.repeat(_SHARPNESSES, len(_SHARES)),
    variation=np.zeros(len(_SHARES) * len(_SHARPNESSES)),
    log_prior=np.zeros(len(_SHARES) * len(_SHARPNESSES)),
)
LOG_ODDS: Final = np.log(GRID.share / (1.0 - GRID.share))


def jobs_of(table: Path) -> list[Job]:
    """Asynchronous jobs of a table."""
    found: dict[str, list[dict[str, str]]] = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["sync"] == "async":
                found.setdefault(row["job"], []).append(row)
    return [
        Job(
            name=name,
            device=rows[0]["device"],
            servers=int(rows[0]["parameter_servers"]),
            workers=[int(row["workers"]) for row in rows],
            log_rate=np.log([float(row["steps_per_s"]) for row in rows]),
        )
        for name, rows in found.items()
    ]


def log_likelihood(job: Job) -> Floats:
    """Of every hypothesis of the grid, with the cycle that fits it best."""
    runs = job.runs(job.workers)
    step = shape_of(GRID, runs.workers, demand_factor=1.0, compute_factor=1.0).step
    residual, precision = np.log(runs.workers) - runs.log_rate - np.log(step), runs.log_noise**-2
    cycle = (residual * precision).sum(axis=1) / precision.sum()
    return np.asarray(-0.5 * (np.square(residual - cycle[:, np.newaxis]) * precision).sum(axis=1))


def learned_of(jobs: list[Job]) -> SharePrior:
    """Empirical Bayes by expectation maximisation, both logarithms normal about what causes make of them."""
    likelihood = np.array([log_likelihood(job) for job in jobs])
    log_odds = LOG_ODDS - np.array([job.log_cause for job in jobs])[:, np.newaxis]
    cv, log_sharpness = np.array([job.cv for job in jobs]), np.log(GRID.sharpness)
    learned = STARTING
    for _ in range(80):
        centre = math.log(learned.share / (1.0 - learned.share))
        usual = (math.log(learned.sharpest) + learned.by_variation * cv)[:, np.newaxis]
        log_weight = likelihood - 0.5 * np.square((log_odds - centre) / learned.share_spread)
        # The grid is even in ln(share), the prior in ln(share / (1 - share)).
        log_weight += -0.5 * np.square((log_sharpness - usual) / learned.sharpness_spread) - np.log1p(-GRID.share)
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        centre = float((weight * log_odds).sum(axis=1).mean())
        sharpness = (weight * log_sharpness).sum(axis=1)
        slope, level = np.polyfit(cv, sharpness, 1) if np.ptp(cv) > 0.0 else (0.0, sharpness.mean())
        usual = (level + slope * cv)[:, np.newaxis]
        learned = SharePrior(
            share=1.0 / (1.0 + math.exp(-centre)),
            share_spread=max(_deviation(weight, log_odds - centre), LEAST_SPREAD),
            sharpest=math.exp(level),
            by_variation=float(slope),
            sharpness_spread=max(_deviation(weight, log_sharpness - usual), LEAST_SPREAD),
        )
    return learned


def _deviation(weight: Floats, error: Floats) -> float:
    return math.sqrt(float((weight * np.square(error)).sum(axis=1).mean()))


def scored(jobs: list[Job], learned: SharePrior) -> tuple[Floats, float]:
    """Logarithms of predicted / measured of the rows that were not seen; share of them within 90 % intervals."""
    errors, inside = [], []
    for job in jobs:
        runs = job.runs(SEEN)
        expected = expected_of(job.device, 1.0 / job.servers, CATALOGUE, learned)
        model = CurveModel.fit(SyncMode.ASYNC, runs, Facts(), expected)
        basic = model.table(CurveKey(job.device, SyncMode.ASYNC, runs.settings[0]), max(job.workers)).basic
        rows = [row for row, count in enumerate(job.workers) if count not in SEEN]
        at = np.array(job.workers)[rows]
        errors.append(np.log(at / basic["step_s"][at]) - job.log_rate[rows])
        inside.append(np.abs(errors[-1]) <= NINETY_PERCENT * basic["log_spread"][at])
    return np.concatenate(errors), float(np.concatenate(inside).mean())


def _told(jobs: list[Job], learned: SharePrior) -> str:
    errors, inside = scored(jobs, learned)
    error, bias = np.abs(np.expm1(errors)).mean(), errors.mean()
    return f"{len(errors):3d} rows, error {error:6.1%}, bias {bias:+6.1%}, within 90 % interval {inside:4.0%}"


def main() -> None:
    """Learn from each source and from all, and try each on the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder with measurements/cmdare_async_ps.csv and testbed_ps.csv")
    measurements = parser.parse_args().data / "measurements"
    own = jobs_of(Path(__file__).with_name("queueing_own.csv"))
    published = jobs_of(measurements / "testbed_ps.csv")
    cm_dare = jobs_of(measurements / "cmdare_async_ps.csv")
    taught = {"testbed": learned_of(published + own), "CM-DARE": learned_of(cm_dare)}
    for name, learned in {**taught, "all": learned_of(published + own + cm_dare), "shipped": LEARNED}.items():
        print(
            f"{name:8s} share {learned.share:.3f}, deviation {learned.share_spread:.2f}; "
            f"ln p = ln {learned.sharpest:.2f} {learned.by_variation:+.2f} cv, deviation {learned.sharpness_spread:.2f}"
        )
    tried = (("CM-DARE", cm_dare), ("testbed, published", published), ("testbed, own", own))
    for target, jobs in tried:
        other = "testbed" if target == "CM-DARE" else "CM-DARE"
        print(f"{target:19s} by {other:8s} {_told(jobs, taught[other])}")
        print(f"{target:19s} by shipped  {_told(jobs, LEARNED)}")


if __name__ == "__main__":
    main()
