"""Errors of tools, as an agent can act on them: what is wrong, what is missing, and a value that it may have."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, Final

from pydantic import ValidationError

from nodewise_cli.agents.arguments import example_of
from nodewise_cli.agents.questions import MissingArgumentsError, argument_names
from nodewise_cli.agents.quoting import quote
from nodewise_cli.errors import explain_error
from nodewise_cli.failures import CommandError
from nodewise_client import NodewiseError, RefusedError, UnauthenticatedError

__all__ = ["explain_arguments", "explain_failure"]

LONGEST: Final = 600
MOST_FIELDS: Final = 5
_ARGUMENTS: Final = {
    "batch_per_worker": "micro_batch",
    "batch_per_worker_samples": "micro_batch",
    "batches_per_worker_samples": "micro_batch",
    "global_batches_samples": "global_batch",
    "global_batch_samples": "global_batch",
    "device_name": "device",
    "devices": "device",
    "layers": "model",
    "observations": "measured",
    "phase_timings": "measured",
    "transformer": "model",
    "workload": "model",
}
"""Arguments by the fields that the service names."""
_MEANT: Final = {
    **dict.fromkeys(
        ("batch_size", "batch", "train_batch_size"), "global_batch (of all devices) or micro_batch (of one)"
    ),
    **dict.fromkeys(("per_device_train_batch_size", "per_device_batch_size", "micro_batch_size"), "micro_batch"),
    **dict.fromkeys(
        ("gradient_accumulation_steps", "gradient_accumulation", "accumulation"),
        "global_batch: micro_batch x devices x accumulation steps",
    ),
    **dict.fromkeys(("seq_len", "seq_length", "max_seq_length", "context_length", "max_length"), "sequence_length"),
    **dict.fromkeys(("gpu", "gpu_type", "accelerator", "hardware"), "device"),
    **dict.fromkeys(("gpus", "num_gpus", "gpu_count", "n_gpus", "num_devices", "world_size"), "devices"),
    **dict.fromkeys(("gpus_per_node", "num_gpus_per_node"), "devices_per_node"),
    **dict.fromkeys(("num_nodes", "node_count"), "nodes"),
    **dict.fromkeys(("lora_rank", "lora_r", "lora", "rank"), "adapter_rank, with frozen_weights 0.995"),
    **dict.fromkeys(
        ("qlora", "quantization", "load_in_4bit", "bits"), "frozen_weight_bits 4, with frozen_weights 0.995"
    ),
    **dict.fromkeys(("gradient_checkpointing", "activation_checkpointing", "checkpointing"), "recompute full"),
    **dict.fromkeys(("dtype", "torch_dtype", "mixed_precision", "bf16", "fp16"), "precision"),
    **dict.fromkeys(("zero", "deepspeed_stage", "fsdp", "strategy"), "zero_stage"),
    **dict.fromkeys(("cpu_offload", "offload_optimizer", "zero_offload"), "offload"),
    **dict.fromkeys(("price_per_gpu_hour", "gpu_price", "price", "cost_per_hour"), "price_per_device_hour"),
    **dict.fromkeys(("bandwidth", "network", "interconnect", "network_bandwidth"), "link_bytes_per_s"),
    **dict.fromkeys(("dataset_tokens", "num_tokens", "total_tokens", "training_tokens"), "tokens"),
    **dict.fromkeys(("dataset_size", "num_samples"), "samples"),
    **dict.fromkeys(("steps", "max_steps", "train_steps"), "samples: steps x global_batch"),
    **dict.fromkeys(("model_name", "model_size"), "model"),
    **dict.fromkeys(("size", "params", "num_params", "num_parameters"), "parameters of model"),
}
"""Arguments by other words for them."""
_OF_INFERENCE: Final = frozenset({"mode", "task", "inference", "serving", "max_new_tokens", "kv_cache"})
_BATCHES: Final = ("micro_batch", "global_batch")
_OTHERS: Final = re.compile(r"; \d+ other estimators?: see --verbose")
_STATE: Final = re.compile(r"state (\w+(?: or \w+)*): no estimator")


def explain_failure(error: CommandError | NodewiseError, stated_names: Collection[str] = ()) -> str:
    """Why a tool has no answer, although these arguments are stated."""
    lacks_token = isinstance(error, UnauthenticatedError)
    text = argument_names(_OTHERS.sub("", str(error) if lacks_token else explain_error(error)))
    stated = _STATE.search(text)
    if stated is not None:
        missing = stated[1].split(" or ")
    elif isinstance(error, RefusedError):
        fields = [field.rpartition(".")[2] for field in error.missing_fields]
        named = [_ARGUMENTS.get(field, field) for field in fields]
        missing = [name for name in named if example_of(name) is not None and name not in stated_names]
    else:
        missing = error.names if isinstance(error, MissingArgumentsError) else []
    lines = [f"No answer: {quote(text, LONGEST)}"]
    if lacks_token:
        lines.append("The server needs a token: send it as `Authorization: Bearer ...`, or start nodewise mcp with it.")
    return "\n".join([*lines, *_examples(missing)])


def explain_arguments(error: ValidationError, names: Collection[str] = ()) -> str:
    """Which arguments are wrong, and values that they may have; of unknown ones, which of these names are meant."""
    lines = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        if each["loc"][-1:] == ("int",):  # one of the kinds that the argument may have; the other says what is wrong
            continue
        parts = [part for part in each["loc"] if isinstance(part, int) or part.isidentifier()]
        if not each["loc"]:
            lines.append(f"Wrong arguments: {quote(each['msg'].removeprefix('Value error, '), 160)}")
            continue
        place = quote(".".join(map(str, parts)) or str(each["loc"]), 80)
        if each["type"] == "extra_forbidden":
            lines.append(f"Wrong argument {place}: {_instead_of(str(parts[-1]) if parts else '', names)}")
            continue
        example = _example_among(parts)
        such_as = "" if example is None else f", such as {json.dumps(example)}"
        lines.append(f"Wrong argument {place}: {quote(each['msg'].removeprefix('Value error, '), 160)}{such_as}")
    return "\n".join(list(dict.fromkeys(lines))[:MOST_FIELDS])


def _instead_of(name: str, names: Collection[str]) -> str:
    """What to state in the place of an argument that there is not."""
    word = name.casefold().replace("-", "_")
    close = [] if word in _OF_INFERENCE else get_close_matches(word, names, n=1, cutoff=0.7)
    meant = _MEANT.get(word) or "".join(close)
    if meant:
        return f"there is no such argument; state {meant}"
    return "there is no such argument. Nodewise predicts training by all-reduce; it is not about inference"


def _example_among(names: Sequence[str | int]) -> Any:
    """Of the innermost name that has one; None = none has."""
    examples = [example_of(name) for name in reversed(names) if isinstance(name, str)]
    return next((example for example in examples if example is not None), None)


def _examples(names: Sequence[str]) -> list[str]:
    if set(_BATCHES) <= set(names):
        names = [name for name in names if name != "micro_batch"]
    known = {name: example_of(name) for name in dict.fromkeys(names) if name}
    return [
        f"Missing: {name}, such as {json.dumps(example)}" if example is not None else f"Missing: {quote(name, 80)}"
        for name, example in known.items()
    ][:MOST_FIELDS]
