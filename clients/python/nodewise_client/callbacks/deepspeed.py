"""Measures training by an engine of DeepSpeed.

from nodewise_client.callbacks.deepspeed import measure_engine

engine, *_ = deepspeed.initialize(...)
measure_engine(engine, "team/job", file="runs.csv")
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from nodewise_client.callbacks._hooks import pause_before
from nodewise_client.callbacks._meter import StepMeter

__all__ = ["measure_engine"]

_STEPS: Final = ("step", "train_batch")
_PAUSES: Final = ("eval", "eval_batch", "save_checkpoint")


def measure_engine(engine: Any, job: str, **options: Any) -> StepMeter:
    """Measure the steps of an engine, with or without a pipeline. Its `close()` writes the row, else the process's end.

    The arguments are those of `StepMeter`; what the engine knows need not be stated.
    """
    meter = StepMeter(job, **options)
    meter.describe(
        batch_per_worker=engine.train_micro_batch_size_per_gpu(),
        accumulation=engine.gradient_accumulation_steps(),
        precision="bf16" if engine.bfloat16_enabled() else "fp16" if engine.fp16_enabled() else "fp32",
        zero_stage=engine.zero_optimization_stage() or None,
        framework="deepspeed",
    )
    # A pipeline's engine makes its steps within `train_batch`; its `step` is not for callers.
    steps = next(name for name in reversed(_STEPS) if hasattr(engine, name))
    setattr(engine, steps, _count_steps(engine, getattr(engine, steps), meter))
    for name in _PAUSES:
        if hasattr(engine, name):
            setattr(engine, name, pause_before(getattr(engine, name), meter))
    return meter


def _count_steps(engine: Any, method: Callable[..., Any], meter: StepMeter) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        before = engine.global_steps
        result = method(*arguments, **options)
        if engine.global_steps != before:  # no step yet where gradients are accumulated
            meter.step()
        return result

    return call
