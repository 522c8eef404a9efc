"""Architectures: on the wire the facts of many models are columns."""

from __future__ import annotations

from collections.abc import Iterable

from nodewise_values import Architectures, Workload


def architectures(models: Iterable[Workload]) -> Architectures:
    """The models of a search as a batch asks about them, in their order.

    Args:
        models: workloads, of which FLOPs, family, parameters, tensors and activations count; what one does not state is
            as the batch's shared profile says. `nodewise_client.torch_facts` counts them from PyTorch modules.
    """
    all_models = tuple(models)
    families = {name: number for number, name in enumerate(dict.fromkeys(model.family for model in all_models))}
    return Architectures(
        flops_per_sample=tuple(model.flops_per_sample or 0.0 for model in all_models),
        family_names=tuple(families),
        family_indexes=tuple(families[model.family] for model in all_models),
        parameter_bytes=tuple(model.parameter_bytes or 0.0 for model in all_models),
        tensors_counts=tuple(model.tensors_count or 0 for model in all_models),
        activation_bytes_per_sample=tuple(model.activation_bytes_per_sample or 0.0 for model in all_models),
    )
