"""Runs what a page programs, in the environment of its manager: ``page_program.py PAGE``.

What a reader brings is stood in for: a training of plain Python, a catalogue of two clouds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pages import blocks


def of_optuna() -> dict[str, Any]:
    return {"train_step": lambda batch: None, "validation_loss": lambda: 1.0}


def of_skypilot() -> dict[str, Any]:
    from small_catalogue import prepare

    prepare()
    return {}


def of_ray() -> dict[str, Any]:
    import ray
    from ray import train
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    ray.init(num_cpus=4, include_dashboard=False)
    # PyTorch is not there; its trainer is this one, and sets up PyTorch's processes.
    torch = ModuleType("ray.train.torch")
    torch.TorchTrainer = DataParallelTrainer  # type: ignore[attr-defined]
    sys.modules["ray.train.torch"] = torch

    def train_loop() -> None:
        for _ in range(10):
            train.report({"step_seconds": 0.5})

    return {"train_loop": train_loop}


STAND_INS: dict[str, Callable[[], dict[str, Any]]] = {
    "docs/integrations/optuna.md": of_optuna,
    "docs/integrations/ray.md": of_ray,
    "docs/integrations/skypilot.md": of_skypilot,
}


def main(page: str) -> None:
    names: dict[str, Any] = {"__name__": "snippets", **STAND_INS[page]()}
    shown = blocks(page, "python")
    for source in shown:
        exec(compile(source, page, "exec"), names)
    result = names.get("result")
    print(json.dumps({"run": len(shown), "failed": bool(result is not None and result.error)}), flush=True)


main(sys.argv[1])
