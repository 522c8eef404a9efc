"""Transformers over devices, for tests of the estimator `partitioning`."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import (
    Catalogue,
    Configurations,
    Floats,
    Network,
    Observations,
    Prior,
    Profile,
    Refusal,
    SyncMode,
    Transformer,
    Workload,
    as_floats,
    as_ints,
    constant_ints,
)
from nodewise_partitioning.hardware import Device, device_of
from nodewise_partitioning.workload import Dimensions

CATALOGUE = load_catalogue()
SMALL = Transformer(layers=24, hidden_size=2048, attention_heads=16, sequence_length=1024, vocabulary_size=51200)
GPT3 = Transformer(layers=96, hidden_size=12288, attention_heads=96, sequence_length=2048, vocabulary_size=51200)
FABRIC = Network(link_bytes_per_s=200e9)


class KnownContext:
    """What a fit is given: the shipped catalogue, and maybe a prior."""

    def __init__(self, prior: Prior | None = None, catalogue: Catalogue = CATALOGUE) -> None:
        self.prior = prior
        self.catalogue = catalogue
        self.seed = 0

    def traces(self) -> Any:
        raise AssertionError("no trace is needed")

    def model(self, estimator: str) -> Any:
        raise AssertionError(f"no other model is needed, {estimator!r} was asked for")


def a100(number_format: str = "fp16") -> Device:
    found = device_of(CATALOGUE, "A100-80GB", number_format)
    assert not isinstance(found, Refusal)
    return found


def dimensions(transformer: Transformer = SMALL) -> Dimensions:
    return Dimensions.of(transformer)


def rows(count: int, device: str = "A100-80GB", **columns: Any) -> Configurations:
    """Rows of partitions; a column is one number for all of them or one for each."""

    def column(values: Any) -> Any:
        return constant_ints(count, values) if isinstance(values, int) else as_ints(values)

    plain = Configurations.of(count, device=device, sync_mode=SyncMode.ALLREDUCE)
    return plain.replaced(**{name: column(values) for name, values in columns.items()})


def profile(
    transformer: Transformer | None = SMALL,
    *,
    network: Network = FABRIC,
    framework: str | None = None,
    runs: tuple[Configurations, Floats] | None = None,
    precision: str = "fp16",
) -> Profile:
    """A job's facts, and what was measured of it: configurations with their seconds per step."""
    observed = Observations.none()
    if runs is not None:
        observed = Observations.of(runs[0], as_floats(1.0 / np.asarray(runs[1])))
    workload = Workload(
        transformer=transformer, framework=framework or None, precision=precision or None, optimizer="adam"
    )
    return Profile(
        digest=f"{transformer}{framework}{precision}{len(observed)}",
        workload=workload,
        network=network,
        observations=observed,
    )
