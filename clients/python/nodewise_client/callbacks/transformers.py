"""Measures training by the Trainer of Hugging Face transformers, or of a library that builds on it.

from nodewise_client.callbacks.transformers import ThroughputCallback

trainer = Trainer(..., callbacks=[ThroughputCallback("team/job", file="runs.csv")])
"""

from __future__ import annotations

from typing import Any, Final

from transformers import TrainerCallback

from nodewise_client.callbacks._meter import StepMeter

__all__ = ["ThroughputCallback"]


class ThroughputCallback(TrainerCallback):  # type: ignore[misc]  # transformers need not be installed to check types
    """Measures `train`. The arguments are those of `StepMeter`; what the Trainer knows need not be stated."""

    def __init__(self, job: str, **options: Any) -> None:
        self._meter: Final = StepMeter(job, **options)

    def on_train_begin(self, args: Any, *_: Any, **_more: Any) -> None:
        """Note how the job runs."""
        self._meter.describe(
            # Several GPUs in one process are DataParallel: each is a worker.
            workers=args.n_gpu if args.n_gpu > 1 else None,
            batch_per_worker=args.per_device_train_batch_size,
            accumulation=args.gradient_accumulation_steps,
            precision="bf16" if args.bf16 else "fp16" if args.fp16 else "fp32",
            framework="transformers",
        )

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_more: Any) -> None:
        """End a step."""
        self._meter.step()
        if control.should_evaluate or control.should_save:
            self._meter.pause()

    def on_evaluate(self, *_: Any, **_more: Any) -> None:
        """Leave out an evaluation that no step announced."""
        self._meter.pause(late=True)

    def on_save(self, *_: Any, **_more: Any) -> None:
        """Leave out a checkpoint that no step announced."""
        self._meter.pause(late=True)

    def on_train_end(self, *_: Any, **_more: Any) -> None:
        """Write what was measured."""
        self._meter.close()
