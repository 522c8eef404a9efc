"""Measures training by torchtitan.

from nodewise_client.callbacks.torchtitan import measure_trainer

trainer = config.build()
measure_trainer(trainer, "team/job", file="runs.csv")
trainer.train()
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from nodewise_client.callbacks._hooks import pause_before, step_after
from nodewise_client.callbacks._meter import StepMeter

__all__ = ["measure_trainer"]

SAVES_S: Final = 0.01
"""The trainer calls its checkpointer after every step; only a call that takes this long has saved something."""
_PRECISIONS: Final = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_DEGREES: Final = {
    "tensor_parallel": "tp",
    "pipeline_parallel": "pp",
    "context_parallel": "cp",
    "expert_parallel": "ep",
}


def measure_trainer(trainer: Any, job: str, **options: Any) -> StepMeter:
    """Measure the steps of a trainer. Its `close()` writes the row, else the process's end.

    The arguments are those of `StepMeter`; what the trainer knows need not be stated.
    """
    meter = StepMeter(job, **options)
    training, degrees = trainer.config.training, trainer.parallel_dims
    meter.describe(
        workers=degrees.world_size,
        batch_per_worker=training.local_batch_size,
        accumulation=trainer.gradient_accumulation_steps,
        sequence_length=training.seq_len,
        precision=_PRECISIONS.get(str(training.mixed_precision_param)),
        framework="torchtitan",
        **{name: degree for name, short in _DEGREES.items() if (degree := getattr(degrees, short, 1)) > 1},
    )
    trainer.train_step = step_after(trainer.train_step, meter)
    trainer.checkpointer.save = _pause_after_save(trainer.checkpointer.save, meter)
    if getattr(trainer, "validator", None) is not None:
        trainer.validator.validate = pause_before(trainer.validator.validate, meter)
    return meter


def _pause_after_save(method: Callable[..., Any], meter: StepMeter) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        begun_at = time.perf_counter()
        result = method(*arguments, **options)
        if time.perf_counter() - begun_at >= SAVES_S:
            meter.pause(late=True)
        return result

    return call
