"""Inputs of `nodewise plan`: a specification, or a model's `config.json` with a cluster and a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

from google.protobuf.descriptor import Descriptor
from typer import Option

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.documents import DocumentReader, read_document
from nodewise_cli.inputs.model_files import workload_of_model
from nodewise_cli.inputs.training import Training
from nodewise_client import PlanConstraints, PlanRequest, ProfileContent, Workload, counts
from nodewise_client.frameworks import Layout, LayoutFileError, StatedLayout, facts, plan_constraints, read_layout
from nodewise_values.wire import to_json, to_message

__all__ = ["OfModel", "Question", "pools_of", "read_plan", "with_counts"]

_CLUSTER: Final = re.compile(r"(?P<device>[^=,]+)=(?P<nodes>[1-9]\d{0,5})x(?P<devices>[1-9]\d{0,5})")
EVERY_COUNT_TO: Final = 16
"""Up to this size every number of nodes is tried; of a larger cluster, powers of two and all its nodes."""
_COUNTS: Final = "nodewise.v1beta1.CountSet"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfModel(Training):
    """Options for what a model's `config.json` does not state."""

    cluster: Annotated[
        str | None,
        Option(
            metavar="DEVICE=NODESxDEVICES,...",
            help="config.json: available nodes, such as H100=4x8 for 4 nodes of 8 H100.",
        ),
    ] = None
    batch: Annotated[
        int | None, Option("--batch", "--global-batch", min=1, help="config.json: samples in a step, over all devices.")
    ] = None
    sequence_length: Annotated[
        int | None,
        Option(
            "--sequence",
            "--sequence-length",
            metavar="TOKENS",
            min=1,
            help="config.json: tokens per sample. Default: the longest that the model supports.",
        ),
    ] = None
    precision: Annotated[
        str | None, Option(help="config.json: number format, such as bf16. Default: the one in the file.")
    ] = None
    tokens: Annotated[
        float | None, Option(min=1, help="config.json: tokens to train on, such as 15e12, for the time that they take.")
    ] = None
    layout_file: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="config.json: also predict the layout in ds_config.json (DeepSpeed), FILE.toml (torchtitan), "
            "FILE.yaml (Accelerate, NeMo, GPT-NeoX), or a script with the arguments of Megatron-LM.",
        ),
    ] = None
    micro_batch: Annotated[
        int | None, Option(min=1, help="--from: samples that a replica processes at once, if the file does not say.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: a search, and maybe what a layout would do."""

    request: PlanRequest
    workload: Workload | None
    """None = that of a stored profile."""
    layout: Layout | None = None
    """Of the file that `--from` names."""
    stated: StatedLayout | None = None


def read_plan(path: Path, options: OfModel, flags: str | None = None) -> Question:
    """The request of a specification, or of a model's `config.json` and the options for it.

    Parameters
    ----------
    flags : str or None
        The framework to generate settings for: layouts that it never expresses are not searched, unless the
        specification states them.

    Raises
    ------
    InputError
        Naming the file, the place or the option, and what would be right.
    """
    document = read_document(path)
    reader = DocumentReader(path)
    if "model_type" in document or "architectures" in document:
        question = _of_model(path, document, options, flags, reader)
        return replace(question, request=_restrict(question.request, flags))
    for option, value in {
        "--cluster": options.cluster,
        "--batch": options.batch,
        "--sequence": options.sequence_length,
        "--precision": options.precision,
        "--tokens": options.tokens,
        "--from": options.layout_file,
        "--micro-batch": options.micro_batch,
        **{f"--{name.replace('_', '-')}": value for name, value in options.values.items()},
    }.items():
        if value is not None:
            raise InputError(f"{option}: needs the config.json of a model, but {path} is a specification")
    constraints = document.get("constraints")
    if isinstance(constraints, dict):
        document |= {"constraints": with_counts(constraints)}
    request = _restrict(reader.value(document, PlanRequest), flags)
    content = request.profile.content if request.profile is not None else None
    return Question(request=request, workload=None if content is None else content.workload)


def _restrict(request: PlanRequest, flags: str | None) -> PlanRequest:
    """The request without layouts that a framework never expresses."""
    if flags is None:
        return request
    constraints = request.constraints or PlanConstraints()
    values: dict[str, Any] = {
        name: counts(allowed) if name.endswith("_degrees") else allowed
        for name, allowed in plan_constraints(flags).items()
        if getattr(constraints, name) in ((), None)
    }
    return replace(request, constraints=replace(constraints, **values))


def _of_model(
    path: Path, document: dict[str, Any], options: OfModel, flags: str | None, reader: DocumentReader
) -> Question:
    stated = _read_layout_file(options)
    missing = [
        *([] if options.cluster else ["--cluster DEVICE=NODESxDEVICES (such as H100=4x8: 4 nodes of 8 H100)"]),
        *([] if options.batch or stated else ["--batch SAMPLES (in a step, over all devices)"]),
    ]
    if missing:
        example = f"nodewise plan {path} --cluster {options.cluster or 'H100=4x8'} --batch {options.batch or 512}"
        raise InputError(
            f"{path}: is a model's config.json, which also needs {' and '.join(missing)}; for example `{example}`"
        )
    length = options.sequence_length or (stated.values.get("sequence_length") if stated else None)
    workload = workload_of_model(path, document, length)
    pools = pools_of(options.cluster or "")
    layout, batch = None, options.batch
    framework = stated.framework if stated else flags
    if framework is not None:
        workload = replace(workload, **facts(framework))
    if stated is not None:
        workload = stated.workload(workload)
        if length:
            assert workload.transformer is not None
            workload = replace(workload, transformer=replace(workload.transformer, sequence_length_tokens=length))
    workload = options.of(workload) or workload
    precision = options.precision or (stated.values.get("precision") if stated else None)
    if precision:
        workload = replace(workload, precision=precision)
    if stated is not None:
        layout = _layout(stated, workload, pools[0], options)
        workload, batch = layout.workload, batch or layout.global_batch
    document = {
        "profile": {"content": to_json(ProfileContent(workload=workload))},
        "constraints": {"pools": pools, "global_batch_samples": {"values": [batch]}},
    }
    if options.tokens is not None:
        if workload.transformer is None:
            raise InputError(f"--tokens: needs a model whose samples are tokens, which {path} is not")
        document["work"] = {"samples": options.tokens / workload.transformer.sequence_length_tokens}
    return Question(request=reader.value(document, PlanRequest), workload=workload, layout=layout, stated=stated)


def _read_layout_file(options: OfModel) -> StatedLayout | None:
    """What the file of a framework states."""
    if options.layout_file is None:
        if options.micro_batch is not None:
            raise InputError("--micro-batch: needs --from; a plan tries every micro-batch")
        return None
    try:
        return read_layout(options.layout_file)
    except LayoutFileError as error:
        raise InputError(f"--from: {error}") from None


def _layout(stated: StatedLayout, workload: Workload, pool: Mapping[str, Any], options: OfModel) -> Layout:
    """The layout of a file on the first pool."""
    try:
        layout = stated.layout(
            workload,
            max(pool["nodes"]["values"]),
            pool["workers_per_node"],
            micro_batch=options.micro_batch,
            global_batch=options.batch,
        )
    except LayoutFileError as error:
        options_of_fields = {"micro_batch": "--micro-batch", "global_batch": "--batch"}
        instead = " or ".join(options_of_fields[name] for name in error.missing)
        raise InputError(f"--from: {error}{f' (or give {instead})' if instead else ''}") from None
    return layout if options.precision is None else replace(layout, precision=options.precision)


def pools_of(cluster: str) -> list[dict[str, Any]]:
    """The pools of ``H100=4x8,A100-80GB=16x8``."""
    pools = []
    for part in cluster.split(","):
        match = _CLUSTER.fullmatch(part.strip())
        if match is None:
            raise InputError(
                f"--cluster: must be DEVICE=NODESxDEVICES, several separated by commas, such as H100=4x8 for 4 nodes "
                f"of 8 H100, found {part!r}"
            )
        last = int(match["nodes"])
        counts = {last} | {count for count in range(1, last) if last <= EVERY_COUNT_TO or not count & (count - 1)}
        pools.append(
            {
                "device_name": match["device"].strip(),
                "nodes": {"values": sorted(counts)},
                "workers_per_node": int(match["devices"]),
            }
        )
    return pools


def with_counts(constraints: Mapping[str, Any]) -> dict[str, Any]:
    """Constraints whose lists and sets of numbers are written in any way: 8, [8, 16], {"values": [8, 16]}."""
    return _with_counts(constraints, to_message(PlanConstraints()).DESCRIPTOR)


def _with_counts(values: Mapping[str, Any], kind: Descriptor) -> dict[str, Any]:
    fields = {name: field for field in kind.fields for name in (field.name, field.json_name)}
    result: dict[str, Any] = {}
    for name, value in values.items():
        field = fields.get(name)
        below = None if field is None else field.message_type
        if field is None or value is None:
            result[name] = value
        elif below is not None and below.full_name == _COUNTS:
            result[name] = _count_set(value)
        elif field.is_repeated:
            entries = value["values"] if isinstance(value, dict) and set(value) == {"values"} else value
            entries = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else [entries]
            result[name] = [
                each if below is None or not isinstance(each, dict) else _with_counts(each, below) for each in entries
            ]
        else:
            result[name] = value
    return result


def _count_set(value: Any) -> Any:
    if isinstance(value, list):
        return {"values": value}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"values": [value]}
    if isinstance(value, dict):
        if "first" in value:
            return {"ranges": [value]}
        return value | {name: [entry] for name, entry in value.items() if isinstance(entry, int | dict)}
    return value
