"""Parts of a training step by PyTorch's hooks: where forward pass, backward pass and update begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from nodewise_client._step_stream import PARTS

# Between the update and the next step: the script's own, and of no part.
OTHER: Final = ""
UNKNOWN: Final = -1.0
_ALL: Final = (*PARTS, OTHER)


class StepParts:
    """Marks where parts of a step begin, by hooks of a model and of all optimizers.

    On a GPU marks are events of its stream, and are read once they are over, without waiting for them. The exchange is
    what lies between the last gradient that the backward pass makes and the update; with DistributedDataParallel alone,
    as others exchange in between. Of such others the loading is all that is known: the rest holds waiting.

    Args:
        model: the module that a step calls.
        exchanges: whether processes exchange gradients.
    """

    def __init__(self, model: torch.nn.Module, *, exchanges: bool) -> None:
        is_replicated = isinstance(model, torch.nn.parallel.DistributedDataParallel)
        self._alone: Final = not exchanges
        self._has_parts: Final = self._alone or is_replicated
        parameters = [each for each in model.parameters() if each.requires_grad]
        self._on_gpu: Final = bool(parameters) and parameters[0].is_cuda
        self._marks: list[tuple[str, Any]] = []
        self._late: list[list[tuple[str, Any]]] = []
        self._handles: list[Any] = [
            model.register_forward_pre_hook(self._marker("forward")),
            model.register_forward_hook(self._marker("backward")),
            register_optimizer_step_pre_hook(self._marker("update")),
            register_optimizer_step_post_hook(self._marker(OTHER)),
        ]
        if is_replicated and parameters:
            # Gradients come in the order from the last layer to the first.
            self._handles.append(parameters[0].register_post_accumulate_grad_hook(self._marker("exchange")))

    def close(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()

    def begin_step(self) -> None:
        """A step begins; what the step before left open is of no part."""
        self._marks = []
        self._mark("loading")

    def end_step(self) -> tuple[float, ...] | None:
        """Seconds of the parts of the step that ends; on a GPU of the newest step that is over there.

        None where the step did not go through the parts, or nothing is over yet.
        """
        self._mark(OTHER)
        marks = self._marks
        if self._on_gpu:
            self._late.append(marks)
            if len(self._late) > 2 * _BEHIND:
                del self._late[0]
            ready = [place for place, events in enumerate(self._late) if events[-1][1].query()]
            if not ready:
                return None
            marks = self._late[ready[-1]]
            del self._late[: ready[-1]]
        return self._parts(marks)

    def _marker(self, begins: str) -> Callable[..., None]:
        """A hook, whatever it is given. It runs in every step, so on a CPU it does one thing."""
        if self._on_gpu:
            return lambda *_: self._mark(begins)

        def mark(*_: object) -> None:
            self._marks.append((begins, clock()))

        clock = time.perf_counter
        return mark

    def _mark(self, begins: str) -> None:
        if self._on_gpu:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append((begins, event))
        else:
            self._marks.append((begins, time.perf_counter()))

    def _parts(self, marks: list[tuple[str, Any]]) -> tuple[float, ...] | None:
        seconds = dict.fromkeys(_ALL, 0.0)
        for (part, begin), (after, end) in pairwise(marks):
            # Gradients that are gathered over several backward passes are exchanged after the last one.
            place = OTHER if part == "exchange" and after != "update" else part
            seconds[place] += begin.elapsed_time(end) / 1e3 if self._on_gpu else end - begin
        if not seconds["forward"]:
            return None
        if not self._has_parts:
            return (seconds["loading"], UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
        return tuple(map(seconds.__getitem__, PARTS))


# Steps that the device may be behind its host and still be read.
_BEHIND: Final = 4
