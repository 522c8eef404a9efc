"""What must hold of every answer, whichever estimator gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    Client,
    ModelOptions,
    Network,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    Transformer,
    Workload,
    configurations,
    observations,
    profile_source,
)

NOISE: Final = 1.0 + 1e-6
"""Of numbers that are equal but for the order of additions."""

GPT = Transformer(
    layers_count=24,
    hidden_size=2048,
    attention_heads_count=16,
    sequence_length_tokens=2048,
    vocabulary_size=51_200,
)
TRANSFORMER = ProfileContent(workload=Workload(transformer=GPT, precision="fp16"))
RESNET = Workload(parameter_bytes=102_228_128, tensors_count=161, precision="fp32")
BATCH: Final = {"batch_per_worker_samples": 64, "devices": "V100"}
LINKS = (125e6, 1.25e9, 3.125e9, 12.5e9, 50e9)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def runs(
    rates: Mapping[tuple[int, int], float], *, batch: int, device: str = "V100", workload: Workload | None = None
) -> ProfileContent:
    """All-reduce runs: samples/s by nodes and workers."""
    nodes, workers = zip(*rates, strict=True)
    where = configurations(
        nodes=nodes, workers=workers, batch_per_worker_samples=batch, devices=device, sync_modes="allreduce"
    )
    steps = [rate / (batch * count) for (_, count), rate in rates.items()]
    ran = observations(configurations=where, steps_per_second=steps)
    return ProfileContent(observations=ran, workload=workload or Workload())


INSIDE = runs({(1, 1): 202.8, (1, 4): 650.9}, batch=64, workload=RESNET)
ACROSS = runs({(1, 4): 650.9, (2, 8): 1_200.0}, batch=64, workload=RESNET)


def step_s(client: Client, content: ProfileContent, estimator: str = "auto", **columns: Any) -> list[float | None]:
    """Seconds of a step of each row; None where it is not answered."""
    request = PredictRequest(
        profile=profile_source(content),
        configurations=configurations(**columns),
        options=PredictOptions(model=ModelOptions(estimator=estimator)),
    )
    try:
        return [row.step_seconds for row in client.predict(request)]
    except RefusedError:
        return [None] * max(len(value) for value in columns.values() if isinstance(value, (list, tuple)))


def answered(steps: Sequence[float | None]) -> list[float]:
    return [step for step in steps if step is not None]


def over(content: ProfileContent, link: float) -> ProfileContent:
    """The same job on nodes with another link."""
    return replace(content, network=Network(link_bytes_per_second=link))


@pytest.mark.parametrize("nodes", [2, 8])
@pytest.mark.parametrize(
    ("content", "estimator"),
    [(INSIDE, "auto"), (INSIDE, "scaling"), (ACROSS, "auto"), (TRANSFORMER, "auto"), (TRANSFORMER, "partitioning")],
    ids=["inside", "inside, scaling", "across", "transformer", "transformer, partitioning"],
)
def test_more_bandwidth_is_never_slower(client: Client, content: ProfileContent, estimator: str, nodes: int) -> None:
    """Both where every row states its link, and where the job does."""
    columns = {"nodes": [nodes], "workers": [4 * nodes], "sync_modes": "allreduce"}
    columns |= {"global_batch_samples": 64, "devices": "A100-40GB"} if content is TRANSFORMER else BATCH
    steps = [step_s(client, over(content, link), estimator, **columns)[0] for link in LINKS]
    assert all(answered([step]) for step in steps)
    assert all(faster <= slower * NOISE for slower, faster in pairwise(answered(steps)))
    if content is TRANSFORMER:
        together = step_s(client, content, estimator, **columns, link_bytes_per_second=LINKS)
        assert together == pytest.approx(steps)


@pytest.mark.parametrize("estimator", ["auto", "partitioning"])
@pytest.mark.parametrize("zero", [0, 1, 2])
def test_full_nodes_are_never_slower_than_the_same_devices_spread(client: Client, zero: int, estimator: str) -> None:
    """Eight devices as one, two, four and eight nodes of a transformer, over one link."""
    columns = {"zero_stages": zero, "global_batch_samples": 64, "devices": "A100-40GB", "sync_modes": "allreduce"}
    nodes = [1, 2, 4, 8]
    found = step_s(client, TRANSFORMER, estimator, nodes=nodes, workers=[8] * 4, link_bytes_per_second=25e9, **columns)
    steps = answered(found)
    assert all(packed <= spread * NOISE for packed, spread in pairwise(steps))


def test_runs_on_two_nodes_of_two_are_never_slower_than_on_four_of_one(client: Client) -> None:
    """But for a hundredth: runs do not tell the parts of exchange apart any better."""
    packed, spread = answered(step_s(client, ACROSS, nodes=[2, 4], workers=[4, 4], **BATCH))
    assert packed <= 1.01 * spread


def test_more_memory_never_fits_less(client: Client) -> None:
    devices = ["A100-40GB", "A100-80GB"]
    small, large = (
        step_s(
            client,
            TRANSFORMER,
            "partitioning",
            nodes=[1] * 6,
            workers=[1, 1, 1, 2, 4, 8],
            devices=device,
            global_batch_samples=[8, 64, 512, 64, 512, 512],
        )
        for device in devices
    )
    assert all(there is not None for fits, there in zip(small, large, strict=True) if fits is not None)


@pytest.mark.parametrize(
    ("content", "link"),
    # 1 Gbit/s is contradicted by the runs across nodes: then the facts force nothing.
    [*((INSIDE, link) for link in LINKS), *((ACROSS, link) for link in LINKS[1:])],
)
def test_no_answer_is_below_the_floor_of_its_facts(client: Client, content: ProfileContent, link: float) -> None:
    """Bytes over the link of a node, and linear scaling from the runs (horovod #752, #416)."""
    nodes = [1, 2, 3, 4, 8, 16]
    request = PredictRequest(
        profile=profile_source(over(content, link)),
        configurations=configurations(nodes=nodes, workers=[4 * count for count in nodes], **BATCH),
    )
    bytes_ = float(RESNET.parameter_bytes or 0)
    for count, row in zip(nodes, client.predict(request), strict=True):
        least = 2.0 * (count - 1) / count * bytes_ / link
        assert row.step_seconds is not None
        assert row.step_seconds * NOISE >= least
        assert row.upper_steps_per_second is not None
        assert row.upper_steps_per_second * least <= NOISE


def test_upper_bounds_are_at_most_linear(client: Client) -> None:
    """A user's three runs (19,800, 38,100 and 72,400 samples/s), in weak and in strong scaling."""
    rates = {(1, 8): 19_800.0, (2, 16): 38_100.0, (4, 32): 72_400.0}
    content = runs(rates, batch=256, device="A100")
    nodes = [8, 16, 64]
    for batch in ({"batch_per_worker_samples": 256}, {"global_batch_samples": 2048}):
        where = configurations(nodes=nodes, workers=[8 * count for count in nodes], devices="A100", **batch)
        request = PredictRequest(profile=profile_source(content), configurations=where)
        for count, row in zip(nodes, client.predict(request), strict=True):
            assert row.upper_samples_per_second is not None
            assert row.upper_samples_per_second <= 19_800.0 * count * NOISE


@pytest.mark.parametrize("estimator", ["last-known", "batch-line", "power-law"])
def test_a_rule_without_exchange_answers_no_row_across_nodes_from_runs_in_one(client: Client, estimator: str) -> None:
    found = step_s(client, INSIDE, estimator, nodes=[1, 2], workers=[4, 8], batch_per_worker_samples=64, devices="V100")
    assert [step is not None for step in found] == [True, False]
