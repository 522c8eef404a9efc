"""Partitions of a transformer of 22 billion parameters on 64 devices: all at once, beside one row at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from results import Result
from scaling import best_s

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Network, Transformer, Workload
from nodewise.hosting.registry import load_registry
from nodewise.plugin import Model, PlanningModel

DEVICES, BATCH, REPEATS, SINGLE = 64, 64, 1000, 200
COLUMNS = ("step_s", "memory_bytes")
MODEL = Transformer(layers=48, hidden_size=6144, attention_heads=64, sequence_length=2048, vocabulary_size=51200)


class CatalogueAlone:
    """What a fit may use besides the profile: the shipped catalogue."""

    prior = None
    catalogue = load_catalogue()
    seed = 0

    def model(self, estimator: str) -> Model:
        raise NotImplementedError


def partitions() -> Configurations:
    """Degrees that are powers of two, micro-batches, recomputation and sequence parallelism, many times over."""
    powers = [2**power for power in range(7)]
    rows = [
        (t, p, d, b, recomputation, split)
        for t, p, d, b in itertools.product(powers, repeat=4)
        if t * p * d == DEVICES and p <= 16 and BATCH % (d * b) == 0
        for recomputation, split in itertools.product((1, 2, 3), (0, 1))
    ]
    t, p, d, b, recomputation, split = np.tile(np.array(rows), (REPEATS, 1)).T
    plain = Configurations.of(
        len(t),
        nodes=DEVICES // 8,
        workers=DEVICES,
        device="A100-80GB",
        sync_mode=SyncMode.ALLREDUCE,
        global_batch=BATCH,
    )
    return plain.replaced(
        tensor_parallel=as_ints(t),
        pipeline_parallel=as_ints(p),
        data_parallel=as_ints(d),
        batch_per_worker=as_ints(b),
        recomputation=as_ints(recomputation),
        sequence_parallel=as_ints(split),
    )


def run() -> Iterator[Result]:
    estimator = load_registry(safe_mode=True).estimators["partitioning"].record.estimator
    facts = Workload(transformer=MODEL, precision="fp16", framework="megatron-lm")
    model = estimator.fit(Profile(workload=facts, network=Network(link_bytes_per_s=200e9)), CatalogueAlone())
    assert isinstance(model, PlanningModel)
    asked = partitions()
    single = [asked.take(as_ints([row])) for row in range(SINGLE)]
    together = best_s(lambda: model.evaluate(asked, COLUMNS), repeats=3)
    alone = best_s(lambda: [model.evaluate(row, COLUMNS) for row in single], repeats=2)
    yield Result("partitioning_evaluations", len(asked) / together, "configurations/s", SINGLE / alone)
