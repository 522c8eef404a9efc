"""TensorBoard's event files: each directory of them is a run."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nodewise_cli.failures import InputError, unreadable
from nodewise_cli.imports.logged_runs import LoggedRun, Options, flat
from nodewise_cli.imports.wire import fields_of, first, tf_records

__all__ = ["read_tensorboard"]

# Fields of tensorflow.Event, Summary.Value and TensorProto.
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8
_DTYPE, _CONTENT, _FLOATS, _DOUBLES, _STRINGS = 1, 4, 5, 6, 8
_NUMBERS = {1: "<f", 2: "<d"}
_TEXT = "/text_summary"


def read_tensorboard(path: Path, _options: Options) -> Iterator[LoggedRun]:
    """The runs below a directory, or the run of one event file."""
    files = sorted(path.rglob("*tfevents*")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: holds no event file (events.out.tfevents...)")
    for folder in dict.fromkeys(file.parent for file in files):
        run = LoggedRun(str(folder if path.is_dir() else path), folder.name)
        for file in files:
            if file.parent == folder:
                _read(file, run)
        yield run


def _read(file: Path, run: LoggedRun) -> None:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise unreadable(file, error) from None
    try:
        for record in tf_records(data):
            _add(record, run)
    except (ValueError, struct.error):
        raise InputError(f"{file}: is not a TensorBoard event file") from None
    if data and not next(tf_records(data), b""):
        raise InputError(f"{file}: is not a TensorBoard event file")


def _add(record: bytes, run: LoggedRun) -> None:
    event = fields_of(record)
    if _SUMMARY not in event:
        return
    (time_s,) = struct.unpack("<d", first(event, _WALL_TIME, bytes(8)))
    step = first(event, _STEP, 0)
    for summary in event[_SUMMARY]:
        for each in fields_of(summary).get(1, ()):
            value = fields_of(each)
            tag = first(value, _TAG, b"").decode()
            if _SIMPLE_VALUE in value:
                run.add(tag, step, time_s, struct.unpack("<f", value[_SIMPLE_VALUE][-1])[0])
            elif _TENSOR in value:
                _add_tensor(tag, step, time_s, value[_TENSOR][-1], run)


def _add_tensor(tag: str, step: int, time_s: float, message: bytes, run: LoggedRun) -> None:
    tensor = fields_of(message)
    form = _NUMBERS.get(first(tensor, _DTYPE, 0))
    packed = next((tensor[field][-1] for field in (_FLOATS, _DOUBLES, _CONTENT) if field in tensor), b"")
    if form is not None and len(packed) == struct.calcsize(form):
        run.add(tag, step, time_s, struct.unpack(form, packed)[0])
    elif tag.endswith(_TEXT) and _STRINGS in tensor:
        with suppress(ValueError):  # only settings are read of texts: the arguments of Hugging Face's Trainer
            settings = json.loads(tensor[_STRINGS][-1])
            run.settings |= flat(settings) if isinstance(settings, dict) else {}
