"""REST by the contract's google.api.http annotations: paths, bodies, query parameters; errors by AIP-193."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from aiohttp.web import BaseRequest, Response, StreamResponse
from google.api import annotations_pb2, http_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.rpc import status_pb2

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.rpc.calls import REQUEST_ID
from nodewise.rpc.http.answering import JSON, HttpContext, respond, respond_many
from nodewise.rpc.http.bodies import decode_body, read_body
from nodewise.rpc.http.failures import rest_error
from nodewise.rpc.http.translating import Translator, message_of, parse_json

__all__ = ["NDJSON", "Match", "Rest", "Route", "Template", "routes_of"]

NDJSON: Final = "application/x-ndjson"
"""Streams: an object a line."""
_VERBS: Final = ("get", "post", "put", "patch", "delete")
_BODIES: Final = frozenset({"", "application/json", "application/x-www-form-urlencoded"})
"""Types of bodies that are JSON; the last is curl's default with `-d`."""
_PARAMETERS: Final = 1_000
"""Most parameters of a query."""
_VARIABLE: Final = re.compile(r"\{([a-z0-9_.]+)(?:=([^{}]+))?\}")
_PATTERNS: Final = {"*": r"[^/:]+", "**": r"[^/:]+(?:/[^/:]+)*"}
"""A segment, and one or more. None holds a colon, which begins a verb; what a name has of its own is written %3A."""


@dataclass(frozen=True, slots=True)
class Template:
    """A path with variables.

    Attributes
    ----------
    text : str
        As annotated.
    variables : tuple of str
        Paths of fields, in the order of the path.
    """

    text: str
    variables: tuple[str, ...]
    _pattern: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> Template:
        """The template of an annotation. Raises ValueError for an unsupported pattern."""
        variables, parts, at = [], [], 0
        for variable in _VARIABLE.finditer(text):
            parts.append(re.escape(text[at : variable.start()]))
            kind = variable[2] or "*"
            if kind not in _PATTERNS:
                raise ValueError(f"{text}: pattern {kind} is not supported")
            parts.append(f"({_PATTERNS[kind]})")
            variables.append(variable[1])
            at = variable.end()
        parts.append(re.escape(text[at:]))
        return cls(text, tuple(variables), re.compile("".join(parts)))

    def match(self, path: str) -> dict[str, str] | None:
        """Values of the variables in a path; None = the path does not match."""
        path_match = self._pattern.fullmatch(path)
        if path_match is None:
            return None
        return {name: unquote(value) for name, value in zip(self.variables, path_match.groups(), strict=True)}


@dataclass(frozen=True, slots=True)
class Route:
    """One annotation of a method.

    Attributes
    ----------
    verb : str
        HTTP's method.
    whole_body : bool
        Whether the body is the request, but what the path says; else there is none, and the query says the rest.
    """

    verb: str
    template: Template
    method: MethodDescriptor
    whole_body: bool

    @property
    def path(self) -> str:
        """Of the method."""
        return f"/{self.method.containing_service.full_name}/{self.method.name}"


def routes_of(methods: Mapping[str, MethodDescriptor]) -> Iterator[Route]:
    """All routes of methods. Raises ValueError for an unsupported kind of annotation."""
    for method in methods.values():
        if not method.GetOptions().HasExtension(annotations_pb2.http):
            continue
        rule = method.GetOptions().Extensions[annotations_pb2.http]
        for each in (rule, *rule.additional_bindings):
            yield _route(method, each)


def _route(method: MethodDescriptor, rule: http_pb2.HttpRule) -> Route:
    verb = rule.WhichOneof("pattern")
    if verb not in _VERBS or rule.body not in ("", "*") or rule.response_body:
        raise ValueError(f"{method.full_name}: this kind of annotation is not served")
    return Route(verb.upper(), Template.of(getattr(rule, verb)), method, rule.body == "*")


@dataclass(frozen=True, slots=True)
class Match:
    """The route of a path and a verb."""

    route: Route
    variables: Mapping[str, str]


class Rest:
    """Answers calls by their annotations.

    Parameters
    ----------
    translators : mapping of str to Translator
        Of every method, by ``/package.Service/Method``.
    """

    def __init__(self, translators: Mapping[str, Translator]) -> None:
        self._translators = translators
        self.routes = tuple(routes_of({path: each.method for path, each in translators.items()}))
        self._fixed_paths = {
            (each.template.text, each.verb): Match(each, {}) for each in self.routes if not each.template.variables
        }
        self._open = [each for each in self.routes if each.template.variables]

    def find(self, verb: str, path: str) -> Match | None:
        """The route of a call."""
        fixed_match = self._fixed_paths.get((path, verb))
        if fixed_match is not None:
            return fixed_match
        for route in self._open:
            if route.verb == verb and (variables := route.template.match(path)) is not None:
                return Match(route, variables)
        return None

    def verbs(self, path: str) -> list[str]:
        """The verbs of a path."""
        return sorted({verb for verb in map(str.upper, _VERBS) if self.find(verb, path) is not None})

    async def __call__(
        self, match: Match, query: str, request: BaseRequest, always: Mapping[str, str]
    ) -> StreamResponse:
        """Answer a call; every response has the headers ``always``."""
        context = HttpContext(request)
        translator = self._translators[match.route.path]

        async def receive() -> bytes:
            body = await read_body(request, translator.most_bytes)
            if match.route.whole_body:
                encoding = request.headers.get("Content-Encoding", "")
                body = await decode_body(body, encoding, translator.most_bytes)
                if not query and not match.variables:
                    return await translator.request_of(body, strict=True)
            elif body:
                text = f"{request.method} takes no body at this path; state all fields in the query"
                raise NodewiseError(Reason.MALFORMED_MESSAGE, text)
            return await translator.make_bytes(body, lambda data: _bytes_of(data, match, query, translator))

        async def line(message: bytes) -> bytes:
            return b'{"result":' + await translator.json_of(message) + b"}\n"

        def last(status: status_pb2.Status | None) -> bytes:
            return b"" if status is None else rest_error(status) + b"\n"

        if match.route.whole_body and _type_of(request) not in _BODIES:
            return Response(status=415, headers={REQUEST_ID: context.request_id, "Accept-Post": JSON})
        if translator.method.server_streaming:
            reply_headers = {**always, "Content-Type": NDJSON}
            return await respond_many(translator.route, context, receive, line, reply_headers, last, rest_error)
        return await respond(translator.route, context, receive, translator.json_of, JSON, rest_error)


def _type_of(request: BaseRequest) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _bytes_of(body: bytes, match: Match, query: str, translator: Translator) -> bytes:
    """The request on the wire, of body, path and query together. Raises NodewiseError."""
    value = parse_json(body, translator.request)
    if query:
        value = _of_query(query, match, translator.method.input_type, value)
    read = message_of(value, translator.request, strict=True)
    for name, text in match.variables.items():
        _put(read, name, text)
    return read.SerializeToString()


def _put(message: Any, path: str, text: str) -> None:
    """Set a field from the path. Raises NodewiseError if the body has another value."""
    *above, last = path.split(".")
    for name in above:
        message = getattr(message, name)
    field = message.DESCRIPTOR.fields_by_name[last]
    oneof = field.containing_oneof
    other_name = message.WhichOneof(oneof.name) if oneof is not None else None
    present = getattr(message, last)
    if (other_name not in (None, last)) or (present and present != text):
        problem = f"the body has {present!r}" if other_name in (None, last) else f"the body has {other_name}"
        raise invalid_field(path, f"is {text!r} in the path, but {problem}: state it in the path alone")
    setattr(message, last, text)


def _of_query(query: str, match: Match, message: Descriptor, value: Any) -> Any:
    """The same value with the fields of the query."""
    if match.route.whole_body:
        raise NodewiseError(Reason.MALFORMED_MESSAGE, "this call takes no query parameters; use the body")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=False, max_num_fields=_PARAMETERS)
    except ValueError:
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the query has more than {_PARAMETERS} parameters") from None
    fields = {name: field for field in message.fields for name in (field.name, field.json_name)}
    for name, text in pairs:
        field = fields.get(name)
        if field is None:  # which message_of says
            value[name] = text
            continue
        parsed_value: Any = text
        if field.type == FieldDescriptor.TYPE_BOOL:
            parsed_value = {"true": True, "false": False}.get(text, text)
        if field.is_repeated:
            value.setdefault(field.name, []).append(parsed_value)
        elif field.name in value:
            raise invalid_field(field.name, "must be in the query once, found twice")
        else:
            value[field.name] = parsed_value
    return value
