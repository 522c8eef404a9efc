"""Errors of `partitioning` from facts alone on other people's stacks, by table, device and number format.

``python research/score_modern.py TABLE.csv...`` for tables of transformers (`partitioning_modern/*.csv`). Printed:
rows, mean |predicted / measured - 1| of the step, and mean (bias) and deviation (spread) of ln(predicted / measured);
the same for rows of at least 8,192 tokens.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import stack_of
from nodewise_partitioning.step import step_parts_s
from score_partitioning import device, dimensions

RECOMPUTATION: Final = {"none": 1.0, "selective": 2.0, "full": 3.0}
LONG: Final = 8192.0
"""Tokens from which attention is a large part of a step."""
SHAPE: Final = ("layers", "hidden_size", "attention_heads", "sequence_length", "vocabulary_size")


def log_error(row: Mapping[str, str]) -> float:
    """Ln(predicted / measured) of one row's step."""

    def number(name: str, least: float = 0.0) -> float:
        return max(float(row[name] or 0), least)

    data, batch = number("data_parallel"), number("micro_batch")
    layout = Layout.of(
        1,
        tensor=number("tensor_parallel"),
        pipeline=number("pipeline_parallel"),
        data=data,
        context=number("context_parallel", 1.0),
        interleave=number("interleave", 1.0),
        micro_batch=batch,
        micro_batches=number("global_batch") / (data * batch),
        devices=number("workers"),
        devices_per_node=np.ceil(number("workers") / number("nodes")),
        node_link_bytes_per_s=number("link_bytes_per_s"),
        recomputation=np.array([RECOMPUTATION[row["recompute"]]]),
        sequence_parallel=number("sequence_parallel"),
        zero_stage=number("zero_stage"),
    )
    software, _ = stack_of(row["framework"], row["precision"])
    model = dimensions(*(number(name) for name in SHAPE))
    step_s = step_parts_s(model, layout, device(row["device"], row["precision"]), software).sum()
    return float(np.log(step_s * number("steps_per_s")))


def told(name: str, errors: Sequence[float]) -> None:
    """Print one line, if there is anything to say."""
    if errors:
        logs = np.array(errors)
        size = np.abs(np.expm1(logs)).mean()
        print(
            f"{name:46s} {len(logs):4d} rows  step_mape {size:6.1%}  bias {logs.mean():+.3f}  spread {logs.std():.3f}"
        )


def main() -> None:
    """Read and print."""
    for path in map(Path, sys.argv[1:]):
        errors: dict[str, list[float]] = defaultdict(list)
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                error = log_error(row)
                kinds = ["all", f"{row['device']} {row['precision']}"]
                if float(row["sequence_length"]) >= LONG:
                    kinds.append(f"{kinds[1]}, long")
                for kind in kinds:
                    errors[kind].append(error)
        for kind, found in sorted(errors.items()):
            told(f"{path.stem}: {kind}", found)


if __name__ == "__main__":
    main()
