"""Files of other projects, recognised by their content and refused with the project's name and an alternative."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from nodewise_cli.failures import InputError

__all__ = ["refuse_foreign", "refuse_model"]

MOST_CHARACTERS: Final = 1 << 20
"""Configurations of people are smaller; more is not looked at."""
_SETTING: Final = re.compile(
    r"""(?:^|(?<=[\s{,;\[("'=\\]))(?:--|["'])?(?P<key>[A-Za-z_][\w.-]*)["']?"""
    r"""(?:\s*[:=][ \t]*|[ \t]+(?=[^\s-]))(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s,;{}\[\]"'#\\]*)""",
    re.MULTILINE,
)
"""A key and its value as JSON, YAML, TOML and a command line write them."""
_COMMENT: Final = re.compile(r"(?:^|\s)(?:#|//).*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"(?<!\S)--([a-z][a-z0-9-]+)")
_SECTION: Final = re.compile(r"^\s*\[([\w.]+)\]\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Project:
    """Signature of a project's files: at least ``least`` of its keys."""

    what: str
    keys: frozenset[str]
    least: int = 2


_MEGATRON: Final = _Project(
    "holds arguments of Megatron-LM",
    frozenset(
        {
            *("num_layers", "hidden_size", "num_attention_heads", "seq_length", "ffn_hidden_size"),
            *("tensor_model_parallel_size", "pipeline_model_parallel_size", "micro_batch_size", "global_batch_size"),
            *("context_parallel_size", "expert_model_parallel_size", "sequence_parallel", "use_distributed_optimizer"),
            *("recompute_granularity", "train_iters", "transformer_impl"),
        }
    ),
)
_TORCHTITAN: Final = _Project(
    "is a torchtitan configuration",
    frozenset({"model", "training", "parallelism", "activation_checkpoint", "job", "experimental", "checkpoint"}),
)
_BY_KEYS: Final = (
    _Project(
        "is an llm-foundry configuration (MPT)",
        frozenset(
            {
                *("device_train_microbatch_size", "global_train_batch_size", "device_eval_batch_size", "max_seq_len"),
                *("train_loader", "fsdp_config", "max_duration", "d_model", "expansion_ratio"),
            }
        ),
    ),
    _Project(
        "is an Accelerate configuration",
        frozenset({"compute_environment", "distributed_type", "num_processes", "num_machines", "machine_rank"}),
    ),
    _Project(
        "is a NeMo configuration",
        frozenset(
            {"tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size"}
        ),
        1,
    ),
    _Project(
        "is a GPT-NeoX configuration", frozenset({"pipe_parallel_size", "model_parallel_size", "num_gpus_per_node"}), 1
    ),
    _Project(
        "is a DeepSpeed configuration",
        frozenset(
            {
                *("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "fp16", "bf16"),
                *("gradient_accumulation_steps", "gradient_clipping", "steps_per_print", "wall_clock_breakdown"),
                *("zero_allow_untested_optimizer", "activation_checkpointing", "flops_profiler"),
            }
        ),
    ),
)
_STRONG: Final = frozenset({"zero_optimization", "train_micro_batch_size_per_gpu"})
"""Keys that only DeepSpeed and projects based on it have: one is enough."""
_MODEL_TYPE: Final = re.compile(r'"model_type"\s*:')

_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "--sequence-length": ("seq_length", "seq_len", "max_seq_len"),
    "--global-batch": ("global_batch_size", "global_train_batch_size", "train_batch_size"),
    "--micro-batch": (
        *("train_micro_batch_size_per_gpu", "micro_batch_size", "device_train_microbatch_size"),
        *("local_batch_size", "batch_size"),
    ),
    "--accumulation": ("gradient_accumulation_steps",),
    "--tensor-parallel": ("tensor_model_parallel_size", "tensor_parallel_degree", "model_parallel_size"),
    "--pipeline-parallel": ("pipeline_model_parallel_size", "pipeline_parallel_degree", "pipe_parallel_size"),
    "--zero-stage": ("zero_stage",),
}
"""What the options of a question are called there; each takes a whole number of at least 1."""
_WORDS: Final[Mapping[str, str]] = {
    "--sequence-length": "a sequence of {}",
    "--global-batch": "a global batch of {}",
    "--micro-batch": "a micro-batch of {}",
    "--accumulation": "accumulation over {} micro-batches",
    "--tensor-parallel": "tensor parallelism of {}",
    "--pipeline-parallel": "pipeline parallelism of {}",
    "--zero-stage": "ZeRO stage {}",
    "--precision": "a precision of {}",
}
_ZERO_STAGE: Final = re.compile(r"""zero_optimization["']?\s*[:=].{0,2000}?\bstage["']?\s*[:=]\s*(\d)""", re.DOTALL)

_OPTIMIZER: Final = re.compile(
    r"""\boptimizer["']?(?:\s*[:=]\s*\{|\s*:\s*\n|\]\s*\n)[^{}\[\]]{0,500}?\b(?:type|name)["']?\s*[:=]\s*["']?(\w+)"""
    r"""|(?:--|^\s*)optimizer(?:[ \t]+|\s*[:=][ \t]*)["']?([a-z]\w*)""",
    re.IGNORECASE | re.MULTILINE,
)
"""As an object with a type (DeepSpeed, NeoX, llm-foundry), a section with a name (torchtitan), or an argument."""
_SCHEDULES: Final = {
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "interleaved1f1b": "1f1b",
    "zbvzerobubble": "zero-bubble",
    "interleavedzerobubble": "zero-bubble",
    "dualpipev": "dualpipe",
}
"""The contract's words for the schedules of torchtitan."""

_PRECISION: Final = re.compile(
    r"""--(?P<argument>bf16|fp16)\b|precision["']?\s*[:=]\s*["']?(?:amp_)?(?P<value>bf16|fp16)\b"""
    r"""|\b(?P<section>bf16|fp16)["']?\s*[:=]\s*\{[^{}]{0,500}?enabled["']?\s*[:=]\s*true""",
    re.IGNORECASE,
)


def refuse_model(path: Path) -> NoReturn:
    """Refuse a model's `config.json` where another file is wanted. Raises InputError."""
    raise InputError(f"{path}: is a model's config.json; only `nodewise predict` and `nodewise plan` read it")


def refuse_foreign(path: Path, text: str, keys: Collection[str] | None = None) -> None:
    """Raise InputError if a file belongs to a known project or a model.

    Parameters
    ----------
    text : str
        What the file holds. It is compared by likeness: without ``keys`` only what no command takes should come here.
    keys : collection of str, optional
        The keys of the object that the file holds: then these alone tell whose it is.
    """
    text = text[:MOST_CHARACTERS]
    if keys is None and text.lstrip().startswith("{") and _MODEL_TYPE.search(text):
        refuse_model(path)
    text = _COMMENT.sub("", text)
    settings = _settings(text)
    if keys is None:
        what = _project_of_text(text) or _project_of_keys(settings.keys())
    else:
        what = _project_of_keys({key.lower().replace("-", "_") for key in keys})
    if what is None:
        return
    options_of_file = _options_of(text, settings)
    # Names say themselves what they are: they stand among the options alone.
    words = [_WORDS[option].format(value) for option, value in options_of_file.items() if option in _WORDS]
    summary = f" It states {_join_words(words)}:" if words else ""
    options = " ".join(f"{option} {value}" for option, value in options_of_file.items())
    give = "give the model's config.json to `nodewise predict` or `nodewise plan`"
    raise InputError(
        f"{path}: {what}, which Nodewise cannot read yet.{summary} "
        f"{give if summary else give.capitalize()}{f', and state {options}' if options else ''}"
    )


def _settings(text: str) -> dict[str, str]:
    """Keys with their first values, at whatever depth; a hyphen is an underscore."""
    settings: dict[str, str] = {}
    for match in _SETTING.finditer(text):
        settings.setdefault(match["key"].lower().replace("-", "_"), match["value"].strip("\"'"))
    return settings


def _project_of_text(text: str) -> str | None:
    arguments = {name.replace("-", "_") for name in _ARGUMENT.findall(text)}
    if len(arguments & _MEGATRON.keys) >= _MEGATRON.least:
        return _MEGATRON.what
    sections = {name.partition(".")[0] for name in _SECTION.findall(text)}
    return _TORCHTITAN.what if len(sections & _TORCHTITAN.keys) >= _TORCHTITAN.least else None


def _project_of_keys(keys: Collection[str]) -> str | None:
    distinct_keys = frozenset(keys)
    for project in _BY_KEYS:
        if len(distinct_keys & project.keys) >= project.least:
            return project.what
    return _BY_KEYS[-1].what if distinct_keys & _STRONG else None


def _options_of(text: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The options that correspond to the settings in the file, with their values."""
    options_of_file = {}
    for option, names in _OPTIONS.items():
        values = (settings[name] for name in names if name in settings)
        value = next((value.replace("_", "") for value in values if re.fullmatch(r"[1-9][\d_]{0,8}", value)), None)
        if value is not None and (option, value) != ("--accumulation", "1"):
            options_of_file[option] = value
    zero = _ZERO_STAGE.search(text)
    if zero is not None:
        options_of_file["--zero-stage"] = zero[1]
    precision = _PRECISION.search(text)
    if precision is not None:
        options_of_file["--precision"] = next(filter(None, precision.groups())).lower()
    optimizer = _OPTIMIZER.search(text)
    if optimizer is not None:
        options_of_file["--optimizer"] = next(filter(None, optimizer.groups())).lower()
    schedule = _SCHEDULES.get(settings.get("pipeline_parallel_schedule", "").lower())
    if schedule is not None:
        options_of_file["--pipeline-schedule"] = schedule
    return options_of_file


def _join_words(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
