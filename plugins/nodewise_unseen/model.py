"""Answers of the law about configurations: of one architecture, or of many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from nodewise.plugin import (
    ArchitecturePredictions,
    Architectures,
    Configurations,
    Floats,
    Ints,
    Notice,
    Options,
    Predictions,
    Refusal,
    RowRefusal,
    Workload,
)
from nodewise_unseen.columns import StepFacts, family_key
from nodewise_unseen.corpus import BYTES_PER_PARAMETER, layer_activation_bytes
from nodewise_unseen.laws import Laws
from nodewise_unseen.peaks import Peaks
from nodewise_unseen.refusals import NO_FLOPS
from nodewise_unseen.steps import CALIBRATED_AT, DEVICE, FARTHEST, Row

__all__ = ["UnseenModel", "refusals_of"]

MOST_NAMED: Final = 4
"""Families that a notice names."""

_SEVERAL: Final = Refusal.missing(
    "the estimator predicts one worker only: for more, measure this model on one worker and send the run as an "
    "observation; the estimators of scaling then predict more workers",
    "observations",
)
_NO_BATCH: Final = Refusal.missing(
    "samples per step must be stated: FLOPs are counted per sample", "batch_per_worker_samples"
)
_NO_PEAK: Final = Refusal.missing("the catalogue has no peak of the device in this precision", "device")

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class UnseenModel:
    """Laws, and what is known of the workload; peaks of devices."""

    laws: Laws
    workload: Workload
    peaks: Peaks

    @property
    def precision(self) -> str:
        """Number format of the workload; "" = not stated."""
        return self.workload.precision or ""

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict every row of one worker."""
        return self.predict_architectures(Architectures.of(self.workload), configurations, options).predictions

    def predict_architectures(
        self,
        architectures: Architectures,
        configurations: Configurations,
        options: Options,  # noqa: ARG002  # the protocol's
    ) -> ArchitecturePredictions:
        """Predict each architecture on each configuration, device by device."""
        count, width = len(architectures), len(configurations)
        rows = count * width
        refusals = refusals_of(architectures, configurations, self.peaks, self.precision)
        left = RowRefusal.left(rows, refusals)
        batch = _samples(configurations)
        stated = architectures.activation_bytes_per_sample
        activations = np.where(stated > 0.0, stated, layer_activation_bytes(self.workload))
        families = np.array([family_key(name) for name in architectures.families], dtype=object)
        seconds, spread, beyond, own = (np.zeros(rows) for _ in range(4))
        shared = np.zeros((rows, 0))
        kinds = np.full(rows, int(Row.REFUSED))
        for (device, peak), columns in _by_device(configurations, self.peaks, self.precision):
            at = (np.arange(count)[:, np.newaxis] * width + columns).ravel()
            at = at[left[at]]
            if not len(at):
                continue
            which, samples = at // width, batch[at % width]
            facts = StepFacts(
                flops=architectures.flops_per_sample[which] * samples,
                families=families[architectures.family_index[which]],
                parameters=architectures.parameter_bytes[which] / BYTES_PER_PARAMETER,
                tensors=architectures.tensors[which].astype(np.float64),
                activation_bytes=activations[which] * samples,
            )
            steps = self.laws.predict(facts, device, peak, CALIBRATED_AT)
            answered = steps.rows != Row.REFUSED
            kinds[at], seconds[at], beyond[at] = steps.rows, steps.seconds, np.where(answered, steps.beyond, 0.0)
            shared = np.pad(shared, ((0, 0), (0, max(0, steps.shared.shape[1] - shared.shape[1]))))
            shared[at, : steps.shared.shape[1]], own[at] = steps.shared, steps.own
            spread[at[answered]] = np.log(steps.high[answered] / steps.seconds[answered]) / _deviations_to_ends()
        unanswered = left & (kinds == Row.REFUSED)
        refusals = (*refusals, *RowRefusal.first(rows, [(unanswered, self._far())]))
        predictions = Predictions.of(
            np.where(seconds > 0.0, seconds, 1.0),
            log_spread=spread,
            extrapolation=np.exp(beyond),
            refusals=refusals,
            notices=(
                *self._unseen_families(architectures, families, kinds.reshape(count, width)),
                *self._unseen_devices(configurations, kinds.reshape(count, width)),
            ),
        )
        return ArchitecturePredictions(predictions, shared, own)

    def _far(self) -> Refusal:
        """Why the laws do not answer some rows."""
        low, high = (np.exp(end) for end in self.laws.every.hulls[""])
        text = (
            f"FLOPs of the step are more than {np.exp(FARTHEST):.0f} times beyond those of every observed run "
            f"({low:.2g} to {high:.2g}), or the interval there is wider than a factor of 100: measure a model of "
            "similar FLOPs"
        )
        return Refusal.missing(text, "observations")

    def _unseen_families(
        self, architectures: Architectures, families: NDArray[np.object_], kinds: Ints
    ) -> tuple[Notice, ...]:
        """Which answered families never ran: their ranges are wide."""
        never = np.array([family not in self.laws.every.hulls or not family for family in families])
        is_unseen = never[architectures.family_index][:, np.newaxis] & (kinds != Row.REFUSED)
        if not is_unseen.any():
            return ()
        names = sorted({architectures.families[index] for index in architectures.family_index[is_unseen.any(axis=1)]})
        listed_names = ", ".join(repr(name) if name else "not stated" for name in names[:MOST_NAMED])
        listed_names += " and more" if len(names) > MOST_NAMED else ""
        known_families = ", ".join(sorted(name for name in self.laws.every.hulls if name))
        text = (
            f"no model of family {listed_names} was observed (known families: {known_families}): the interval is wide"
        )
        rows = () if is_unseen.all() else tuple(np.flatnonzero(is_unseen).tolist())
        return (Notice("FAMILY_UNSEEN", text, rows),)

    def _unseen_devices(self, configurations: Configurations, kinds: Ints) -> tuple[Notice, ...]:
        """Notices for devices on which nothing ran: their predictions follow from their peaks only."""
        notices = []
        known_devices = ", ".join(sorted({level for kind, level in self.laws.every.columns if kind == DEVICE}))
        for (device, _), columns in _by_device(configurations, self.peaks, self.precision):
            answered = np.zeros(kinds.shape, dtype=bool)
            answered[:, columns] = kinds[:, columns] != Row.REFUSED
            if (DEVICE, device) not in self.laws.every.columns and answered.any():
                text = (
                    f"no model was observed on {device} (known devices: {known_devices}): the prediction rests on its "
                    "peak alone, and the interval is wide"
                )
                notices.append(Notice("DEVICE_UNSEEN", text, tuple(np.flatnonzero(answered).tolist())))
        return tuple(notices)


def refusals_of(
    architectures: Architectures, configurations: Configurations, peaks: Peaks, precision: str
) -> tuple[RowRefusal, ...]:
    """Rows, architecture by architecture, of which something that every law needs is not known."""
    count = len(architectures)
    without_peak = np.zeros(len(configurations), dtype=bool)
    for (_, peak), columns in _by_device(configurations, peaks, precision):
        without_peak[columns] = peak <= 0.0

    def tile(wrong: Mask) -> Mask:
        return np.tile(wrong, count)

    return RowRefusal.first(
        count * len(configurations),
        [
            (tile(configurations.workers != 1), _SEVERAL),
            (np.repeat(architectures.flops_per_sample <= 0.0, len(configurations)), NO_FLOPS),
            (tile(_samples(configurations) <= 0.0), _NO_BATCH),
            (tile(without_peak), _NO_PEAK),
        ],
    )


def _samples(configurations: Configurations) -> Floats:
    """Samples of one worker's step; 0 = not known."""
    own = configurations.batch_per_worker * configurations.accumulation.astype(np.float64)
    return np.where(own > 0.0, own, configurations.global_batch.astype(np.float64))


def _by_device(
    configurations: Configurations, peaks: Peaks, precision: str
) -> Iterator[tuple[tuple[str, float], Ints]]:
    """Devices in their number formats (a row that states none: the job's own) with their peaks, and rows of each."""
    codes = configurations.device_index * len(configurations.precisions) + configurations.precision_index
    for code in np.unique(codes):
        device, number_format = divmod(int(code), len(configurations.precisions))
        name_and_peak = peaks.find(
            configurations.devices[device], configurations.precisions[number_format] or precision
        )
        yield name_and_peak, np.flatnonzero(codes == code)


def _deviations_to_ends() -> float:
    """Standard deviations of a normal variable to the ends of a range that was calibrated at this coverage."""
    return float(scipy.special.ndtri(0.5 + 0.5 * CALIBRATED_AT))
