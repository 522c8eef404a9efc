"""Provenance: whose code a model comes from, so that generations of plugins share what did not change between them."""

from __future__ import annotations

import threading

from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue

__all__ = ["Provenance"]


class Provenance:
    """What an estimator's models depend on besides profile, prior, calibration and seed, as texts to compare.

    That is: its version, its distribution with version and origin, the catalogue, and the same of every estimator that
    its fits were seen to build on.

    Parameters
    ----------
    registry : Registry
    catalogue : Catalogue
    built_on : mapping of origin to estimators
        Names of the estimators that fits of one loading asked for models. Shared by generations, and added to.
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
        """Of all estimators, each for itself."""
        return frozenset(self._origins.values())

    def of(self, estimator: str) -> str:
        """Whose code its models come from; the same text, the same models."""
        own = self._origins[estimator]
        below = self._built_on.get(own)
        return own if below is None else " ".join((own, *(self._origins.get(name, "") for name in sorted(below))))

    def builds(self, estimator: str, below: str) -> None:
        """A fit asked for the model of another estimator, and so for those that it builds on."""
        own, others = self._origins[estimator], self._built_on.get(self._origins[below], frozenset())
        with self._adding:
            self._built_on[own] = self._built_on.get(own, frozenset()) | others | {below}
