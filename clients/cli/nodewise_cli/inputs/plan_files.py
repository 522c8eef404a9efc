"""Inputs of `nodewise plan`: a specification, or a model's `config.json` with a cluster and a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from google.protobuf.descriptor import Descriptor
from typer import Option

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.documents import DocumentReader, read_document
from nodewise_cli.inputs.model_files import workload_of_model
from nodewise_cli.inputs.training import Training
from nodewise_client import PlanConstraints, PlanRequest, ProfileContent
from nodewise_values.wire import to_json, to_message

__all__ = ["OfModel", "read_plan"]

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


def read_plan(path: Path, options: OfModel) -> PlanRequest:
    """The request of a specification, or of a model's `config.json` and the options for it.

    Raises
    ------
    InputError
        Naming the file, the place or the option, and what would be right.
    """
    document = read_document(path)
    reader = DocumentReader(path)
    if "model_type" in document or "architectures" in document:
        return reader.value(_of_model(path, document, options), PlanRequest)
    for option, value in {
        "--cluster": options.cluster,
        "--batch": options.batch,
        "--sequence": options.sequence_length,
        "--precision": options.precision,
        **{f"--{name.replace('_', '-')}": value for name, value in options.values.items()},
    }.items():
        if value is not None:
            raise InputError(f"{option}: needs the config.json of a model, but {path} is a specification")
    constraints = document.get("constraints")
    if isinstance(constraints, dict):
        document |= {"constraints": _with_counts(constraints, to_message(PlanConstraints()).DESCRIPTOR)}
    return reader.value(document, PlanRequest)


def _of_model(path: Path, document: dict[str, Any], options: OfModel) -> dict[str, Any]:
    missing = [
        *([] if options.cluster else ["--cluster DEVICE=NODESxDEVICES (such as H100=4x8: 4 nodes of 8 H100)"]),
        *([] if options.batch else ["--batch SAMPLES (in a step, over all devices)"]),
    ]
    if missing:
        example = f"nodewise plan {path} --cluster {options.cluster or 'H100=4x8'} --batch {options.batch or 512}"
        raise InputError(
            f"{path}: is a model's config.json, which also needs {' and '.join(missing)}; for example `{example}`"
        )
    workload = options.of(workload_of_model(path, document, options.sequence_length))
    content = to_json(ProfileContent(workload=workload))
    if options.precision is not None:
        content["workload"]["precision"] = options.precision
    pools = _pools(options.cluster or "")
    return {
        "profile": {"content": content},
        "constraints": {"pools": pools, "global_batch_samples": {"values": [options.batch]}},
    }


def _pools(cluster: str) -> list[dict[str, Any]]:
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


def _with_counts(values: Mapping[str, Any], kind: Descriptor) -> dict[str, Any]:
    """An object whose lists and sets of numbers are written in any way: 8, [8, 16], {"values": [8, 16]}."""
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
