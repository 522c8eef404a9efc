"""A YAML file of NeMo's Megatron models, in which releases before 2.0 state the layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client.frameworks._statements import Statement
from nodewise_values import Recomputation

__all__ = ["is_nemo", "read"]

_COUNTS: Final = {
    "tensor": "tensor_model_parallel_size",
    "pipeline": "pipeline_model_parallel_size",
    "context": "context_parallel_size",
    "expert": "expert_model_parallel_size",
    "interleave": "virtual_pipeline_model_parallel_size",
    "micro_batch": "micro_batch_size",
    "global_batch": "global_batch_size",
    "sequence_length": "encoder_seq_length",
    "layers": "num_layers",
}
_PRECISIONS: Final = {
    **dict.fromkeys(("bf16", "bf16-mixed", "bf16-true"), "bf16"),
    **dict.fromkeys(("16", "16-mixed", "16-true"), "fp16"),
    **dict.fromkeys(("32", "32-true"), "fp32"),
}
_GRANULARITIES: Final = {
    "none": Recomputation.NONE,
    "selective": Recomputation.SELECTIVE,
    "full": Recomputation.FULL,
}


def is_nemo(document: Mapping[str, Any]) -> bool:
    """Whether a document is a configuration of NeMo's Megatron models."""
    model = document.get("model")
    return isinstance(model, Mapping) and "tensor_model_parallel_size" in model


def read(file: Statement, document: Mapping[str, Any]) -> None:
    """Read what a configuration states."""
    model = file.section("model", document.get("model"))
    trainer = file.section("trainer", document.get("trainer"))
    for field_name, name in _COUNTS.items():
        file.count(field_name, f"model.{name}", model.get(name))
    file.count("nodes", "trainer.num_nodes", trainer.get("num_nodes"))
    file.count("devices_per_node", "trainer.devices", trainer.get("devices"))
    file.values["precision"] = file.choice("trainer.precision", trainer.get("precision", 32), _PRECISIONS)
    granularity = model.get("activations_checkpoint_granularity") or "none"
    file.recomputation(file.choice("model.activations_checkpoint_granularity", granularity, _GRANULARITIES))
    parallel = file.flag("model.sequence_parallel", model.get("sequence_parallel"))
    file.values["sequence_parallel"] = parallel and file.values.get("tensor", 1) > 1
    optimizer = file.section("model.optim", model.get("optim")).get("name")
    file.values["zero_stage"] = int(str(optimizer) in ("distributed_fused_adam", "mcore_distributed_optim"))
