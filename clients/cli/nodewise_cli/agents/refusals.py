"""Errors of tools, as an agent can act on them: what is wrong, what is missing, and a value that it may have."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
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


def explain_arguments(error: ValidationError) -> str:
    """Which arguments are wrong, and values that they may have."""
    lines = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        names = [part for part in each["loc"] if isinstance(part, int) or part.isidentifier()]
        example = None if each["type"] == "extra_forbidden" else _example_among(names)
        such_as = "" if example is None else f", such as {json.dumps(example)}"
        place = quote(".".join(map(str, names)) or str(each["loc"]), 80)
        lines.append(f"Wrong argument {place}: {quote(each['msg'], 160)}{such_as}")
    return "\n".join(list(dict.fromkeys(lines))[:MOST_FIELDS])


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
