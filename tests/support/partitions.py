"""Planning models of small transformers, without a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Layer, Network, Transformer, Workload
from nodewise.hosting.registry import LoadedPlugin, load_registry
from nodewise.planning.checked_model import CheckedModel
from nodewise.plugin import Catalogue, EstimatorRecord, Model


@dataclass
class PlainContext:
    """What a fit may use: the catalogue, and nothing learned."""

    catalogue: Catalogue
    prior: Any = None
    seed: int = 0

    def model(self, estimator: str) -> Model:
        raise NotImplementedError


def partitioning() -> LoadedPlugin[EstimatorRecord]:
    return load_registry(safe_mode=True).estimators["partitioning"]


def transformer(**changes: int) -> Transformer:
    plain = {
        "layers": 8,
        "hidden_size": 1024,
        "attention_heads": 16,
        "sequence_length": 512,
        "vocabulary_size": 51_200,
    }
    return Transformer(**{**plain, **changes})


def layered_model(layers: tuple[Layer, ...], **network: Any) -> CheckedModel:
    """A model of a layered network's facts alone, as a search asks it."""
    loaded = partitioning()
    profile = Profile(digest="d", workload=Workload(layers=layers), network=Network(**network))
    model: Any = loaded.record.estimator.fit(profile, PlainContext(load_catalogue()))
    return CheckedModel(loaded, model)


def partition_model(
    of: Transformer, *, framework: str | None = None, link_bytes_per_s: float | None = None
) -> CheckedModel:
    """A model of facts alone, as a search asks it."""
    loaded = partitioning()
    profile = Profile(
        digest="d",
        workload=Workload(transformer=of, framework=framework),
        network=Network(link_bytes_per_s=link_bytes_per_s),
    )
    model: Any = loaded.record.estimator.fit(profile, PlainContext(load_catalogue()))
    return CheckedModel(loaded, model)
