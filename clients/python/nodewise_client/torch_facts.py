"""Counts what a PyTorch module is made of before it runs anywhere: `pip install nodewise-client[torch]`.

    with torch.device("meta"):
        model, images = ResNet(), torch.empty(128, 3, 32, 32)
    facts = nodewise_client.torch_facts.counted(model, images)
    client.append_profile("team/job", workload=facts.workload("resnet", family="ResNet"))

Many of them make a batch: `nodewise_client.architectures([facts.workload() for facts in counted_ones])`.

On the meta device tensors have shapes and no numbers: nothing is computed, and neither weights nor a GPU are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from nodewise_values import Workload

__all__ = ["ModelFacts", "counted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What one training step of a module takes, counted from shapes.

    Attributes
    ----------
    batch : samples of the inputs that it was counted with.
    flops : of forward and backward pass of that batch, a multiplication and its addition as two: matrix products,
        convolutions and attention, as `torch.utils.flop_counter` has them; element-wise work is not among them.
    flops_by_operator : the same by operator, largest first.
    forward_flops : of the forward pass alone.
    parameters, parameter_bytes, tensors : what is trained, each shared tensor once.
    activation_bytes : what the forward pass keeps for the backward pass, parameters aside.
    """

    batch: int
    flops: int
    flops_by_operator: Mapping[str, int]
    forward_flops: int
    parameters: int
    parameter_bytes: int
    tensors: int
    activation_bytes: int

    def workload(self, model_name: str = "", *, family: str = "") -> Workload:
        """The facts as a profile's workload; `family`: the model family, such as "ResNet"."""
        return Workload(
            model_name=model_name,
            family=family,
            parameter_bytes=float(self.parameter_bytes),
            tensors_count=self.tensors,
            flops_per_sample=self.flops / self.batch,
            activation_bytes_per_sample=self.activation_bytes / self.batch or None,
            framework="pytorch",
        )


def counted(
    module: Any, *inputs: Any, batch: int | None = None, loss: Callable[[Any], Any] | None = None, **named: Any
) -> ModelFacts:
    """Facts of a module on the meta device, from one forward and backward pass with these inputs.

    Args:
        module: a `torch.nn.Module` whose parameters are on the meta device.
        inputs, named: what it is called with, tensors on the meta device.
        batch: samples in the inputs; None = the first dimension of the first tensor.
        loss: makes a scalar of the output; None = the sum of all floating-point tensors in it.

    Raises
    ------
    ValueError
        A parameter, buffer or input has numbers (it would be computed with), or no parameter is trained.
    """
    tensors = [*module.parameters(), *module.buffers(), *_tensors((inputs, named))]
    if any(tensor.device.type != "meta" for tensor in tensors):
        raise ValueError('module and inputs must be on the meta device: create them within `with torch.device("meta")`')
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    inputs_of_module = _tensors((inputs, named))
    if not parameters:
        raise ValueError("no parameter of the module is trained: requires_grad is off for all of them")
    if batch is None:
        if not inputs_of_module or not inputs_of_module[0].dim():
            raise ValueError("batch must be given: no input has a first dimension")
        batch = int(inputs_of_module[0].shape[0])
    saved_tensors: dict[int, Any] = {}
    whole, forward = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with whole:
        with forward, saved_tensors_hooks(_keeper(saved_tensors, list(module.parameters())), _same):
            output = module(*inputs, **named)
        (loss or _sum)(output).backward()
    module.zero_grad(set_to_none=True)
    by_operator = {str(operator).removeprefix("aten."): flops for operator, flops in _global(whole).items()}
    return ModelFacts(
        batch=batch,
        flops=sum(by_operator.values()),
        flops_by_operator=dict(sorted(by_operator.items(), key=lambda item: (-item[1], item[0]))),
        forward_flops=sum(_global(forward).values()),
        parameters=sum(parameter.numel() for parameter in parameters),
        parameter_bytes=sum(parameter.numel() * parameter.element_size() for parameter in parameters),
        tensors=len(parameters),
        activation_bytes=sum(storage.nbytes() for storage in saved_tensors.values()),
    )


def _global(counter: Any) -> Mapping[Any, int]:
    counts: Mapping[Any, int] = counter.get_flop_counts().get("Global", {})
    return counts


def _keeper(saved_tensors: dict[int, Any], parameters: list[Any]) -> Callable[[Any], Any]:
    """A hook that remembers each storage once: all views of one give the same object, which is held."""
    weights = [parameter.untyped_storage() for parameter in parameters]
    of_weights = {id(storage) for storage in weights}

    def keep(tensor: Any, _weights: list[Any] = weights) -> Any:
        storage = tensor.untyped_storage()
        if id(storage) not in of_weights:
            saved_tensors.setdefault(id(storage), storage)
        return tensor

    return keep


def _same(tensor: Any) -> Any:
    return tensor


def _sum(output: Any) -> Any:
    parts = [tensor.sum() for tensor in _tensors(output) if tensor.requires_grad]
    if not parts:
        raise ValueError("nothing in the module's output depends on its parameters: give loss")
    return sum(parts)


def _tensors(value: Any) -> list[Any]:
    """All tensors in nested sequences, mappings and data classes."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    elif is_dataclass(value):
        value = [getattr(value, part.name) for part in fields(value)]
    return [tensor for part in value for tensor in _tensors(part)] if isinstance(value, (list, tuple)) else []
