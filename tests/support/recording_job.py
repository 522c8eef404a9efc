"""A small training job that records itself, as processes of their own: what tests of the recorder start."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist

from nodewise_client.torch import Recorder


class Sleeping(torch.nn.Module):
    """A layer that takes time and no processor."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, values: torch.Tensor) -> Any:
        time.sleep(0.002)
        return self.linear(values)


def train(rank: int, ranks: int, folder: str, target: str | None, options: dict[str, Any]) -> None:
    """One rank: fourteen steps of DistributedDataParallel over gloo under a recorder."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    model = torch.nn.parallel.DistributedDataParallel(Sleeping())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(target, "team/job", steps=range(8, 10), nodes=1, batch_per_worker=4, **options) as recorder:
        for _ in range(14):
            optimizer.zero_grad()
            with recorder.phase("compute"):
                model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            recorder.step()
        dist.destroy_process_group()
