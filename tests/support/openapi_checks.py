"""Checks for Schemathesis, in its own environment: streams line by line, and requests as ProtoJSON reads them."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import schemathesis
from jsonschema_rs import Draft202012Validator
from schemathesis.specs.openapi.checks import negative_data_rejection

DEADLINE_MS = "200"
"""For the method whose replies never end."""
OWN_TOKEN_ID = os.environ.get("OWN_TOKEN_ID", "")
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?|-?Infinity|NaN")


@schemathesis.hook
def before_call(_: Any, case: Any, __: dict[str, Any]) -> None:
    if case.path.endswith(":watch"):
        case.headers["Connect-Timeout-Ms"] = DEADLINE_MS
    if OWN_TOKEN_ID and case.path.endswith(":revoke"):
        # Its list has the token that all calls are made with.
        for holder in (case.path_parameters, case.body):
            if isinstance(holder, dict):
                holder.update({name: "another" for name, value in holder.items() if value == OWN_TOKEN_ID})


@schemathesis.check
def lines_conform_to_the_document(_: Any, response: Any, case: Any) -> None:
    """Each line of a stream is an object that the document describes."""
    if not response.headers.get("content-type", [""])[0].startswith("application/x-ndjson"):
        return
    document, operation = _document_of(case)
    schema = operation["responses"]["200"]["content"]["application/x-ndjson"]["schema"]
    validator = Draft202012Validator({**schema, "components": document["components"]})
    lines = response.content.splitlines()
    assert lines, "a stream without a line"
    for line in lines:
        wrong = next(validator.iter_errors(json.loads(line)), None)
        assert wrong is None, f"{wrong}: {line.decode()[:500]}"


@schemathesis.check
def wrong_requests_are_refused(ctx: Any, response: Any, case: Any) -> None:
    """A request that breaks the document is refused, unless only its spelling does, which ProtoJSON allows."""
    try:
        negative_data_rejection(ctx, response, case)
    except AssertionError:
        if not (_is_another_spelling(case) or _is_refused_within(response)):
            raise


def _is_refused_within(response: Any) -> bool:
    """Whether a batch, which is answered job by job or row by row, refuses one."""
    reply = json.loads(response.content)
    parts = [*reply.get("outcomes", []), *reply.get("rows", [])]
    return any(each.get("problem", {}).get("reason") == "INVALID_FIELD" for each in parts)


def _document_of(case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    document = case.operation.schema.raw_schema
    return document, document["paths"][case.path][case.method.lower()]


def _is_another_spelling(case: Any) -> bool:
    """Whether a request satisfies the document once its values are spelt as the document has them."""
    document, operation = _document_of(case)
    schemas = document["components"]["schemas"]

    def conforms(value: Any, schema: dict[str, Any]) -> bool:
        return bool(Draft202012Validator({**schema, "components": document["components"]}).is_valid(value))

    for parameter in operation.get("parameters", ()):
        given = case.query if parameter["in"] == "query" else case.path_parameters
        if parameter["name"] in (given or {}):
            value = _spell(given[parameter["name"]], parameter["schema"], schemas)
            if not conforms(value, parameter["schema"]):
                return False
        elif parameter.get("required"):
            return False
    if "requestBody" not in operation:
        return True
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return isinstance(case.body, dict) and conforms(_spell(case.body, schema, schemas), schema)


def _spell(value: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """A value as the document spells it.

    ProtoJSON also reads null as an absent field, names of the contract, numbers as text and as whole numbers with a
    fraction of zero, and numbers of an enum (https://protobuf.dev/programming-guides/json).
    """
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        renamed = {name if name in properties else _camel(name): each for name, each in value.items()}
        inner = schema.get("additionalProperties") or {}
        return {
            name: _spell(each, properties.get(name, inner), schemas)
            for name, each in renamed.items()
            if each is not None
        }
    if isinstance(value, list):
        return [_spell(each, schema.get("items", {}), schemas) for each in value]
    kind = schema.get("type")
    if "enum" in schema and re.fullmatch(r"-?\d+", str(value)):
        return schema["enum"][0]
    if schema.get("format") == "int64" and isinstance(value, int | float) and value == int(value):
        return str(int(value))
    if kind in ("integer", "number") and isinstance(value, str) and NUMBER.fullmatch(value):
        return float(value) if kind == "number" or not value.lstrip("-").isdigit() else int(value)
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)
