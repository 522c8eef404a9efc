"""Write the OpenAPI 3.1 document of what REST offers, from the contract's descriptors, comments and facts, or check it.

The server ships the document as a file: ``python tools/openapi_document.py [--check]``. Examples are requests of the
conformance scenarios (``clients/conformance/scenarios``), which every client sends.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any, Final, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from nodewise.rpc.http.rest import NDJSON, Route, routes_of
from nodewise.rpc.services import METHODS
from nodewise_conformance.contract import message_of
from nodewise_conformance.scenarios import Scenario, filled_in, read_scenarios
from nodewise_values.fact import Fact
from nodewise_values.facts import BY_MESSAGE

FILE: Final = Path(__file__).resolve().parent.parent / "server" / "nodewise" / "rpc" / "http" / "openapi.json"
_FIELD: Final = FieldDescriptor
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_JSON: Final = "application/json"
_ERROR: Final = "google.rpc.Error"
_VARIABLES: Final = {name for route in routes_of(METHODS) for name in route.template.variables}
_ID: Final = "^[A-Za-z0-9]([A-Za-z0-9._~/-]{0,126}[A-Za-z0-9])?$"
"""Names that callers choose: of profiles, and of requests and sessions that may be sent again."""
_CREATED: Final = {
    "AppendProfile": ("profile_id", "$request.path.profile_id"),
    "CreateToken": ("token_id", "$response.body#/token/tokenId"),
}
"""Methods whose reply leads to operations: the variable of their paths, and where its value is."""
PLACES: Final = {"run": "team-a", "token_id": "ci", "etag": "*"}
"""Names in examples, by the names in scenarios that each run of the conformance fills in."""
_FURTHER_EXAMPLES: Final[Mapping[str, dict[str, Any]]] = {
    "Reload": {"generation": 2},
    "SetCanary": {"generation": 2, "share": 0.1},
    "SetPrior": {"namespace": "team-a", "action": "PRIOR_ACTION_PIN"},
}
"""Requests of methods without a scenario of their name; the others need no field."""
_ERRORS: Final = {
    "type": "object",
    "description": "Why a call failed, as AIP-193 has it.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "status"],
            "properties": {
                "code": {"type": "integer", "description": "The status of HTTP."},
                "message": {"type": "string", "description": "What is wrong, and what would be right."},
                "status": {"type": "string", "description": "Name of the google.rpc.Code, such as INVALID_ARGUMENT."},
                "details": {
                    "type": "array",
                    "description": "google.rpc.ErrorInfo with the reason; BadRequest, RetryInfo, QuotaFailure.",
                    "items": {
                        "type": "object",
                        "required": ["@type"],
                        "properties": {"@type": {"type": "string"}},
                    },
                },
            },
        }
    },
}
_TOLD: Final = (
    "The same calls as over gRPC. Fields are written in lowerCamelCase and read in either spelling; what is absent is "
    "unset. A path's profile id may have slashes. Every method is also offered by the Connect protocol, as POST of "
    "/package.Service/Method. A header Connect-Timeout-Ms states a call's time, x-request-id names it."
)


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The document of routes."""
    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    tags: dict[str, str] = {}
    for name, route in operation_ids(routes):
        service = route.method.containing_service
        tags.setdefault(service.name, _text(inspect.getdoc(_servicer(route.method))))
        paths.setdefault(_path(route), {})[route.verb.lower()] = _operation(route, name, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Nodewise", "version": version("nodewise"), "description": _TOLD},
        "tags": [{"name": name, "description": text} for name, text in tags.items()],
        "paths": paths,
        "components": {
            "schemas": schemas.all(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"bearer": []}],
    }


def _path(route: Route) -> str:
    text = route.template.text
    for variable in route.template.variables:
        for pattern in ("=**", "=*", ""):
            text = text.replace(f"{{{variable}{pattern}}}", f"{{{variable.rpartition('.')[2]}}}")
    return text


def _operation(route: Route, name: str, schemas: _Schemas) -> dict[str, Any]:
    method = route.method
    told = _text(inspect.getdoc(getattr(_servicer(method), method.name)))
    reply = schemas.named(method.output_type, asked=False)
    answered = {_JSON: {"schema": reply}}
    if method.server_streaming:
        line = {"type": "object", "required": ["result"], "properties": {"result": reply}}
        answered = {NDJSON: {"schema": {"oneOf": [line, {"$ref": f"#/components/schemas/{_ERROR}"}]}}}
        told += '\n\nAnswered by a stream: an object a line, {"result": ...}, and {"error": ...} last where it fails.'
    operation: dict[str, Any] = {
        "operationId": name,
        "tags": [method.containing_service.name],
        "summary": told.partition(". ")[0].partition("\n")[0],
        "description": told,
        "responses": {
            "200": {"description": _text(_doc(method.output_type)) or "The reply.", "content": answered},
            "default": {
                "description": "Why the call failed.",
                "content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{_ERROR}"}}},
            },
        },
    }
    if method.name in _CREATED:
        operation["responses"]["200"]["links"] = _links(*_CREATED[method.name])
    example = example_of(route)
    parameters = [*_in_path(route, schemas, example), *([] if route.whole_body else _in_query(route, schemas, example))]
    if parameters:
        operation["parameters"] = parameters
    if route.whole_body:
        content = {_JSON: {"schema": schemas.named(method.input_type, asked=True), "example": example}}
        # Without a body all fields are unset, which is a request where none of them is what the call is about.
        is_needed = any(each.is_repeated or each.message_type is not None for each in method.input_type.fields)
        operation["requestBody"] = {"required": is_needed, "content": content}
    return operation


def scenario_of(method: MethodDescriptor) -> Scenario | None:
    """The conformance scenario of the method's name."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", method.name).lower()
    return next((each for each in _scenarios() if each.name == name), None)


@cache
def _scenarios() -> tuple[Scenario, ...]:
    return read_scenarios()


def example_of(route: Route) -> dict[str, Any]:
    """A request of the method, as JSON."""
    scenario = scenario_of(route.method)
    content = _FURTHER_EXAMPLES.get(route.method.name, {}) if scenario is None else scenario.call["requests"][0]
    message = message_of(route.method.input_type, filled_in(content, PLACES))
    request: dict[str, Any] = json_format.MessageToDict(message)
    if "profile.profile_id" in route.template.variables:
        request["profile"] = {"profileId": f"{PLACES['run']}/a"}
    return request


def _links(variable: str, value: str) -> dict[str, Any]:
    """The operations on what a call created, by the variable of their paths."""
    return {
        name: {"operationId": name, "parameters": {variable: value}}
        for name, route in operation_ids(routes_of(METHODS))
        if any(each.rpartition(".")[2] == variable for each in route.template.variables)
    }


def operation_ids(routes: Iterable[Route]) -> Iterable[tuple[str, Route]]:
    """Routes with the names of their operations."""
    seen: set[str] = set()
    for route in routes:
        name = f"{route.method.containing_service.name}_{route.method.name}"
        while name in seen:
            name += "_"
        seen.add(name)
        yield name, route


def _in_path(route: Route, schemas: _Schemas, example: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Parameters of the path; what the example has of them is taken out of it."""
    for variable in route.template.variables:
        message = route.method.input_type
        *above, last = variable.split(".")
        holder = example
        for name in above:
            message = cast("Descriptor", message.fields_by_name[name].message_type)
            holder = example.pop(name)
        schema = schemas.field(message.fields_by_name[last], asked=True)
        yield {
            "name": last,
            "in": "path",
            "required": True,
            "description": schema.pop("description", ""),
            "schema": schema | {"minLength": 1} | ({"pattern": _ID} if last == "profile_id" else {}),
            "example": holder.pop(message.fields_by_name[last].json_name),
        }


def _in_query(route: Route, schemas: _Schemas, example: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for field in route.method.input_type.fields:
        if field.name in route.template.variables:
            continue
        if field.message_type is not None and field.message_type.full_name != _TIMESTAMP:
            continue
        schema = schemas.field(field, asked=True)
        told = schema.pop("description", "")
        parameter = {"name": field.json_name, "in": "query", "description": told, "schema": schema}
        if field.json_name in example:
            parameter["example"] = example[field.json_name]
        yield parameter | ({"required": True} if _is_required(field) else {})


class _Schemas:
    """Schemas of messages, as far as they are asked for."""

    def __init__(self) -> None:
        self._asked: dict[str, Descriptor] = {}
        self._answered: dict[str, Descriptor] = {}

    def named(self, message: Descriptor, *, asked: bool) -> dict[str, Any]:
        """A reference to the schema of a message of requests, or of replies."""
        held = self._asked if asked else self._answered
        if message.full_name not in held:
            held[message.full_name] = message
            for field in message.fields:
                self.field(field, asked=asked)
        return {"$ref": f"#/components/schemas/{message.full_name}"}

    def all(self) -> dict[str, Any]:
        """Every schema that is referred to."""
        found = {name: self._message(each, asked=name in self._asked) for name, each in self._every()}
        return dict(sorted((found | {_ERROR: _ERRORS}).items()))

    def _every(self) -> Iterable[tuple[str, Descriptor]]:
        return list((self._answered | self._asked).items())

    def _message(self, message: Descriptor, *, asked: bool) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "description": _text(_doc(message))}
        if message.fields:
            schema["properties"] = {each.json_name: self.field(each, asked=asked) for each in message.fields}
        if asked:  # a name that is not known is refused
            schema |= {"additionalProperties": False} | _presence(message)
        return schema

    def field(self, field: FieldDescriptor, *, asked: bool) -> dict[str, Any]:
        """The schema of what a field holds."""
        told = _meaning(field)
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            schema: dict[str, Any] = {
                "type": "object",
                "additionalProperties": self._one(inner.fields_by_name["value"], asked=asked),
            }
        else:
            schema = self._one(field, asked=asked) | (_bounds(field) if asked else {})
            if field.is_repeated:
                schema = {"type": "array", "items": schema}
        return schema | ({"description": told} if told else {})

    def _one(self, field: FieldDescriptor, *, asked: bool) -> dict[str, Any]:
        if field.message_type is not None:
            if field.message_type.full_name == _TIMESTAMP:
                return {"type": "string", "format": "date-time"}
            return self.named(field.message_type, asked=asked)
        if field.enum_type is not None:
            return {"type": "string", "enum": [each.name for each in field.enum_type.values]}
        if field.type in (_FIELD.TYPE_INT64, _FIELD.TYPE_UINT64):  # ProtoJSON writes them as text
            return {"type": "string", "format": "int64", "pattern": "^-?[0-9]+$", "maxLength": 20}
        if field.type in (_FIELD.TYPE_INT32, _FIELD.TYPE_UINT32):
            return {"type": "integer", "format": "int32", "minimum": -(1 << 31), "maximum": (1 << 31) - 1}
        if field.type == _FIELD.TYPE_DOUBLE:
            return {"type": "number", "format": "double"}
        if field.type == _FIELD.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        if field.type == _FIELD.TYPE_BOOL:
            return {"type": "boolean"}
        return {"type": "string"} | ({"pattern": _ID} if asked and field.name in ("request_id", "session_id") else {})


def _presence(message: Descriptor) -> dict[str, Any]:
    """Which fields must be present, and which not together, because they are of one oneof."""
    required = [each.json_name for each in message.fields if _is_required(each)]
    pairs = [
        {"required": [one.json_name, other.json_name]}
        for group in message.oneofs
        for one, other in combinations(group.fields, 2)
    ]
    return ({"required": required} if required else {}) | ({"not": {"anyOf": pairs}} if pairs else {})


def _is_required(field: FieldDescriptor) -> bool:
    """Whether a request without the field is refused; a column's rows and a path's variable are checked elsewhere."""
    fact = _fact(field)
    return fact is not None and fact.required and not field.is_repeated and field.name not in _VARIABLES


def _bounds(field: FieldDescriptor) -> dict[str, Any]:
    """Bounds of a value in a request. Zero stands for an absent value in a column, and where presence is not seen."""
    fact = _fact(field)
    if fact is None:
        return {}
    if field.type == _FIELD.TYPE_STRING:
        return {} if fact.maximum_length is None else {"maxLength": fact.maximum_length}
    if field.type not in (_FIELD.TYPE_INT32, _FIELD.TYPE_UINT32, _FIELD.TYPE_DOUBLE):
        return {}
    bounds: dict[str, Any] = {} if fact.maximum is None else {"maximum": fact.maximum}
    if fact.minimum is not None:
        if field.has_presence or _is_required(field):
            bounds["exclusiveMinimum" if fact.exclusive_minimum else "minimum"] = fact.minimum
        else:
            bounds["minimum"] = min(fact.minimum, 0)
    return bounds


def _fact(field: FieldDescriptor) -> Fact | None:
    message = cast("Descriptor", field.containing_type)
    return BY_MESSAGE.get(message.full_name, {}).get(field.name)


def _meaning(field: FieldDescriptor) -> str:
    """What a field says, in the contract's words, with its unit."""
    message = cast("Descriptor", field.containing_type)
    fact = _fact(field)
    told = _attributes(message).get(field.name, "") or (fact.meaning if fact is not None else "")
    return f"{told} Unit: {fact.unit}." if fact is not None and fact.unit else told


@cache
def _values_of(path: str) -> Any:
    """The module of the contract's values that belongs to a file of the contract."""
    return import_module(path.removesuffix(".proto").replace("/", ".").replace("nodewise.", "nodewise_values.", 1))


@cache
def _classes(path: str) -> Mapping[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(_values_of(path)))
    return {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}


def _doc(message: Descriptor) -> str:
    found = _classes(message.file.name).get(message.name)
    return (ast.get_docstring(found) or "") if found is not None else ""


@cache
def _attributes(message: Descriptor) -> Mapping[str, str]:
    """What the values' attributes are said to mean."""
    found = _classes(message.file.name).get(message.name)
    told: dict[str, str] = {}
    name = ""
    for each in found.body if found is not None else ():
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            name = each.target.id
        elif name and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            told[name] = _text(inspect.cleandoc(str(each.value.value)))
            name = ""
    return told


def _servicer(method: MethodDescriptor) -> Any:
    """The generated class of a service, whose comments are the contract's."""
    service = method.containing_service
    name = service.file.name.removesuffix(".proto").replace("/", ".").replace("nodewise.", "nodewise_protos.", 1)
    return getattr(import_module(f"{name}_pb2_grpc"), f"{service.name}Servicer")


def _text(told: str | None) -> str:
    """Paragraphs, with their lines joined."""
    return "\n\n".join(" ".join(each.split()) for each in (told or "").split("\n\n"))


def main() -> None:
    """Write the document; with ``--check`` say instead whether it is what would be written."""
    text = json.dumps(document(routes_of(METHODS)), indent=1, ensure_ascii=False) + "\n"
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        raise SystemExit(f"{FILE.name} is not what the contract gives: run `make stubs`")


if __name__ == "__main__":
    main()
