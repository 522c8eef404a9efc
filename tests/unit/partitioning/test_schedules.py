"""Unequal stages and interleaving, against a simulation of the schedule by its dependencies alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from partitioned_transformers import SMALL, a100, dimensions

from nodewise_partitioning.block import Block
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.pipeline import Ends, pipeline_of
from nodewise_partitioning.software import Software

FORWARD_S, BACKWARD_S = 1.0, 2.0


def simulated_s(stages: int, chunks: int, micro_batches: int, seconds: list[float]) -> float:
    """Megatron-Core's 1F1B, interleaved where there are several chunks; ``seconds`` of the forward pass of each chunk.

    Groups of micro-batches pass a chunk before the next: p of them, or as many more as leave none over.
    """
    whole = max(micro_batches // stages, 1)
    group = max(-(-micro_batches // whole), stages)
    table = [
        (micro_batch, chunk)
        for start in range(0, micro_batches, group)
        for chunk in range(chunks)
        for micro_batch in range(start, min(start + group, micro_batches))
    ]
    orders = []
    for stage in range(stages):
        ahead = stages - stage - 1
        warm = min(2 * ahead + (chunks - 1) * group if chunks > 1 else ahead, len(table))
        forward = [("forward", micro_batch, chunk) for micro_batch, chunk in table]
        backward = [("backward", micro_batch, chunks - 1 - chunk) for micro_batch, chunk in table]
        steady = [each for pair in zip(forward[warm:], backward) for each in pair]
        orders.append(forward[:warm] + steady + backward[len(table) - warm :])
    ended: dict[tuple[str, int, int], float] = {}
    clocks, places = [0.0] * stages, [0] * stages
    last = stages * chunks - 1
    while any(place < len(order) for place, order in zip(places, orders)):
        before = sum(places)
        for stage, order in enumerate(orders):
            while places[stage] < len(order):
                kind, micro_batch, chunk = order[places[stage]]
                at = chunk * stages + stage
                needs = (kind, micro_batch, at - 1) if at else None
                if kind == "backward":
                    needs = (kind, micro_batch, at + 1) if at < last else ("forward", micro_batch, at)
                if needs is not None and needs not in ended:
                    break
                takes = seconds[at] * (FORWARD_S if kind == "forward" else BACKWARD_S)
                clocks[stage] = max(clocks[stage], ended.get(needs, 0.0) if needs else 0.0) + takes
                ended[kind, micro_batch, at] = clocks[stage]
                places[stage] += 1
        assert sum(places) > before, "the schedule waits for itself"
    return max(clocks)


def spread(layers: int, parts: int) -> list[float]:
    """Layers of each chunk: equally many, but the last, the first and others have one less where some are lacking."""
    most = -(-layers // parts)
    found = [float(most)] * parts
    for place in [parts - 1, 0, *range(parts - 2, 0, -1)][: most * parts - layers]:
        found[place] -= 1.0
    return found


def predicted_s(stages: int, chunks: int, micro_batches: int, layers: int) -> float:
    """The same from the equations, with ends and transfers that take no time."""
    layout = Layout.of(
        1, pipeline=float(stages), interleave=float(chunks), micro_batches=float(micro_batches), devices=float(stages)
    )
    nothing, one = np.zeros(1), np.full(1, FORWARD_S + BACKWARD_S)
    block = Block(one, nothing, nothing, nothing, one, np.full(1, BACKWARD_S), np.full(1, FORWARD_S))
    model = dimensions(replace(SMALL, layers=layers))
    found = pipeline_of(model, layout, block, Ends(nothing, nothing), a100(), Software())
    return float((micro_batches * found.slowest_s + found.bubble_s)[0])


@pytest.mark.parametrize(("stages", "chunks", "micro_batches"), [(4, 1, 16), (4, 2, 16), (8, 8, 32), (4, 4, 4)])
def test_equal_chunks_take_what_their_schedule_takes(stages: int, chunks: int, micro_batches: int) -> None:
    layers = 2 * stages * chunks
    expected = simulated_s(stages, chunks, micro_batches, spread(layers, stages * chunks))
    assert predicted_s(stages, chunks, micro_batches, layers) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("stages", "chunks", "micro_batches", "layers"),
    [
        # 405B, 235B, 61 layers and fewer, as they are trained.
        (8, 8, 32, 126),
        (8, 4, 64, 126),
        (8, 4, 32, 94),
        (4, 8, 64, 30),
        (4, 8, 64, 62),
        (4, 4, 32, 61),
        (8, 1, 32, 61),
        # A layer more than divides; whole stages of uneven chunks.
        (4, 4, 16, 33),
        (8, 4, 64, 65),
        (4, 2, 16, 21),
        (4, 4, 16, 40),
        (8, 4, 64, 80),
    ],
)
def test_unequal_chunks_take_about_what_their_schedule_takes(
    stages: int, chunks: int, micro_batches: int, layers: int
) -> None:
    expected = simulated_s(stages, chunks, micro_batches, spread(layers, stages * chunks))
    assert predicted_s(stages, chunks, micro_batches, layers) == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("micro_batches", [1, 2, 3, 4, 5, 6, 7, 9, 11])
def test_micro_batches_that_stages_do_not_divide_take_what_their_schedule_takes(micro_batches: int) -> None:
    expected = simulated_s(4, 4, micro_batches, spread(16, 16))
    assert predicted_s(4, 4, micro_batches, 16) == pytest.approx(expected, rel=1e-12)
