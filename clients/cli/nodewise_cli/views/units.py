"""The unit of an answer's throughputs: samples, tokens or steps, in its table, sentence, picture and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nodewise_cli.inputs.measured_points import Point
from nodewise_client import Notice, Prediction

__all__ = ["Unit", "unit_of"]

_NO_STEPS: Final = (
    *("step_s", "steps_per_s", "lower_steps_per_s", "upper_steps_per_s", "staleness_mean_steps"),
    "staleness_p95_steps",
)
_IN_SAMPLES: Final = ("samples_per_s", "lower_samples_per_s", "upper_samples_per_s")
_BATCH_NOT_STATED: Final = Notice(
    reason="BATCH_NOT_STATED",
    message=(
        "the batch is not stated: each worker is assumed to process the same batch at every scale, and step times are "
        "not shown; state batch_per_worker or global_batch to see them"
    ),
)


@dataclass(frozen=True, slots=True)
class Unit:
    """What throughputs count.

    Attributes
    ----------
    counts : str
        "samples", "tokens" or "steps".
    tokens_per_sample : int or None
        None = samples have no tokens, or it is not known how many.
    has_steps : bool
        Whether steps are real ones; False = the batch is not known, and only throughputs are shown.
    """

    counts: str
    tokens_per_sample: int | None = None
    has_steps: bool = True

    def rate(self, row: Prediction | Point, bound: str = "") -> float | None:
        """A row's throughput; ``bound`` is "lower_" or "upper_" for those of its interval."""
        field = "steps" if self.counts == "steps" else "samples"
        rate: float | None = getattr(row, f"{bound}{field}_per_second")
        return rate

    def tokens(self, row: Prediction, bound: str = "") -> float | None:
        """The same in tokens; None = it is not known how many."""
        rate = getattr(row, f"{bound}samples_per_second")
        return None if rate is None or self.tokens_per_sample is None else rate * self.tokens_per_sample

    def add_rates(self, row: dict[str, Any], prediction: Prediction) -> dict[str, Any]:
        """The JSON of a row in this unit."""
        if self.tokens_per_sample is not None:
            row |= {f"{bound}tokens_per_s": self.tokens(prediction, bound) for bound in ("", "lower_", "upper_")}
            tokens = row["tokens_per_s"]
            row["tokens_per_s_per_device"] = None if tokens is None else tokens / prediction.workers
        if not self.has_steps:
            row |= dict.fromkeys(_NO_STEPS) | {"breakdown": {}}
        return row | dict.fromkeys(_IN_SAMPLES) if self.counts == "tokens" else row

    def in_words(self, value: Any) -> Any:
        """Sentences, and numbers by their names, of an answer whose samples are tokens."""
        if self.counts != "tokens":
            return value
        if isinstance(value, str):
            return value.replace("samples/s", "tokens/s")
        if isinstance(value, Mapping):
            return {key.replace("samples_per_s", "tokens_per_s"): self.in_words(entry) for key, entry in value.items()}
        return [self.in_words(each) for each in value] if isinstance(value, list | tuple) else value

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notices about the unit."""
        return () if self.has_steps else (_BATCH_NOT_STATED,)


def unit_of(result: Iterable[Prediction], counts: str = "", tokens_per_sample: int | None = None) -> Unit:
    """The unit of an answer.

    Parameters
    ----------
    counts : str
        What samples are where the batch is not known: "samples" or "tokens"; "" = the batch of each row says.
    tokens_per_sample : int or None
    """
    if counts:
        return Unit(counts, 1 if counts == "tokens" else tokens_per_sample, has_steps=False)
    predicted_rows = [row for row in result if row.answered]
    has_samples = predicted_rows and all(row.samples_per_second is not None for row in predicted_rows)
    return Unit("samples", tokens_per_sample) if has_samples else Unit("steps")
