"""Provenance: the code that a model depends on. Generations of plugins share models whose code did not change."""

from __future__ import annotations

import threading

from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue

__all__ = ["Provenance"]


class Provenance:
    """What an estimator's models depend on besides profile, prior, calibration and seed, as texts to compare.

    The text of an estimator covers its version, its distribution with version and origin, the catalogue, and the same
    of every estimator whose models its fits requested.

    Parameters
    ----------
    registry : Registry
    catalogue : Catalogue
    built_on : mapping of origin to estimators
        Names of the estimators whose models the fits of each origin requested. Generations share the mapping and add to
        it.
    """

    def __init__(self, registry: Registry, catalogue: Catalogue, built_on: dict[str, frozenset[str]]) -> None:
        self._origins = {
            name: f"{name} {each.record.version} of {each.distribution} {each.origin} {each.mode} {catalogue.digest};"
            for name, each in registry.estimators.items()
        }
        self._built_on = built_on
        self._adding = threading.Lock()

    @property
    def origins(self) -> frozenset[str]:
        """Origins of all estimators."""
        return frozenset(self._origins.values())

    def of(self, estimator: str) -> str:
        """Return the text that identifies the code of an estimator's models; equal texts mean equal models."""
        own = self._origins[estimator]
        below = self._built_on.get(own)
        return own if below is None else " ".join((own, *(self._origins.get(name, "") for name in sorted(below))))

    def builds(self, estimator: str, below: str) -> None:
        """Record that a fit requested the model of another estimator, and depends on all that this model depends on."""
        own, others = self._origins[estimator], self._built_on.get(self._origins[below], frozenset())
        with self._adding:
            self._built_on[own] = self._built_on.get(own, frozenset()) | others | {below}
