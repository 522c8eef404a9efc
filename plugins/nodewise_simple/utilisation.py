"""Constant utilisation: every device computes at one share of its peak, whatever the partition and the scale.

``T = F / (g u P)`` of the FLOPs ``F`` of a step on ``g`` devices of peak ``P``. A transformer's token takes 6 FLOPs a
parameter that it visits, and 12 ``L a s`` for attention of size ``a`` over ``s`` tokens (A. Chowdhery et al., "PaLM",
J. Machine Learning Research 24, 2023, appendix B); layers that are computed again take a third more (D. Narayanan et
al., SC 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Assessment,
    Catalogue,
    Configurations,
    Context,
    Floats,
    Options,
    Predictions,
    Profile,
    Query,
    Recomputation,
    Refusal,
    RowRefusal,
    Transformer,
    Workload,
    freeze,
)
from nodewise_simple.estimator import NOT_WHOLE, STRENGTH, crosses_more, not_crossed
from nodewise_simple.evidence import Rows, asked_of, rows_of, whole
from nodewise_simple.settings import PARTITION
from nodewise_simple.spread import DEVIATION_TO_MEAN

__all__ = ["STATED_UTILISATION", "UtilisationEstimator", "UtilisationModel", "flops_per_sample"]

STATED_UTILISATION: Final = 0.40
"""Of the peak of dense 16-bit products, recomputation counted, where no run of the job tells: published runs reach 0.44
to 0.52 (Megatron on A100, D. Narayanan et al., SC 2021, table 1), 0.46 (PaLM on TPU v4), 0.30 (MT-NLG), 0.21 (GPT-3 on
V100; all PaLM, table 3); by device and format, geometric means of 16-bit runs of BigScience, llm-foundry, InternEvo and
vTrain's nodes lie from 0.28 to 0.57."""

RECOMPUTED: Final = 4.0 / 3.0
"""Forward, backward of twice as much, and the forward again, over forward and backward."""

ALIKE_LOG_SD: Final = 0.20
OTHER_PARTITION_LOG_SD: Final = 0.45
STATED_LOG_SD: Final = 0.35
STATED_PARTITIONED_LOG_SD: Final = 0.55
"""Standard deviation of ln(utilisation): beside runs of one partition, as rows of one source (llm-foundry, BigScience)
spread by 0.16 and equal jobs by less; beside runs of another, as partitions of one source (vTrain, BigScience on V100)
spread by 0.3 to 0.8; and with that of sources against each other (0.3) beside none."""

UNSAID_RECOMPUTATION_LOG_SD: Final = 0.5 * float(np.log(RECOMPUTED))
"""Half of the range between full and no overlap."""

_FORMATS: Final = ("bf16", "fp16", "tf32", "fp32")
"""Where the job states none: the narrowest that training commonly uses on a device."""


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """Seconds of each row at the whole peak, and why the rows that have none are refused."""

    rows: Rows
    at_peak_s: Floats
    refusals: tuple[RowRefusal, ...]

    @staticmethod
    def of(workload: Workload, configurations: Configurations, catalogue: Catalogue) -> _Work:
        rows, flops = rows_of(configurations), flops_per_sample(workload)
        peaks = _peaks(configurations, workload.precision or "", catalogue)
        again = configurations.recomputation == int(Recomputation.FULL)
        work = np.where(again, RECOMPUTED, 1.0) * flops * rows.samples_per_worker
        refusals = RowRefusal.first(
            len(rows),
            [
                (~whole(configurations), NOT_WHOLE),
                (np.full(len(rows), flops <= 0.0), _NO_FLOPS),
                (peaks <= 0.0, _NO_PEAK),
                (_uneven(workload, configurations), _UNEVEN),
            ],
        )
        return _Work(rows, np.divide(work, peaks, out=np.ones(len(rows)), where=peaks > 0.0), refusals)

    @property
    def answerable(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return RowRefusal.left(len(self.rows), self.refusals)


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredRuns:
    """Utilisations of a job's runs, and how each was partitioned."""

    utilisations: Floats
    partitions: Floats
    ran: Rows

    @staticmethod
    def of(profile: Profile, catalogue: Catalogue) -> _MeasuredRuns:
        observations = profile.observations
        if not len(observations):
            return _MeasuredRuns(np.zeros(0), np.zeros((0, len(PARTITION))), rows_of(observations.configurations))
        work = _Work.of(profile.workload, observations.configurations, catalogue)
        usable = work.answerable & (observations.steps_per_s > 0.0)
        utilisations = work.at_peak_s[usable] * observations.steps_per_s[usable]
        partitions = _partitions(observations.configurations)[usable]
        return _MeasuredRuns(utilisations, partitions, work.rows.take(usable))

    def answerable(self, work: _Work) -> _Work:
        """The same work, with the rows refused that cross a boundary which no run crosses."""
        if not len(self):
            return work
        beyond = np.flatnonzero(crosses_more(self.ran, work.rows) & work.answerable)
        if not len(beyond):
            return work
        return replace(work, refusals=(*work.refusals, RowRefusal(tuple(beyond.tolist()), not_crossed(self.ran))))

    def __len__(self) -> int:
        return len(self.utilisations)

    def at(self, partitions: Floats) -> tuple[Floats, Floats]:
        """Utilisation of rows partitioned so, and the deviation of its ln: of runs alike, else of all, else stated."""
        if not len(self):
            plain = np.all(partitions[:, :-1] <= _PLAIN, axis=1)
            unsaid = np.where(partitions[:, -1] == int(Recomputation.UNSPECIFIED), UNSAID_RECOMPUTATION_LOG_SD, 0.0)
            spread = np.hypot(np.where(plain, STATED_LOG_SD, STATED_PARTITIONED_LOG_SD), unsaid)
            return np.full(len(partitions), STATED_UTILISATION), spread
        logs = np.log(self.utilisations)
        alike = np.all(partitions[:, None, :] == self.partitions[None, :, :], axis=2)
        own = alike.any(axis=1)
        weights = alike | ~own[:, None]
        return np.exp(weights @ logs / weights.sum(axis=1)), np.where(own, ALIKE_LOG_SD, OTHER_PARTITION_LOG_SD)


@dataclass(frozen=True, slots=True, eq=False)
class UtilisationModel:
    """Utilisations of the runs, if any, and what they are used for."""

    workload: Workload
    catalogue: Catalogue
    measured: _MeasuredRuns

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002  # the protocol's
        """Predict every row whose FLOPs and peak are known."""
        work = self.measured.answerable(_Work.of(self.workload, configurations, self.catalogue))
        utilisation, log_spread = self.measured.at(_partitions(configurations))
        return Predictions.of(work.at_peak_s / utilisation, log_spread=log_spread, refusals=work.refusals)


@dataclass(frozen=True, slots=True)
class UtilisationEstimator:
    """The utilisation of the job's own runs, or a published one."""

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Accept where FLOPs and a peak are known; for a transformer also without runs of its own."""
        usable = asked_of(query.configurations, profile.network, profile.workload.precision or "").usable
        if len(usable) and not usable.any():
            return Assessment(refusal=NOT_WHOLE, of_profile=flops_per_sample(profile.workload) <= 0.0)
        if flops_per_sample(profile.workload) <= 0.0:
            return Assessment(refusal=_NO_FLOPS if usable.all() else NOT_WHOLE, of_profile=True)
        measured = _MeasuredRuns.of(profile, query.catalogue)
        work = measured.answerable(_Work.of(profile.workload, query.configurations, query.catalogue))
        if not work.answerable.any():
            return Assessment(refusal=work.refusals[-1].refusal if work.refusals else _NO_FLOPS)
        if not len(measured) and profile.workload.transformer is None:
            return Assessment(refusal=_NO_RUN)
        utilisation, spread = measured.at(_partitions(query.configurations))
        source = f"{len(measured)} runs" if len(measured) else "published runs of transformers"
        return Assessment(
            evidence=(f"{utilisation[work.answerable].mean():.0%} of the devices' peak, as in {source}",),
            strength=STRENGTH,
            expected_log_error=freeze(np.where(work.answerable, DEVIATION_TO_MEAN * spread, np.inf)),
        )

    def fit(self, profile: Profile, context: Context) -> UtilisationModel:
        """Nothing is fitted: the utilisations of the runs."""
        return UtilisationModel(profile.workload, context.catalogue, _MeasuredRuns.of(profile, context.catalogue))


def flops_per_sample(workload: Workload) -> float:
    """Of forward and backward pass; 0 = not known."""
    if workload.flops_per_sample:
        return workload.flops_per_sample
    return 0.0 if workload.transformer is None else _transformer_flops(workload.transformer)


def _transformer_flops(model: Transformer) -> float:
    parameters = model.multiplied_elements() + model.hidden_size * model.vocabulary_size
    scores = model.layers_with_attention * model.attention_heads * sum(model.head_sizes) / 2.0
    per_token = 6.0 * parameters + 12.0 * scores * model.sequence_length
    return float(per_token * model.sequence_length)


def _peaks(configurations: Configurations, precision: str, catalogue: Catalogue) -> Floats:
    """FLOP/s of each row's device in its number format; 0 = not known."""
    peak_by_device: dict[tuple[str, str], float] = {}
    precision_names = configurations.precisions
    pairs = zip(configurations.device_names(), configurations.precision_index.tolist(), strict=True)
    keys = [(device, precision_names[index] or precision) for device, index in pairs]
    for device, number_format in dict.fromkeys(keys):
        facts = catalogue.device(device) or {}
        formats = (number_format,) if number_format else _FORMATS
        peaks = (facts.get(f"{each}_flops_per_s", 0.0) for each in formats)
        peak_by_device[device, number_format] = next((peak for peak in peaks if peak), 0.0)
    return np.array([peak_by_device[key] for key in keys])


def _uneven(workload: Workload, configurations: Configurations) -> NDArray[np.bool_]:
    """Rows of a transformer whose replicas cannot share the global batch: no such run exists."""
    if workload.transformer is None:
        return np.zeros(len(configurations), dtype=bool)
    return np.asarray(np.mod(configurations.global_batch, configurations.replicas()) != 0)


def _partitions(configurations: Configurations) -> Floats:
    return np.stack([getattr(configurations, name) for name in PARTITION], axis=1).astype(np.float64)


_PLAIN: Final = np.array([1, 1, 1, 1, 0, 1, 0])
"""Largest values of PARTITION, but recomputation, of a replica that is one device."""

_NO_FLOPS: Final = Refusal.missing(
    "FLOPs per sample, or the dimensions of the transformer, must be stated", "flops_per_sample"
)
_NO_PEAK: Final = Refusal.missing("the catalogue has no peak of the device in this precision", "device")
_UNEVEN: Final = Refusal.unsupported("the number of replicas must divide the global batch")
_NO_RUN: Final = Refusal.missing(
    ("no run was observed, and published utilisations are of transformers only: measure a run"), "observations"
)
