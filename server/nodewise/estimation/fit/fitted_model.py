"""Fitted models, their cache keys, the basis of their answers, and mixtures of models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nodewise.domain.columns import Floats
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.estimation.lessons.calibration import UNTRIED, Calibration
from nodewise.estimation.question import AUTO, Basis, MixtureShare, Terms
from nodewise.plugin import Model
from nodewise.ports.cache import Part

if TYPE_CHECKING:
    from nodewise.estimation.choice.chooser import Choice

__all__ = ["FittedModel", "MixturePart", "ModelKey", "basis_of", "lost_part", "misses_a_part", "mixture_of", "relabel"]

_PART_MISSING: Final = "PART_MISSING"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FittedModel:
    """A model fitted to a profile, with the basis of its answers and the calibration of its spreads.

    ``parts`` are the parts of a mixture, largest weight first; ``model`` is then the model of the first part. Empty =
    a single model.
    ``model_bytes`` is the approximate size of the model in memory. ``settled`` is False if a part was left out only
    because its estimator was slow or busy.
    ``others`` are the same model fitted with the lessons of each group of other owners. They move an answer within
    bounds (see ``bounded_influence``).
    """

    model: Model
    basis: Basis
    fit_s: float
    notices: tuple[Notice, ...] = ()
    calibration: Calibration = UNTRIED
    parts: tuple[MixturePart, ...] = ()
    model_bytes: int = 0
    settled: bool = True
    others: tuple[FittedModel, ...] = ()

    @property
    def cache_parts(self) -> tuple[Part, ...]:
        """Models that stay in memory as long as a cache entry refers to this one, with their sizes in bytes."""
        beside = tuple(each for other in self.others for each in other.cache_parts)
        if self.parts:
            return (*(each for part in self.parts for each in part.fitted.cache_parts), *beside)
        return ((self.model, self.model_bytes), *beside)


@dataclass(frozen=True, slots=True, eq=False)
class MixturePart:
    """A fitted model and its share of a mixture; weight and expected error of each row, or one value for all rows."""

    share: MixtureShare
    fitted: FittedModel
    weights: Floats
    errors: Floats


@dataclass(frozen=True, slots=True)
class ModelKey:
    """Cache key of a fitted model: everything that the fit depends on. ``provenance``: see :class:`Provenance`."""

    digest: str
    estimator: str
    version: str
    prior_id: str
    calibration_id: str
    seed: int
    provenance: str


def mixture_of(
    parts: tuple[MixturePart, ...], choice: str, notices: tuple[Notice, ...] = (), *, settled: bool = True
) -> FittedModel:
    """Return the parts of a mixture as one model. ``notices`` are added to the notices of the parts."""
    bases = [part.fitted.basis for part in parts]
    heaviest = parts[0].fitted
    whole = sum(part.share.weight for part in parts)
    shares = tuple(
        replace(
            part.share,
            estimator_version=part.fitted.basis.estimator_version,
            weight=part.share.weight / whole,
            prior_id=part.fitted.basis.prior_id,
        )
        for part in parts
    )
    basis = replace(
        heaviest.basis,
        estimator=AUTO,
        estimator_version=" + ".join(f"{basis.estimator} {basis.estimator_version}" for basis in bases),
        choice=choice,
        mixture=shares,
        prior_id=", ".join(dict.fromkeys(basis.prior_id for basis in bases if basis.prior_id)),
        fit_time_s=max(basis.fit_time_s for basis in bases),
        stale=any(basis.stale for basis in bases),
    )
    calibration = min((part.fitted.calibration for part in parts), key=lambda calibration: calibration.jobs)
    # A notice of all parts concerns the evidence, not an estimator.
    common = [each for each in heaviest.notices if all(each in part.fitted.notices for part in parts)]
    own_notices = [
        replace(notice, message=f"{part.share.estimator}: {notice.message}")
        for part in parts
        for notice in part.fitted.notices
        if notice not in common
    ]
    return FittedModel(
        model=heaviest.model,
        basis=basis,
        fit_s=sum(part.fitted.fit_s for part in parts),
        notices=(*common, *own_notices, *notices),
        # Prediction calibrates the spread of each part; the mixture counts as calibrated only if all parts are.
        calibration=calibration,
        parts=parts,
        settled=settled,
    )


def relabel(basis: Basis, profile: Profile, choice: Choice | None = None) -> Basis:
    """Return the basis of an answer about ``profile``, made from the basis of its model.

    A model may have been fitted for another query, or for another job with the same evidence. This function sets the
    fields that belong to the profile and to the choice of the estimator; all other fields are the model's.

    Parameters
    ----------
    choice : Choice or None
        The choice of the estimator for this answer; None = keep the choice in the basis.
    """
    basis = replace(basis, profile_revision=profile.revision, profile_digest=profile.digest)
    if choice is None:
        return basis
    return replace(basis, choice=choice.why, fallback=choice.fallback, evidence=choice.evidence)


def basis_of(model: FittedModel, terms: Terms, generation: str, track: str) -> Basis:
    """Return the basis of a model's answers, with a digest of everything that they depend on except the query's rows.

    Parameters
    ----------
    generation, track : str
        Generation and track of the plugins, for the basis.
    """
    basis, options = model.basis, terms.options
    content = (
        basis.profile_digest,
        basis.estimator,
        basis.estimator_version,
        basis.mixture,
        basis.prior_ids,
        _calibrations(model),
        basis.catalogue_digest,
        basis.fallback,
        (options.seed, options.fidelity, options.simulated_steps, terms.coverage),
        *((other.basis.prior_ids, _calibrations(other)) for other in model.others),
    )
    digest = hashlib.sha256(repr(content).encode()).hexdigest()
    return replace(basis, digest=digest, generation=generation, track=track)


def _calibrations(model: FittedModel) -> list[str]:
    return [each.calibration.calibration_id for each in (model, *(part.fitted for part in model.parts))]


def misses_a_part(notices: Iterable[Notice]) -> bool:
    """Return whether a mixture lacks one of its parts. The part may be available again for the next question."""
    return _PART_MISSING in [notice.reason for notice in notices]


def lost_part(estimator: str, error: NodewiseError) -> Notice:
    """Return the notice that a mixture lacks the part of ``estimator``."""
    return Notice(_PART_MISSING, f"{estimator} has no part in the mixture ({error.reason}): {error.message}")
