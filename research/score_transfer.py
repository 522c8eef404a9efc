"""Score what `scaling` carries over to another device, on jobs that ran on several: `score_transfer.py TABLE.csv...`.

Jobs are named ``<model>/<cluster>``; those of one model are one job on several devices. For each ordered pair the
donor's runs are all known and the target's are hidden but for what a variant shows: nothing; its one-worker runs;
these, and two runs on the fullest one and two nodes that both devices have. Test rows are the same in all three: the
target's rows of several workers, less those two runs, where the donor has the same nodes and workers, without which the
peers cannot answer. Runs of equal nodes, workers and batch are averaged. The prior has seen no job of the model; with
``--without-device`` none on the target's device either.

The peers: `ratio`, one-worker throughput over the donor's times the donor's (S. Jayaram Subramanya et al., Sia, SOSP
2023); `perfect`, the one-worker step; `additive`, the one-worker step and the donor's time beyond its own one-worker
step; `scaled`, the same times what the runs on one and two nodes have of it; `facts`, the donor's step over the ratio
of 32-bit peaks, for a target that never ran. `alone` is `scaling` without the donor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import (
    Catalogue,
    Configurations,
    Floats,
    Observations,
    Options,
    Prior,
    Profile,
    SyncMode,
    as_floats,
    as_ints,
    constant_ints,
)
from nodewise_scaling.device import NOMINAL
from nodewise_scaling.estimator import ScalingEstimator
from nodewise_scaling.points import MEASUREMENT_LOG_SPREAD
from nodewise_scaling.prior import Knowledge
from score_scaling import Lessons, model_of

VARIANTS: Final = ("nothing", "one worker", "three kinds")
EXTRAPOLATED_FLOOR: Final = 0.1
"""Of the first value of a curve in the batch, what straight lines beyond its ends are held above."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """A job on one device: (rows, 3) nodes, workers and samples per worker, and mean step seconds."""

    device: str
    keys: Floats
    step_s: Floats

    def take(self, mask: Any) -> Runs:
        """Some rows."""
        return Runs(self.device, self.keys[mask], self.step_s[mask])

    @property
    def curves(self) -> dict[tuple[float, float], tuple[Floats, Floats]]:
        """Batches and steps by nodes and workers."""
        found = {}
        for nodes, workers in sorted({(key[0], key[1]) for key in self.keys.tolist()}):
            at = (self.keys[:, 0] == nodes) & (self.keys[:, 1] == workers)
            found[nodes, workers] = self.keys[at, 2], self.step_s[at]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a fit may use."""

    prior: Prior
    catalogue: Catalogue
    seed: int = 0

    def traces(self) -> tuple[()]:
        """No traces."""
        return ()

    def model(self, estimator: str) -> Any:
        """No other estimator."""
        raise NotImplementedError(estimator)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One target and donor: what was measured, and predictions by name, with intervals where there are any."""

    model: str
    target: str
    donor: str
    measured: Floats
    step_s: Mapping[str, Floats]
    log_spread: Mapping[str, Floats]
    refused: int


def main() -> int:
    """Score all pairs and variants."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path, help="measurements whose jobs are <model>/<cluster>")
    parser.add_argument(
        "--without-device", action="store_true", help="leave out of the prior jobs on the target as well"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    lessons, catalogue = Lessons(arguments.tables), load_catalogue()
    jobs = {job: _averaged(job[1], rows) for job, rows in lessons.jobs.items() if "batch" not in job[0]}
    document = {}
    for variant in VARIANTS:
        cases = []
        for target, donor in itertools.permutations(sorted(jobs), 2):
            model = model_of(target)
            if model == model_of(donor) and target[1] != donor[1]:
                knowledge = lessons.knowledge(model, target[1] if arguments.without_device else "")
                cases.append(_case(model, jobs[target], jobs[donor], variant, knowledge, catalogue))
        document[variant] = _document(cases)
        if not arguments.json:
            _print(variant, document[variant])
    if arguments.json:
        print(json.dumps(document))
    return 0


def _averaged(device: str, rows: Sequence[tuple[Sequence[float], float, bool]]) -> Runs:
    keys = np.array([(key[0], key[1], key[3]) for key, _, _ in rows])
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    means = np.bincount(inverse, [step for _, step, _ in rows]) / np.bincount(inverse)
    return Runs(device, distinct, means)


def _case(model: str, target: Runs, donor: Runs, variant: str, knowledge: Knowledge, catalogue: Catalogue) -> Case:
    lone, calibrating = _shown(target, donor)
    there = donor.curves
    same = np.array([(key[0], key[1]) in there for key in target.keys.tolist()])
    asked = target.take(same & ~lone & ~calibrating)
    own = {"nothing": lone & ~lone, "one worker": lone, "three kinds": lone | calibrating}[variant]
    observed = [_observations(donor), *([_observations(target.take(own))] if own.any() else [])]
    step_s, spread, answered = _answered(observed, asked, knowledge, catalogue)
    found, spreads = {"scaling": step_s}, {"scaling": spread}
    if variant == "nothing":
        first, second = catalogue.device(donor.device), catalogue.device(target.device)
        assert first is not None
        assert second is not None
        found["facts"] = _at(there, asked.keys) * first["fp32_flops_per_s"] / second["fp32_flops_per_s"]
    else:
        alone, alone_spread, _ = _answered(observed[1:], asked, knowledge, catalogue)
        found["alone"], spreads["alone"] = alone, alone_spread
        found.update(_peers(target, lone, calibrating, donor, asked.keys, scaled=variant == "three kinds"))
    return Case(
        model,
        target.device,
        donor.device,
        asked.step_s[answered],
        {name: values[answered] for name, values in found.items()},
        {name: values[answered] for name, values in spreads.items()},
        int((~answered).sum()),
    )


def _shown(runs: Runs, donor: Runs) -> tuple[Any, Any]:
    """Masks of one-worker runs, and of the fullest one and two nodes that the donor has as well, at a middle batch."""
    nodes, workers, batch = runs.keys.T
    lone, there = workers == 1.0, donor.curves
    both = np.array([(key[0], key[1]) in there for key in runs.keys.tolist()])
    batches = np.sort(batch[lone])
    middle = batches[len(batches) // 2]
    calibrating = np.zeros(len(nodes), dtype=bool)
    for count in (1.0, 2.0):
        at = np.flatnonzero((nodes == count) & both)
        fullest = at[workers[at] == workers[at].max()]
        calibrating[fullest[np.argmin(np.abs(batch[fullest] - middle))]] = True
    return lone, calibrating


def _answered(
    observed: Sequence[Observations], asked: Runs, knowledge: Knowledge, catalogue: Catalogue
) -> tuple[Floats, Floats, Any]:
    prior = Prior(prior_id="without the model", estimator="scaling", sources=(), content=knowledge)
    profile = Profile(observations=Observations.concatenated(observed))
    model = ScalingEstimator().fit(profile, Context(prior=prior, catalogue=catalogue))
    answer = model.predict(_configurations(asked), Options())
    return answer.step_s, answer.log_spread, answer.answered


def _configurations(runs: Runs) -> Configurations:
    nodes, workers, batch = (as_ints([int(value) for value in column]) for column in runs.keys.T)
    plain = Configurations.of(len(nodes), nodes=nodes, workers=workers, device=runs.device)
    return plain.replaced(batch_per_worker=batch, sync_mode=constant_ints(len(nodes), int(SyncMode.ALLREDUCE)))


def _observations(runs: Runs) -> Observations:
    return Observations.of(_configurations(runs), as_floats(1.0 / runs.step_s))


def _peers(target: Runs, lone: Any, calibrating: Any, donor: Runs, asked: Floats, *, scaled: bool) -> dict[str, Floats]:
    there = donor.curves
    (here,) = target.take(lone).curves.values()
    perfect = np.array([_interpolated(here, key[2]) for key in asked.tolist()])
    other = _at(there, asked)
    other_lone = np.array([_interpolated(there[1.0, 1.0], key[2]) for key in asked.tolist()])
    beyond = np.maximum(other - other_lone, 0.0)
    found = {"perfect": perfect, "ratio": perfect / other_lone * other, "additive": perfect + beyond}
    if scaled:
        seen = target.take(calibrating)
        factors = [
            max(step - _interpolated(here, key[2]), 1e-6) / _beyond(donor, key)
            for key, step in zip(seen.keys.tolist(), seen.step_s.tolist(), strict=True)
        ]
        found["scaled"] = perfect + np.where(asked[:, 0] > 1.0, factors[1], factors[0]) * beyond
    return found


def _beyond(donor: Runs, key: Sequence[float]) -> float:
    """The donor's time beyond one worker at these nodes and workers, no less than what its measurement errs by."""
    there = donor.curves
    step = _interpolated(there[key[0], key[1]], key[2])
    return max(step - _interpolated(there[1.0, 1.0], key[2]), MEASUREMENT_LOG_SPREAD * step)


def _at(curves: Mapping[tuple[float, float], tuple[Floats, Floats]], asked: Floats) -> Floats:
    return np.array([_interpolated(curves[key[0], key[1]], key[2]) for key in asked.tolist()])


def _interpolated(curve: tuple[Floats, Floats], batch: float) -> float:
    """A straight line between batches, and beyond their ends."""
    batches, steps = curve
    if len(batches) == 1:
        return float(steps[0])
    end = 0 if batch < batches[0] else -2
    inside = batches[0] <= batch <= batches[-1]
    slope = (steps[end + 1] - steps[end]) / (batches[end + 1] - batches[end])
    value = np.interp(batch, batches, steps) if inside else steps[end] + (batch - batches[end]) * slope
    return float(max(value, EXTRAPOLATED_FLOOR * steps[0]))


def _document(cases: Sequence[Case]) -> dict[str, Any]:
    """Scores pooled over rows, as means over jobs, and by pair."""
    pairs = sorted({(case.donor, case.target) for case in cases})
    by_pair = {
        f"{donor} -> {target}": _scores([case for case in cases if (case.donor, case.target) == (donor, target)])
        for donor, target in pairs
    }
    jobs = [_scores([case]) for case in cases if len(case.measured)]
    names = jobs[0]["predictors"]
    mean = {
        name: {score: float(np.mean([job["predictors"][name][score] for job in jobs])) for score in names[name]}
        for name in names
    }
    return {**_scores(cases), "mean_of_jobs": mean, "pairs": by_pair}


def _scores(cases: Sequence[Case]) -> dict[str, Any]:
    measured = np.concatenate([case.measured for case in cases])
    found: dict[str, Any] = {"rows": len(measured), "refused": sum(case.refused for case in cases), "predictors": {}}
    if not len(measured):
        return found
    for name in cases[0].step_s:
        step_s = np.concatenate([case.step_s[name] for case in cases])
        errors = np.abs(step_s / measured - 1.0)
        scores = {
            "step_mape": float(errors.mean()),
            "step_median": float(np.median(errors)),
            "mape": float(np.abs(measured / step_s - 1.0).mean()),
        }
        if name in cases[0].log_spread:
            half = NOMINAL * np.concatenate([case.log_spread[name] for case in cases])
            scores["coverage90"] = float((np.abs(np.log(step_s / measured)) <= half).mean())
            scores["width90"] = float(np.median(2.0 * half))
        found["predictors"][name] = scores
    return found


def _print(variant: str, document: Mapping[str, Any]) -> None:
    print(f"the target has shown {variant}: step mape / median %, (throughput mape), [coverage of 90 %, width]")
    print(f"  {'all rows':18}{_line(document)}")
    print(f"  {'mean of jobs':18}{_line({**document, 'predictors': document['mean_of_jobs']})}")
    for pair, scores in document["pairs"].items():
        print(f"  {pair:18}{_line(scores)}")
    print(flush=True)


def _line(scores: Mapping[str, Any]) -> str:
    cells = [f"{scores['rows']:6d} rows"]
    if scores["refused"]:
        cells.append(f"{scores['refused']} refused")
    for name, each in scores["predictors"].items():
        text = f"{name} {100 * each['step_mape']:.1f}/{100 * each['step_median']:.1f} ({100 * each['mape']:.1f})"
        if "coverage90" in each:
            text += f" [{100 * each['coverage90']:.0f}, {each['width90']:.2f}]"
        cells.append(text)
    return "  ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
