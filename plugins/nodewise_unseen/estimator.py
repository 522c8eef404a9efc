"""An estimator of models that never ran: facts of the workload, and a law that was fitted to other models' steps."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Architectures,
    Assessment,
    Catalogue,
    Configurations,
    Context,
    Corpus,
    Floats,
    NodewiseError,
    Prior,
    Profile,
    Query,
    Refusal,
    RowRefusal,
    freeze,
)
from nodewise_unseen.corpus import SHIPPED_SOURCE, Run, over_peaks, runs_of, shipped_runs
from nodewise_unseen.laws import Laws, learn_laws
from nodewise_unseen.model import UnseenModel, refusals_of
from nodewise_unseen.peaks import Peaks
from nodewise_unseen.refusals import refuse
from nodewise_unseen.steps import FEWEST_RUNS

__all__ = ["UnseenEstimator"]

NAME: Final = "unseen"
STRENGTH: Final = 0.0
"""Low, as it uses facts only: an estimator with runs of the model itself comes first."""
LAWS_KEPT: Final = 64
"""Most pairs of a prior and a catalogue that are cached: a server has one prior for each namespace."""
RAN_THERE_LOG_ERROR: Final = 0.65
"""Expected of rows on a device that the job itself ran on: its own runs tell more there than other models' steps."""
DEVIATION_TO_MEAN: Final = float(np.sqrt(2.0 / np.pi))
"""Mean of the absolute value of a normal variable over its standard deviation."""

_TOO_FEW: Final = Refusal.missing(
    f"the estimator learns from one-worker steps of other models: at least {FEWEST_RUNS} runs with FLOPs are needed, "
    "on devices of which the catalogue has a peak",
    "observations",
)


@dataclass(slots=True)
class UnseenEstimator:
    """Answers from FLOPs, family and whatever else every run tells; learns from all profiles together."""

    _laws: OrderedDict[tuple[str, str], Laws | None] = field(default_factory=OrderedDict)
    _peaks: Peaks | None = None
    _learning: threading.Lock = field(default_factory=threading.Lock)

    def learn(self, corpus: Corpus) -> Prior:
        """The runs of one worker in all profiles, with the table that ships. Peaks are not known before a fit."""
        own = runs_of(corpus)
        runs = (*shipped_runs(), *own)
        sources = (SHIPPED_SOURCE, *((f"{len(own)} runs of stored profiles",) if own else ()))
        return Prior.of(NAME, [run.to_list() for run in runs], sources=sources, content=runs)

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Agree where FLOPs are known and any row is of one worker, of known batch, on a device of known peak."""
        if (refusal := refuse(profile, query)) is not None:
            return refusal
        configurations = query.configurations
        architectures, precision = Architectures.of(profile.workload), profile.workload.precision or ""
        peaks = self._of(query.catalogue)
        refusals = refusals_of(architectures, configurations, peaks, precision)
        left = RowRefusal.left(len(configurations), refusals)
        if len(configurations) and not left.any():
            return Assessment(refusal=refusals[-1].refusal)  # of the rows that are nearest to an answer
        family = f"of family {profile.workload.family}" if profile.workload.family else "of a family not stated"
        return Assessment(
            evidence=(f"FLOPs of a model {family}; steps of one worker of others ({SHIPPED_SOURCE}; the store's)",),
            strength=STRENGTH,
            expected_log_error=self._errors(profile, query, left, peaks),
        )

    def _errors(self, profile: Profile, query: Query, left: NDArray[np.bool_], peaks: Peaks) -> Floats | None:
        """Expected |ln(predicted / measured)| of each row by the ranges of the shipped table; None = it has no answer.

        What the store taught beside it is not known here, and makes errors smaller.
        """
        configurations = query.configurations
        law = self._find_laws(shipped_runs(), ("", query.catalogue.digest), query.catalogue)
        if law is None:
            return None
        predictions = UnseenModel(law, profile.workload, peaks).predict(configurations, query.options)
        spread = predictions.log_spread
        errors = np.where(left & (spread > 0.0), DEVIATION_TO_MEAN * spread, np.inf)
        return freeze(np.where(left & _ran_there(profile, configurations, peaks), RAN_THERE_LOG_ERROR, errors))

    def fit(self, profile: Profile, context: Context) -> UnseenModel:
        """The law over the catalogue's peaks: learned once for each prior and catalogue, anew with a job's own runs.

        Those are as the job's profile tells them, not the prior: what it leaves out is not to be known.
        """
        runs: Sequence[Run] = shipped_runs() if context.prior is None else context.prior.content
        own = runs_of([profile])
        others = [run for run in runs if not run.profile_id or run.profile_id != profile.profile_id]
        if own or len(others) < len(runs):
            law = learn_laws(over_peaks((*others, *own), self._of(context.catalogue).find))
        else:
            learned = "" if context.prior is None or tuple(runs) == shipped_runs() else context.prior.prior_id
            law = self._find_laws(runs, (learned, context.catalogue.digest), context.catalogue)
        if law is None:
            raise NodewiseError.refused(_TOO_FEW)
        return UnseenModel(law, profile.workload, self._of(context.catalogue))

    def _of(self, catalogue: Catalogue) -> Peaks:
        """Peaks of a catalogue: a server has one."""
        known = self._peaks
        if known is None or known.catalogue is not catalogue:
            known = self._peaks = Peaks.of(catalogue)
        return known

    def _find_laws(self, runs: Sequence[Run], key: tuple[str, str], catalogue: Catalogue) -> Laws | None:
        if not catalogue.digest:  # nothing tells it from another one
            return learn_laws(over_peaks(runs, self._of(catalogue).find))
        with self._learning:
            if key not in self._laws:
                self._laws[key] = learn_laws(over_peaks(runs, self._of(catalogue).find))
                while len(self._laws) > LAWS_KEPT:
                    self._laws.popitem(last=False)
            self._laws.move_to_end(key)
            return self._laws[key]


def _ran_there(profile: Profile, configurations: Configurations, peaks: Peaks) -> NDArray[np.bool_]:
    """Rows on a device on which the job itself ran with one worker: other estimators predict these better."""
    own = {peaks.find(run.device, "")[0] for run in runs_of([profile])}
    there = np.array([peaks.find(device, "")[0] in own for device in configurations.devices], dtype=bool)
    return np.asarray(there[configurations.device_index])
