"""JSON Schemas (2020-12) of the files that commands read, from the schemas that the server publishes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from importlib import resources
from typing import Any, Final

from nodewise_cli.failures import CommandError
from nodewise_cli.inputs.model_files import HUGGING_FACE, LAYER_TABLE, SEQUENCE_LENGTH

__all__ = ["Specification", "schema_of"]


class Specification(StrEnum):
    """Files that commands read: a profile, or what the command of the same name is asked."""

    PLAN = "plan"
    PROFILE = "profile"
    SCHEDULE = "schedule"
    SHARE = "share"
    SIMULATE = "simulate"
    SPOT = "spot"
    SWEEP = "sweep"


_MESSAGES: Final = {
    Specification.PLAN: "nodewise.v1beta1.PlanRequest",
    Specification.PROFILE: "nodewise.v1.ProfileContent",
    Specification.SCHEDULE: "nodewise.v1.ScheduleRequest",
    Specification.SHARE: "nodewise.v1beta1.PredictSharingRequest",
    Specification.SPOT: "nodewise.v1beta1.EstimateCompletionRequest",
}
"""By specification, its message; the others are the command line's own."""
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_COMPONENTS: Final = "#/components/schemas/"
_UNSPECIFIED: Final = "_UNSPECIFIED"
_OF_FILES: Final[dict[str, dict[str, Any]]] = {
    "nodewise.v1.ProfileSource": {
        "table": {"type": "string", "description": "Table of measurements, relative to this file."},
        "job": {"type": "string", "description": "Job of the table."},
    },
    "nodewise.v1.Workload": {
        HUGGING_FACE: {"type": "string", "description": "config.json of a model, relative to this file."},
        SEQUENCE_LENGTH: {"type": "integer", "minimum": 1, "description": "Tokens per sample of that model."},
        LAYER_TABLE: {"type": "string", "description": "Table of layers, relative to this file."},
    },
}
"""What a file may state beside the fields of a message."""


def schema_of(specification: Specification) -> dict[str, Any]:
    """The JSON Schema of a specification.

    Raises
    ------
    CommandError
        Where the server, which has the schemas of messages, is not installed.
    """
    root = _MESSAGES.get(specification)
    if root is None:
        from nodewise_cli.inputs.simulation_spec import SimulationSpec, SweepSpec

        kind = SweepSpec if specification is Specification.SWEEP else SimulationSpec
        return {"$schema": _DIALECT} | kind.model_json_schema()
    components = _components()
    pending, definitions = [root], {}
    while pending:
        message = pending.pop()
        if message not in definitions:
            definitions[message] = _of_message(message, components[message])
            pending += _messages_in(components[message])
    return {"$schema": _DIALECT, "$ref": f"#/$defs/{root}", "$defs": dict(sorted(definitions.items()))}


def _components() -> dict[str, Any]:
    try:
        file = resources.files("nodewise") / "rpc" / "http" / "openapi.json"
    except ModuleNotFoundError:
        raise CommandError("the server is not installed, which has the schemas: pip install nodewise") from None
    components: dict[str, Any] = json.loads(file.read_bytes())["components"]["schemas"]
    return components


def _messages_in(schema: Any) -> Iterator[str]:
    """Messages that a schema names."""
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(_COMPONENTS)
        schema = schema.values()
    if not isinstance(schema, str | int | float | None):
        for each in schema:
            yield from _messages_in(each)


def _of_message(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A message as a file may state it: names in either spelling, and files instead of their content."""
    properties = {key: _of_field(field) for key, field in schema.get("properties", {}).items()}
    for key in tuple(properties):
        properties.setdefault(_snake(key), {"$ref": f"#/$defs/{name}/properties/{key}"})
    needed = [{"anyOf": [{"required": [key]}, {"required": [_snake(key)]}]} for key in schema.get("required", ())]
    whole = {key: part for key, part in schema.items() if key != "required"} | ({"allOf": needed} if needed else {})
    return whole | {"properties": properties | _OF_FILES.get(name, {})}


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def _of_field(schema: dict[str, Any]) -> dict[str, Any]:
    """A field as a file may state it: enums as words, large numbers as numbers."""
    if reference := schema.get("$ref"):
        return schema | {"$ref": f"#/$defs/{reference.removeprefix(_COMPONENTS)}"}
    if "enum" in schema:
        prefix = schema["enum"][0].removesuffix(_UNSPECIFIED)
        words = [name.removeprefix(f"{prefix}_").lower() for name in schema["enum"][1:]]
        return schema | {"enum": [*words, *schema["enum"]]}
    if schema.get("format") == "int64":
        return schema | {"type": ["integer", "string"]}
    nested = {
        key: _of_field(schema[key]) for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)
    }
    return schema | nested
