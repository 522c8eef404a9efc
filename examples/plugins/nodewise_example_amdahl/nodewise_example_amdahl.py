"""Throughput by Amdahl's law: a complete Nodewise plugin.

With n workers a sample costs ``serial + parallel / n`` seconds: a part that more workers do not shorten, and a part
that they share. Both constants are fitted to the observations of a profile, all of one device in one sync mode.

Reference: G. M. Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities",
AFIPS Spring Joint Computer Conference, 1967.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from nodewise.plugin import (
    Assessment,
    Configurations,
    Context,
    EstimatorRecord,
    Floats,
    Options,
    Predictions,
    Profile,
    Query,
    Refusal,
    RowRefusal,
    SyncMode,
    as_floats,
    hookimpl,
)

TOO_LITTLE = Refusal.missing(
    "Amdahl's law needs observations of one device in one sync mode, with two numbers of workers and a known batch",
    "observations",
    "observations.configurations.batch_per_worker_samples",
)
OTHER_ROW = Refusal.unsupported(
    "the law holds for data-parallel rows of the device and sync mode that were observed, with a known batch",
    "configurations.batch_per_worker_samples",
)


@dataclass(frozen=True)
class AmdahlModel:
    """A model maps configurations to predictions: all rows at once, and always the same answer for the same rows."""

    observed: Configurations
    seconds: Floats  # per sample: serial, parallel
    covariance: Floats  # of the two constants, for a residual of 1
    residual: float  # standard deviation of the relative error

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002  # the protocol's
        """Predict every row; rows that the law does not hold for are refused."""
        n, samples = configurations.workers, samples_per_cycle(configurations)
        alike = (samples > 0) & (kinds(configurations) == kinds(self.observed)[0])
        serial, parallel = samples * self.seconds[0], samples * self.seconds[1] / n
        # The further a row lies from the observations, the less they say about it: variance plus leverage.
        point = np.stack([np.ones(len(n)), 1.0 / n]) / (self.seconds[0] + self.seconds[1] / n)
        leverage = np.einsum("ir,ij,jr->r", point, self.covariance, point)
        scale = np.maximum(n / self.observed.workers.max(), self.observed.workers.min() / n)
        return Predictions.of(
            serial + parallel,
            log_spread=self.residual * np.sqrt(1.0 + leverage),
            breakdown_s={"serial": serial, "parallel": parallel},  # adds up to step_s
            extrapolation=np.maximum(scale, 1.0),
            refusals=RowRefusal.first(len(n), [(~alike, OTHER_ROW)]),
        )


class AmdahlEstimator:
    """An estimator says whether it can answer, and fits a profile into a model."""

    def assess(self, profile: Profile, query: Query) -> Assessment:  # noqa: ARG002  # the protocol's
        """Cheap: asked for every new question, before anything is fitted."""
        observed = profile.observations.configurations
        counts = sorted(set(observed.workers.tolist()))
        if len(counts) < 2 or len(set(kinds(observed))) > 1 or not samples_per_cycle(observed).all():
            return Assessment(refusal=TOO_LITTLE)
        evidence = f"{len(observed)} observations, with {', '.join(map(str, counts))} workers"
        # A curve through points, which knows nothing of where the time goes: whoever does is preferred by `auto`.
        return Assessment(evidence=(evidence,), strength=0.2)

    def fit(self, profile: Profile, context: Context) -> AmdahlModel:  # noqa: ARG002  # the protocol's
        """Least squares on relative errors; neither constant may be negative."""
        observed = profile.observations.configurations
        rate = profile.observations.steps_per_s * observed.samples_per_step()
        terms = np.stack([rate, rate / observed.workers], axis=1)  # terms @ seconds = 1 if the law is exact
        solution, distance = nnls(terms, np.ones(len(rate)))
        seconds = as_floats(solution)
        spare = len(rate) - len(seconds)
        # Two observations fit exactly and leave nothing over to estimate a spread from: then there is no interval.
        residual = float(distance) / spare**0.5 if spare else 0.0
        return AmdahlModel(observed, seconds, as_floats(np.linalg.inv(terms.T @ terms)), residual)


def samples_per_cycle(configurations: Configurations) -> Floats:
    """Samples that all workers handle in one step time; an asynchronous step counts the samples of one worker."""
    asynchronous = configurations.sync_mode == SyncMode.ASYNC
    return configurations.samples_per_step() * np.where(asynchronous, configurations.workers, 1)


def kinds(configurations: Configurations) -> NDArray[np.str_]:
    """What the constants hold for, row by row: device, sync mode and the degrees that split a model."""
    c = configurations
    split = c.tensor_parallel * c.pipeline_parallel * c.context_parallel * c.expert_parallel
    return np.array([f"{d} {m} {s}" for d, m, s in zip(c.device_names(), c.sync_mode, split, strict=True)], dtype=str)


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Register; hooks never compute."""
    record = EstimatorRecord(
        name="amdahl",
        version="1.0.0",
        description="Amdahl's law, fitted to observations with two or more numbers of workers",
        estimator=AmdahlEstimator(),
        capabilities=frozenset({"observations"}),
        plugin_api=">=1.0,<2",
    )
    return [record]
