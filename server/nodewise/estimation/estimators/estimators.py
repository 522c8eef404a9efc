"""Access to the loaded estimators by name. Rows that an estimator does not support are masked; answers are checked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.estimation.estimators.check import check_predictions
from nodewise.estimation.estimators.provenance import Provenance
from nodewise.estimation.estimators.supported_rows import SupportedRows, mask_unsupported
from nodewise.estimation.question import AUTO, Question
from nodewise.estimation.weights import ENTRY_BYTES
from nodewise.hosting.calls import ImpossibleAnswerError, PluginError, call, soon
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.hosting.soundness import is_a, is_sound_refusal, is_text
from nodewise.plugin import Assessment, Catalogue, EstimatorRecord, Model, Query
from nodewise.ports.cache import CacheSpace, LruCache

__all__ = ["Estimators", "joint_refusal"]

_EPOCH: Final = attrgetter("epoch")
_NOBODY: Final[frozenset[str]] = frozenset()


MOST_OF_ONE: Final = 8
"""Most estimators of one distribution outside the workers that ``auto`` asks."""
MOST_OUTSIDE: Final = 16
"""Most estimators of all such distributions together: each may add milliseconds to a question, and a fit to a new
job."""


class Estimators:
    """The estimators of a registry.

    Parameters
    ----------
    registry : Registry
    catalogue : Catalogue
        Facts about devices and links for estimators.
    space : CacheSpace
        Space for cached results.
    built_on : mapping or None
        As in :class:`Provenance`. Given where other generations of the same estimators answer as well.
    """

    def __init__(
        self,
        registry: Registry,
        catalogue: Catalogue,
        space: CacheSpace,
        built_on: dict[str, frozenset[str]] | None = None,
    ) -> None:
        self.registry = registry
        self.catalogue = catalogue
        self.provenance = Provenance(registry, catalogue, {} if built_on is None else built_on)
        self.all_inline = all(plugin.mode == "inline" for plugin in registry.estimators.values())
        self.predicting = tuple(registry.predicting)
        self.asked_by_auto = _asked_by_auto(registry)
        """Estimators that ``auto`` asks."""
        self._breakers = tuple(plugin.breaker for plugin in registry.estimators.values() if plugin.breaker is not None)
        self._silent: LruCache[str, frozenset[str]] = LruCache(space)

    def forget(self) -> None:
        """Clear the caches."""
        self._silent.clear()

    def is_left_alone(self, name: str) -> bool:
        """Whether an estimator failed so often that it is not asked for a while."""
        breaker = self.by_name(name).breaker
        return breaker is not None and not breaker.is_closed

    @property
    def epoch(self) -> int:
        """A number that changes whenever the set of skipped estimators changes."""
        return sum(map(_EPOCH, self._breakers)) if self._breakers else 0

    def by_name(self, name: str) -> LoadedPlugin[EstimatorRecord]:
        """Return a loaded estimator.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND, with the names that are loaded.
        """
        plugin = self.registry.estimators.get(name)
        if plugin is None:
            available = ", ".join([AUTO, *self.registry.estimators])
            raise NodewiseError(
                Reason.ESTIMATOR_NOT_FOUND,
                f"no estimator is named {name!r}; loaded are: {available}",
                {"estimator": name, "available": available},
            )
        return plugin

    def require(self, name: str) -> None:
        """Raise as :meth:`by_name` if the name is neither ``AUTO`` nor that of a loaded estimator."""
        if name != AUTO:
            self.by_name(name)

    def supported_rows(self, name: str, profile: Profile, configurations: Configurations) -> SupportedRows:
        """Return the resolved rows in which the estimator takes every stated column into account."""
        return mask_unsupported(self.by_name(name).record.columns, configurations, profile.workload.precision or "")

    def silent(self, profile: Profile) -> Set[str]:
        """Return the estimators that are known to refuse every question about a profile."""
        return (self._silent.get(profile.digest) if profile.digest else None) or _NOBODY

    def assess(
        self,
        name: str,
        profile: Profile,
        configurations: Configurations,
        options: Options,
        model: Model | None = None,
    ) -> Assessment:
        """Return an estimator's assessment of a question. A refusal that the estimator raises is returned too.

        ``model`` is the fitted model that will predict the same rows next, if there is one.

        ``model`` is what will be asked to predict the same rows next, where it is fitted already.

        Raises
        ------
        PluginError
            ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT.
        """
        plugin = self.by_name(name)
        support = mask_unsupported(plugin.record.columns, configurations, profile.workload.precision or "")
        rows = len(support.configurations.workers)
        if support.refusals and not rows:
            return Assessment(refusal=support.refusals[0].refusal)
        query = Query(configurations=support.configurations, options=options, catalogue=self.catalogue)
        try:
            assessment = call(
                plugin,
                plugin.record.estimator,
                "assess",
                profile,
                query,
                check=partial(_assessment, rows=rows),
                following=None if model is None else (model, "predict", (support.configurations, options)),
            )
        except PluginError:
            raise
        except NodewiseError as error:
            missing = tuple(filter(None, error.metadata.get("missing_fields", "").split(",")))
            return Assessment(refusal=Refusal(error.reason, error.message, missing))
        if support.rows is not None and assessment.refusal is None:
            assessment = replace(
                assessment, expected_log_error=_of_all_rows(assessment, support.rows, len(configurations))
            )
        if assessment.refusal is not None and assessment.of_profile and profile.digest:
            names = self._silent.get(profile.digest) or _NOBODY
            self._silent.put(profile.digest, names | {name}, ENTRY_BYTES)
        return assessment

    def assess_soon(self, name: str, question: Question, configurations: Configurations) -> Assessment:
        """Call :meth:`assess`; raises UnavailableError if it takes too long for a caller with other estimators."""
        profile, options = question.profile, question.terms.options
        plugin = self.by_name(name)
        if plugin.background is None:
            return self.assess(name, profile, configurations, options)
        options = replace(options, budget=None)  # the caller may no longer wait by then
        key = ("assess", name, profile.digest, configurations, options) if profile.digest else object()
        return soon(plugin, ("assess",), key, lambda: self.assess(name, profile, configurations, options))

    def predict(
        self, name: str, model: Model, configurations: Configurations, options: Options, *, quiet: bool = False
    ) -> Predictions:
        """Return the predictions of an estimator's model for rows that it supports.

        Parameters
        ----------
        quiet : bool
            As for ``hosting.calls.call``.

        Raises
        ------
        NodewiseError
            The refusal of the model; ESTIMATOR_FAILED or ESTIMATOR_INVALID_RESULT.
        """
        check = partial(check_predictions, configurations=configurations)
        return call(self.by_name(name), model, "predict", configurations, options, check=check, quiet=quiet)


def _asked_by_auto(registry: Registry) -> tuple[str, ...]:
    """Return all estimators that run inline, and as many others as leave enough time for every distribution.

    The order takes the first estimator of each distribution before the second of any; within one, by name.
    """
    inline = [name for name, plugin in registry.predicting.items() if plugin.mode == "inline"]
    turns: Counter[str] = Counter()
    outside: list[tuple[int, str]] = []
    for name, plugin in sorted(registry.predicting.items()):
        if plugin.mode != "inline" and turns[plugin.distribution] < MOST_OF_ONE:
            outside.append((turns[plugin.distribution], name))
            turns[plugin.distribution] += 1
    asked_names = {*inline, *(name for _, name in sorted(outside)[:MOST_OUTSIDE])}
    return tuple(name for name in registry.predicting if name in asked_names)


def joint_refusal(refusals: Sequence[tuple[str, Refusal]]) -> Refusal:
    """Combine the refusals of all estimators into one, with everything that is missing."""
    if not refusals:
        return Refusal(Reason.EVIDENCE_MISSING, "no estimator is loaded")
    if len(refusals) == 1:
        return refusals[0][1]
    # Refusals that a question alone can satisfy come first, because they need the least.
    refusals = sorted(refusals, key=lambda each: not 0 < len(each[1].missing_fields) == len(_missing_columns(each[1])))
    first = refusals[0][1]
    text = "; ".join(f"{name}: {refusal.message}" for name, refusal in refusals)
    text = f"no estimator can answer ({text})"
    if first.reason is Reason.UNSUPPORTED_CONFIGURATION and first.missing_fields == tuple(_missing_columns(first)):
        return replace(first, message=text)
    fields = tuple(dict.fromkeys(field for _, refusal in refusals for field in refusal.missing_fields))
    return Refusal(Reason.EVIDENCE_MISSING, text, fields)


def _missing_columns(refusal: Refusal) -> list[str]:
    return [field for field in refusal.missing_fields if field in {"batch_per_worker", "global_batch", "device"}]


def _of_all_rows(assessment: Assessment, support: Ints, rows: int) -> Floats | None:
    """Return the expected error of every row of a question: infinite where the estimator does not support the row."""
    if assessment.expected_log_error is None:
        return None
    errors = np.full(rows, np.inf)
    errors[support] = assessment.expected_log_error
    return freeze(errors)


def _assessment(answer: Any, *, rows: int) -> Assessment:
    """Return a plugin's assessment of ``rows`` rows if it is valid."""
    sound = (
        isinstance(answer, Assessment)
        and (is_a(answer.strength, float) or is_a(answer.strength, int))
        and 0.0 <= answer.strength <= 1.0
        and _is_error(answer.expected_log_error, rows)
        and (answer.refusal is None or is_sound_refusal(answer.refusal))
        and is_a(answer.of_profile, bool)
        and is_a(answer.evidence, tuple)
        and all(is_text(text) for text in answer.evidence)
    )
    if not sound:
        raise ImpossibleAnswerError(
            "it must assess with an Assessment of strength 0 to 1 and an expected error above 0, if it has one, of all "
            "rows or of each, whose refusal has a Reason, whose evidence is a tuple of texts and whose of_profile is "
            "True or False"
        )
    assessment: Assessment = answer
    return assessment


def _is_error(value: Any, rows: int) -> bool:
    """Whether the value is a valid expected error: one number for all rows, one for each row, or None."""
    if isinstance(value, np.ndarray):
        return value.shape == (rows,) and value.dtype == np.float64 and bool((value > 0.0).all())
    return value is None or ((is_a(value, float) or is_a(value, int)) and 0.0 < value < math.inf)
