"""Rank PyTorch modules before any of them runs: `python examples/rank_modules.py --server HOST:PORT --device K80`.

Residual networks on images of CIFAR-10 are made on the meta device, where nothing is computed: no weights, no GPU.
Their facts are counted and ranked in one call. `--csv FILE` writes them as a table for `nodewise rank` instead, which
needs no server. Needs `pip install nodewise-client[torch]`.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nodewise_client import BatchPredictRequest, Client, Workload, architectures, configurations
from nodewise_client.torch_facts import counted

BATCH = 128
CLASSES = 10
STAGES = 3
COLUMNS = ("architecture", "family", "flops_per_sample", "parameter_bytes", "tensors", "activation_bytes_per_sample")


class Block(nn.Module):
    """A residual block whose branches are averaged: one is ResNet's (He et al., 2016), two are Shake-Shake's."""

    def __init__(self, inputs: int, outputs: int, stride: int, branches: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
                nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )
            for _ in range(branches)
        )
        alike = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if alike else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, images: Any) -> Any:
        """Branches and shortcut, added up."""
        added = sum(branch(images) for branch in self.branches) / len(self.branches)
        return torch.relu(added + self.shortcut(images))


def network(blocks: int, width: int, branches: int) -> nn.Module:
    """Three stages of so many blocks, each of twice the channels and half the height and width of the one before."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inputs = width
    for stage in range(STAGES):
        for block in range(blocks):
            outputs = width << stage
            layers.append(Block(inputs, outputs, 2 if stage and not block else 1, branches))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def facts(blocks: int, width: int, branches: int) -> Workload:
    """What is known of a network before it runs."""
    depth = 2 * STAGES * blocks + 2
    with torch.device("meta"):
        model, images = network(blocks, width, branches), torch.empty(BATCH, 3, 32, 32)
    name = f"resnet-{depth}-w{width}" if branches == 1 else f"shake-{depth}-{branches}x{width}"
    return counted(model, images).workload(name, family="ResNet" if branches == 1 else "Shake-Shake")


def main() -> None:
    """Count, then write or ask."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--server", default="127.0.0.1:50551")
    arguments.add_argument("--device", default="K80")
    arguments.add_argument("--csv", type=Path)
    given = arguments.parse_args()
    candidates = [facts(blocks, width, 1) for width in (16, 32, 48) for blocks in (2, 3, 5, 7)]
    candidates += [facts(4, width, 2) for width in (16, 32, 48, 64)]
    if given.csv is not None:
        with given.csv.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(COLUMNS)
            for model in candidates:
                counts = (model.flops_per_sample, model.parameter_bytes, model.activation_bytes_per_sample)
                flops, size, kept = (round(count or 0.0) for count in counts)
                table.writerow([model.model_name, model.family, flops, size, model.tensors_count, kept])
        return
    rows = configurations(nodes=1, workers=1, devices=given.device, batch_per_worker_samples=BATCH)
    request = BatchPredictRequest(architectures=architectures(candidates), configurations=rows)
    with Client(given.server) as client:
        found = client.batch_predict(request)
    (ranking,) = found.rankings
    for place in ranking.architecture_indexes:
        print(f"{candidates[place].model_name:>16}  {1e3 * (found.rows[place].step_seconds or 0.0):7.1f} ms")
    print(f"expected Kendall's tau with the measured order: {ranking.expected_kendall_tau}")


if __name__ == "__main__":
    main()
