"""Where this process stands in its job: by PyTorch if the process has imported it, else by the launcher."""

from __future__ import annotations

import os
import sys
from typing import Any

from nodewise_client._delivery import Place, place_of_environment


def current_place() -> Place:
    """Rank and size of this process: from the process group, else from the launcher."""
    environment_place = place_of_environment()
    group = getattr(_torch(), "distributed", None)
    if group is None or not (group.is_available() and group.is_initialized()):
        return environment_place
    rank, world_size = group.get_rank(), group.get_world_size()
    nodes = environment_place.nodes if environment_place.world_size == world_size else None
    if world_size == 1 or os.environ.get("MASTER_ADDR") in {"localhost", "127.0.0.1", "::1"}:
        nodes = 1
    return Place(rank=rank, world_size=world_size, nodes=nodes)


def device_name() -> str:
    """The accelerator as PyTorch names it, or "cpu"."""
    torch = _torch()
    return str(torch.cuda.get_device_name()) if torch is not None and torch.cuda.is_available() else "cpu"


def computes_ahead() -> bool:
    """Whether the device may still compute what the process has left behind."""
    torch = _torch()
    return torch is not None and bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def synchronise() -> None:
    """Wait until the device has done what it was given."""
    if computes_ahead():
        _torch().cuda.synchronize()


def _torch() -> Any:
    """PyTorch, if the process has imported it: importing it takes seconds."""
    return sys.modules.get("torch")
