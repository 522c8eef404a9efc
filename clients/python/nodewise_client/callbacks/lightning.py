"""Measures training by PyTorch Lightning.

from nodewise_client.callbacks.lightning import ThroughputCallback

trainer = Trainer(callbacks=[ThroughputCallback("team/job", file="runs.csv")])
"""

from __future__ import annotations

from typing import Any, Final

from nodewise_client.callbacks._meter import StepMeter

try:
    from lightning.pytorch import Callback
except ImportError:  # its other distribution
    from pytorch_lightning import Callback

__all__ = ["ThroughputCallback"]

_PRECISIONS: Final = {"bf16": "bf16", "16": "fp16", "32": "fp32"}


class ThroughputCallback(Callback):  # type: ignore[misc]  # Lightning need not be installed where types are checked
    """Measures `fit`. The arguments are those of `StepMeter`; what the trainer knows need not be stated."""

    def __init__(self, job: str, **options: Any) -> None:
        self._meter: Final = StepMeter(job, **options)

    def on_train_start(self, trainer: Any, *_: Any) -> None:
        """Note how the job runs."""
        self._meter.describe(
            nodes=trainer.num_nodes,
            workers=trainer.world_size,
            batch_per_worker=getattr(trainer.train_dataloader, "batch_size", None),
            accumulation=trainer.accumulate_grad_batches,
            precision=_PRECISIONS.get(str(trainer.precision).partition("-")[0]),
            framework="lightning",
        )

    def on_train_batch_end(self, trainer: Any, _module: Any, _outputs: Any, _batch: Any, batch_idx: int) -> None:
        """End a step, where the optimizer has made one."""
        if (batch_idx + 1) % trainer.accumulate_grad_batches == 0 or trainer.is_last_batch:
            self._meter.step()

    def on_validation_start(self, *_: Any) -> None:
        """Leave out a validation."""
        self._meter.pause()

    def on_save_checkpoint(self, *_: Any) -> None:
        """Leave out a checkpoint: its weights have been gathered since the last step."""
        self._meter.pause(late=True)

    def on_train_end(self, *_: Any) -> None:
        """Write what was measured."""
        self._meter.close()

    def on_exception(self, *_: Any) -> None:
        """Write what was measured until then."""
        self._meter.close()
