"""The HTTP annotations of the contract are such as a gateway can serve."""

from __future__ import annotations

import re
from typing import Any

import pytest
from contract_values import contract_files
from google.api import annotations_pb2

METHODS = [
    (file, service, method)
    for file in contract_files()
    for service in file.services_by_name.values()
    for method in service.methods
]
every_method = pytest.mark.parametrize(
    ("file", "service", "method"), METHODS, ids=lambda each: each.name if hasattr(each, "input_type") else ""
)


def rule(method: Any) -> tuple[str, str, str] | None:
    """Verb, path and body of a method; None = it is not served over HTTP."""
    options = method.GetOptions()
    if not options.HasExtension(annotations_pb2.http):
        return None
    http = options.Extensions[annotations_pb2.http]
    verb = http.WhichOneof("pattern")
    return verb, getattr(http, verb), http.body


@every_method
def test_all_but_streams_of_requests_are_served(file: Any, service: Any, method: Any) -> None:
    assert (rule(method) is None) == method.client_streaming


@every_method
def test_a_path_has_the_package_s_version_and_names_fields(file: Any, service: Any, method: Any) -> None:
    found = rule(method)
    if found is None:
        return
    verb, path, body = found
    assert path.startswith(f"/{file.package.removeprefix('nodewise.')}/")
    assert (body == "*") == (verb == "post")
    for name in re.findall(r"\{(\w+)", path):
        assert name in method.input_type.fields_by_name
    # What a URL's query cannot hold must not be asked for in one.
    if verb in ("get", "delete"):
        assert not any(field.message_type for field in method.input_type.fields)
    custom = path.rpartition("}")[2].rpartition(":")[2] if ":" in path.rpartition("}")[2] else None
    if verb == "post":
        assert custom is not None
        words = custom[0].upper() + custom[1:]
        assert method.name.startswith(words), "the verb is that of the method"


def test_no_two_methods_share_a_path() -> None:
    found = [each[:2] for _, _, method in METHODS if (each := rule(method)) is not None]
    assert len(set(found)) == len(found)
