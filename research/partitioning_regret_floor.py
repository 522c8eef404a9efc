"""What regret a given scatter of layer times costs: `partitioning_regret_floor.py DATA`.

The single-node table of DATA/measurements is composed of few times: with one stage a step is
m (L layer + ends) + (what comes once), `layer` and `ends` being constants of h, t and b. Printed are these layer times
beside the model's, and their scatter. Then tables are drawn: the model's own steps, each layer time multiplied by one
lognormal factor of that scatter. The model chooses among them as if there were none, so it errs in nothing else, and
its regret is what the scatter alone costs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from nodewise_partitioning.block import block_of
from nodewise_partitioning.calibration import Runs
from nodewise_partitioning.data_parallel import data_parallel_of
from nodewise_partitioning.pipeline import ends_of, pipeline_of
from nodewise_partitioning.software import Software
from score_partitioning import Job, predicted, read

DRAWS: Final = 200
SOFTWARE: Final = Software()

Key = tuple[float, float, float]
"""Hidden size, tensor parallelism, micro-batch."""


def layer_times(jobs: list[Any]) -> dict[Key, tuple[float, float]]:
    """Measured and modelled seconds of a layer, where two depths and two numbers of micro-batches tell them apart."""
    seconds: dict[Key, dict[tuple[float, float, float], float]] = {}
    model: dict[Key, float] = {}
    for job in jobs:
        runs: Runs = job.runs
        layout, dimensions = runs.layout, runs.dimensions
        block = block_of(dimensions, layout, runs.device, SOFTWARE)
        for row in np.flatnonzero(layout.pipeline == 1.0).tolist():
            key = (dimensions.hidden_size, float(layout.tensor[row]), float(layout.micro_batch[row]))
            place = (dimensions.layers, float(layout.data[row]), float(layout.micro_batches[row]))
            seconds.setdefault(key, {})[place] = float(runs.step_s[row])
            model[key] = float(block.layer_s[row])
    found = {}
    for key, steps in seconds.items():
        depths = sorted({layers for layers, _, _ in steps})
        both = [(d, m) for layers, d, m in steps if layers == depths[0] and (depths[-1], d, m) in steps]
        for d in {d for d, _ in both}:
            counts = sorted(m for other, m in both if other == d)
            if len(depths) > 1 and len(counts) > 1:
                low, high = (
                    (steps[each, d, counts[-1]] - steps[each, d, counts[0]]) / (counts[-1] - counts[0])
                    for each in (depths[0], depths[-1])
                )
                found[key] = ((high - low) / (depths[-1] - depths[0]), model[key])
    return dict(sorted(found.items()))


def drawn_s(runs: Runs, factors: dict[Key, float]) -> Any:
    """The model's steps, with layers that take other times."""
    dimensions, layout, device = runs.dimensions, runs.layout, runs.device
    block = block_of(dimensions, layout, device, SOFTWARE)
    keys = zip(layout.tensor.tolist(), layout.micro_batch.tolist(), strict=True)
    factor = np.array([factors[dimensions.hidden_size, t, b] for t, b in keys])
    block = replace(block, layer_s=factor * block.layer_s, backward_s=factor * block.backward_s)
    pipeline = pipeline_of(dimensions, layout, block, ends_of(dimensions, layout, device, SOFTWARE), device, SOFTWARE)
    replicas = data_parallel_of(dimensions, layout, block, pipeline, device, SOFTWARE)
    once = pipeline.bubble_s + pipeline.transfer_s + replicas.exchange_s + replicas.optimizer_s + SOFTWARE.fixed_s
    return layout.micro_batches * pipeline.slowest_s + once


def regret(job: Job, chosen_by: Any, true_s: Any) -> list[float]:
    """Of each decision of a model shape."""
    found = []
    for decision in sorted(set(job.decision)):
        rows = np.flatnonzero(np.array(job.decision) == decision)
        found.append(1.0 - true_s[rows].min() / true_s[rows][np.argmin(chosen_by[rows])])
    return found


def main(data: str) -> None:
    """Print layer times, their scatter and the regret that it costs."""
    jobs = read(Path(data) / "measurements" / "vtrain_a100_single_node.csv")
    times = layer_times(jobs)
    print("layer, forward to backward: h, t, b, measured ms, predicted ms")
    for (hidden, t, b), (measured, model) in times.items():
        print(
            f"  {hidden:5.0f} {t:2.0f} {b:2.0f} {1e3 * measured:6.2f} {1e3 * model:6.2f} {model / measured - 1.0:+5.0%}"
        )
    scatter = float(np.std([np.log(model / measured) for measured, model in times.values()]))
    chosen = [predicted(SOFTWARE, job.runs) for job in jobs]
    keys = sorted(
        {
            (job.runs.dimensions.hidden_size, t, b)
            for job in jobs
            for t, b in zip(job.runs.layout.tensor.tolist(), job.runs.layout.micro_batch.tolist(), strict=True)
        }
    )
    means = []
    for seed in range(DRAWS):
        noise = np.exp(scatter * np.random.default_rng(seed).standard_normal(len(keys)))
        factors = dict(zip(keys, noise.tolist(), strict=True))
        regrets = [regret(job, mine, drawn_s(job.runs, factors)) for job, mine in zip(jobs, chosen, strict=True)]
        means.append(float(np.mean([each for some in regrets for each in some])))
    low, high = np.quantile(means, [0.05, 0.95])
    print(
        f"scatter of {len(times)} layer times {scatter:.1%}: it alone costs a mean regret of {np.mean(means):.1%} "
        f"(nine of ten tables {low:.1%} to {high:.1%})"
    )


if __name__ == "__main__":
    main(sys.argv[1])
