"""Alternative names of the columns of a measurements table."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

__all__ = ["ALIASES", "AMBIGUOUS", "column_named", "suggest_column"]

ALIASES: Final = {
    "job": ("model", "model_name", "name", "network", "workload"),
    "device": (
        *("accelerator", "accelerator_type", "device_name", "device_type", "gpu", "gpu_model", "gpu_name", "gpu_type"),
        *("hardware",),
    ),
    "nodes": ("hosts", "instances", "machines", "n_nodes", "nnodes", "node_count", "num_hosts", "num_nodes"),
    "workers": (
        *("accelerators", "devices", "gpu_count", "gpus", "n_devices", "n_gpus", "ngpus", "num_accelerators"),
        *("num_devices", "num_gpus", "num_processes", "ranks", "total_gpus", "world_size"),
    ),
    "gpus_per_node": (
        *("devices_per_node", "gpu_per_node", "gpus_per_host", "gpus_per_machine", "local_world_size"),
        *("n_gpus_per_node", "nproc_per_node", "num_gpus_per_node", "ranks_per_node", "tasks_per_node"),
        *("workers_per_node",),
    ),
    "steps_per_s": ("global_steps_per_s", "step_per_s"),
    "samples_per_s": (
        *("example_per_s", "examples_per_s", "items_per_s", "records_per_s", "sample_per_s", "samples_s"),
        *("seq_per_s", "seqs_per_s", "sequence_per_s", "sequences_per_s"),
    ),
    "images_per_s": ("image_per_s", "images_s", "img_per_s", "img_s", "imgs_per_s", "imgs_s"),
    "tokens_per_s": ("tok_per_s", "token_per_s", "tokens_s", "toks_per_s"),
    "it_per_s": ("iter_per_s", "iteration_per_s", "iterations_per_s", "iters_per_s", "its_per_s"),
    "step_s": (
        *("elapsed_time_per_iteration_s", "iter_time_s", "iteration_time_s", "s_per_batch", "s_per_it", "s_per_iter"),
        *("s_per_iteration", "s_per_step", "step_time_s", "time_per_iteration_s", "time_per_step_s"),
    ),
    "ms_per_step": (
        *("elapsed_time_per_iteration_ms", "iter_time_ms", "iteration_time_ms", "ms_per_batch", "ms_per_it"),
        *("ms_per_iter", "ms_per_iteration", "step_ms", "step_time_ms", "time_per_iteration_ms", "time_per_step_ms"),
    ),
    "batch_per_worker": (
        *("batch_per_device", "batch_per_gpu", "batch_size", "batch_size_per_device", "batch_size_per_gpu"),
        *("device_batch_size", "local_batch_size", "per_device_batch_size", "per_device_train_batch_size"),
        *("per_gpu_batch_size", "samples_per_gpu", "train_micro_batch_size_per_gpu"),
    ),
    "micro_batch": ("mbs", "micro_batch_size", "microbatch", "microbatch_size"),
    "global_batch": (
        *("effective_batch_size", "gbs", "global_batch_size", "global_train_batch_size", "total_batch_size"),
    ),
    "accumulation": (
        *("accumulation_steps", "grad_accum", "grad_accum_steps", "gradient_accumulation"),
        *("gradient_accumulation_steps",),
    ),
    "parameter_servers": ("num_ps", "ps"),
    "precision": ("dtype",),
    "layers": ("n_layer", "n_layers", "num_hidden_layers", "num_layers"),
    "hidden_size": ("d_model", "hidden_dim", "n_embd"),
    "attention_heads": ("n_head", "n_heads", "num_attention_heads", "num_heads"),
    "vocabulary_size": ("vocab_size",),
    "sequence_length": (
        *("context_length", "max_seq_len", "max_seq_length", "seq_len", "seq_length", "seqlen", "tokens_per_sample"),
    ),
    "kv_heads": ("key_value_heads", "num_key_value_heads", "num_query_groups", "query_groups"),
    "feed_forward_size": ("ffn_hidden_size", "intermediate_size"),
    "head_size": ("head_dim", "kv_channels"),
    "experts": ("num_experts", "num_local_experts"),
    "experts_per_token": ("moe_router_topk", "num_experts_per_tok", "top_k"),
    "untied_output": ("untied", "untied_embeddings"),
    "gated": ("gated_feed_forward", "glu", "swiglu"),
    "zero_stage": ("zero",),
    "tensor_parallel": ("tensor_model_parallel_size", "tensor_parallel_size", "tp"),
    "pipeline_parallel": ("pipeline_model_parallel_size", "pipeline_parallel_size", "pp"),
    "data_parallel": ("data_parallel_size", "dp"),
    "expert_parallel": ("ep", "expert_model_parallel_size", "expert_parallel_size"),
    "context_parallel": ("context_parallel_size", "cp"),
}
"""Other names of columns, as :func:`_word` writes them; a column's own name needs no entry."""

RATES: Final = "samples_per_s, images_per_s, tokens_per_s, it_per_s (= steps_per_s), step_s or ms_per_step"
_OF_ONE: Final = "is the rate of one worker: multiply it by the number of workers, and name it {0}"
_TIME: Final = "has no unit: name it step_s (seconds) or ms_per_step (milliseconds)"
_BATCH: Final = "may be the batch of one worker or of all workers: name it batch_per_worker or global_batch"
_COUNT: Final = "is a number of parameters: state their bytes as parameter_bytes (4 for each in fp32, 2 in fp16)"
AMBIGUOUS: Final = {
    **dict.fromkeys(("fps", "performance", "rate", "speed", "throughput"), f"has no unit: name it {RATES}"),
    **dict.fromkeys(("elapsed", "iteration_time", "latency", "step_time", "time", "time_per_step"), _TIME),
    **dict.fromkeys(("batch", "train_batch_size"), _BATCH),
    **{
        f"{what}_per_s_per_{one}": _OF_ONE.format(f"{what}_per_s")
        for what in ("samples", "images", "tokens")
        for one in ("gpu", "device", "worker")
    },
    **dict.fromkeys(("num_parameters", "num_params", "parameters", "params"), _COUNT),
    "tps": _OF_ONE.format("tokens_per_s") + "; if it is the rate of all workers, name it tokens_per_s",
}
"""Names that may mean several columns or none, and what to write instead."""
_UNITS: Final = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds"), "ms"),
}
_TIMES: Final = "s|ms|step|it|iter|iteration|batch"
_UNIT: Final = re.compile(rf"(?:([a-z0-9]+)_per_|_)({_TIMES}|bytes|flops|[kmgt]i?b)$")
_CLOSE: Final = 0.7
_SAME: Final = 0.8
"""How alike names must be to be proposed, and what they count: "sampels" are samples, "samples" are no steps."""


def _canonical() -> dict[str, str]:
    return {alias: name for name, aliases in ALIASES.items() for alias in aliases}


_CANONICAL: Final = _canonical()


def _word(name: str) -> str:
    """A name in the form of the list: lower case, ``_`` for what is neither letter nor digit, ``_per_`` for a slash."""
    words = re.findall(r"[a-z0-9]+", name.lower().replace("/", " per "))
    return "_".join(_UNITS.get(word, word) for word in words)


def column_named(name: str, columns: Iterable[str]) -> str | None:
    """The column that a name is; None = none. ``columns`` are those that there are."""
    word = _word(name)
    return name if name in columns else word if word in columns else _CANONICAL.get(word)


def suggest_column(name: str, columns: Iterable[str]) -> str:
    """A hint for an unknown name: a similar name with the same unit, or what to write instead."""
    word = _word(name)
    if word in AMBIGUOUS:
        return f" ({AMBIGUOUS[word]})"
    near = difflib.get_close_matches(word, (*columns, *_CANONICAL), n=5, cutoff=_CLOSE)
    column = next((_CANONICAL.get(each, each) for each in near if _alike(_unit(word), _unit(each))), None)
    if column is not None:
        return f" (did you mean {column}?)"
    is_rate = _unit(word)[1] in _TIMES.split("|") and "byte" not in word
    return f" (columns of throughput and step time are {RATES})" if is_rate else ""


def _unit(word: str) -> tuple[str, str]:
    """The counted quantity and the unit in a name, as far as the name states them."""
    match = _UNIT.search(word)
    return ("", "") if match is None else (match[1] or "", match[2])


def _alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two units are one, but for how it is spelt."""
    alike = difflib.SequenceMatcher(None, one[0], other[0]).ratio()
    return one[1] == other[1] and (one[0] == other[0] or alike > _SAME)
