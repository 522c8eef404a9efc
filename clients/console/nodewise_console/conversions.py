"""What the console shows of the Python client and the command line: models as read, launch commands, memory over time.

The functions read nothing but the question, so they need no token. Anyone may ask, so questions are limited.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf import json_format

from nodewise_cli.views.memory_timeline import memory_timeline, peak_sentence
from nodewise_client import configuration_rows, model_from_hugging_face
from nodewise_client.frameworks import FRAMEWORKS, Layout, LayoutError, launch
from nodewise_protos.v1 import configuration_pb2, workload_pb2
from nodewise_values import Configurations, Workload
from nodewise_values.wire import from_message, to_message

__all__ = ["CONVERSIONS", "ConversionError", "convert"]

MOST_BYTES: Final = 64 * 1024
"""Of a question as JSON."""
MOST_MICRO_BATCHES: Final = 10_000
"""Whose activations are kept at once: each is a point of the memory over time."""


class ConversionError(ValueError):
    """The question is not valid; the text says what is."""


def convert(name: str, packed_question: str) -> dict[str, Any]:
    """Answer a question.

    Parameters
    ----------
    name : str
        One of ``CONVERSIONS``.
    packed_question : str
        A JSON object, compressed by zlib, as base64 for URLs without padding.

    Raises
    ------
    ConversionError
        Naming what is wrong.
    """
    try:
        return CONVERSIONS[name](_unpack(packed_question))
    except ConversionError:
        raise
    except (ValueError, json_format.ParseError) as error:  # they name the field
        raise ConversionError(str(error)) from None
    except (ArithmeticError, TypeError):
        raise ConversionError("the question holds a value of a wrong type, or 0 where it must not") from None


def _unpack(packed_question: str) -> dict[str, Any]:
    try:
        data = base64.urlsafe_b64decode(packed_question + "=" * (-len(packed_question) % 4))
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(data, MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise ConversionError(f"the question must have at most {MOST_BYTES} bytes")
        question = json.loads(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        if isinstance(error, ConversionError):
            raise
        raise ConversionError("the question must be a compressed JSON object") from None
    if not isinstance(question, dict):
        raise ConversionError("the question must be a JSON object")
    return question


def _model(question: Mapping[str, Any]) -> dict[str, Any]:
    """The workload of a `config.json`, with notes on what was assumed."""
    config, length = question.get("config"), question.get("sequenceLength")
    if not isinstance(config, dict):
        raise ConversionError("config: must be a JSON object, the config.json of a model")
    if length is not None and not isinstance(length, int):
        raise ConversionError(f"sequenceLength: must be a whole number, found {length!r}")
    model = model_from_hugging_face(config, sequence_length=length)
    return {"workload": json_format.MessageToDict(to_message(model.workload)), "notes": list(model.notes)}


def _launches(question: Mapping[str, Any]) -> dict[str, Any]:
    """What to paste to train a layout, by framework; or what the framework lacks for it."""
    workload = from_message(_read(question, "workload", workload_pb2.Workload()), Workload)
    columns = from_message(_read(question, "configurations", configuration_pb2.Configurations()), Configurations)
    rows, index = configuration_rows(columns), question.get("index")
    if not isinstance(index, int) or not 0 <= index < len(rows):
        raise ConversionError(f"index: must be that of one of the {len(rows)} configurations, found {index!r}")
    layout = Layout.of(rows[index], workload)
    return {"launches": [_launch(layout, framework) for framework in FRAMEWORKS]}


def _launch(layout: Layout, framework: str) -> dict[str, Any]:
    try:
        result = launch(layout, framework)
    except LayoutError as error:
        return {"framework": framework, "problem": str(error)}
    texts = {"Command on each node": result.command, **result.files}
    if result.code:
        texts["In the training script"] = "\n".join(result.code)
    return {"framework": framework, "name": result.framework, "texts": texts, "notes": list(result.notes)}


def _memory(question: Mapping[str, Any]) -> dict[str, Any]:
    """Moments of a step with the bytes of each term, and a sentence on the peak. No points = not predicted."""
    extra, parts = _numbers(question, "extra"), _numbers(question, "breakdownSeconds")
    if extra.get("memory_in_flight", 0.0) > MOST_MICRO_BATCHES:
        raise ConversionError(f"extra.memory_in_flight: must be at most {MOST_MICRO_BATCHES}")
    try:
        timeline = memory_timeline(extra, parts)
    except KeyError as error:
        raise ConversionError(f"extra.{error.args[0]}: is missing") from None
    if timeline is None:
        return {"points": [], "peak": "", "timed": False}
    points = [{"time": point.time_s, "phase": point.phase, "terms": dict(point.terms)} for point in timeline.points]
    return {"points": points, "peak": peak_sentence(timeline), "timed": timeline.timed}


def _read(question: Mapping[str, Any], name: str, message: Any) -> Any:
    value = question.get(name)
    if not isinstance(value, dict):
        raise ConversionError(f"{name}: must be a JSON object")
    return json_format.ParseDict(value, message, ignore_unknown_fields=True)


def _numbers(question: Mapping[str, Any], name: str) -> dict[str, float]:
    value = question.get(name)
    if not isinstance(value, dict) or not all(
        isinstance(each, int | float) and math.isfinite(each) and each >= 0 for each in value.values()
    ):
        raise ConversionError(f"{name}: must be an object of numbers, each at least 0")
    return value


CONVERSIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "model": _model,
    "launches": _launches,
    "memory": _memory,
}
"""Answers by the name of the question."""
