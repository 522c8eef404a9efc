"""The stored form of facts and rows: canonical JSON, versioned, with columns.

Stored forms are read for as long as profiles live: names and defaults are those that the contract states of its
columns (``nodewise.domain.facts``), and a test holds them to the first release's. A column is left out where every row
holds the default, one value where all rows agree, else a list. Numbers keep every bit, the sign of zero included; NaN
and infinity are refused. Numbers of observations are not part of it, because they follow from the order of commits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, as_floats, as_ints, constant_floats, constant_ints, freeze
from nodewise.domain.configurations import Configurations, Placement, WorkerGroups
from nodewise.domain.errors import invalid_field
from nodewise.domain.facts import CONFIGURATION_DEFAULTS, OBSERVATION_DEFAULTS, PHASE_DEFAULTS
from nodewise.domain.profile import Observations, PhaseTimings
from nodewise.domain.sharing import SharedDeviceRun, SharingMode
from nodewise.domain.workload import Encoder, Layer, Network, Transformer, Workload
from nodewise.profiles.naming import Naming
from nodewise.profiles.stated_facts import NOTHING, StatedFacts

__all__ = [
    "FORMAT_VERSION",
    "PayloadError",
    "facts_from_json",
    "facts_to_json",
    "runs_from_payloads",
    "runs_to_json",
    "shared_run_to_json",
    "shared_runs_from_payload",
    "stated_from_payload",
]

FORMAT_VERSION: Final = 1

DICTIONARIES: Final[Mapping[str, str]] = {"devices": "device_index", "precisions": "precision_index"}

_SHARED_ROWS: Final = 256
"""Longest constant column that profiles share; longer ones rarely occur twice."""


_TOGETHER_BYTES: Final = 8 << 20
_BESIDES_ROWS: Final = (b'"workload"', b'"network"', b'"display_name"', b'"labels"')


class PayloadError(Exception):
    """Stored bytes that this release cannot read."""


# --- facts

FactsT = TypeVar("FactsT", Workload, Network)


def _value_to_json(value: Any, path: str) -> Any:
    if isinstance(value, tuple):
        return [_value_to_json(entry, f"{path}[{index}]") for index, entry in enumerate(value)]
    if is_dataclass(value):
        return {f.name: _value_to_json(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value)}
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid_field(path, "must be a finite number")
    return value


def facts_to_json(facts: Workload | Network, path: str) -> dict[str, Any]:
    """The facts that are known, by name.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a number that is not finite; ``path`` stands before its name.
    """
    return {
        f.name: _value_to_json(value, f"{path}.{f.name}")
        for f in fields(facts)
        if (value := getattr(facts, f.name)) is not None
    }


def facts_from_json(kind: type[FactsT], value_by_name: Mapping[str, Any]) -> FactsT:
    """The facts of :func:`facts_to_json`'s result."""
    values = dict(value_by_name)
    if "transformer" in values:
        values["transformer"] = Transformer(**values["transformer"])
    if "encoder" in values:
        values["encoder"] = Encoder(**values["encoder"])
    if "layers" in values:
        values["layers"] = tuple(Layer(**layer) for layer in values["layers"])
    for name in ("shard_bytes", "shard_tensors", "stage_layers"):
        if name in values:
            values[name] = tuple(values[name])
    try:
        return kind(**values)
    except TypeError as error:
        raise PayloadError("facts of an unknown kind") from error


# --- rows out


def _column_to_json(column: NDArray[Any], default: float, rows: int, path: str) -> Any:
    """A column as JSON; None = all rows hold the default."""
    if len(column) != rows:
        raise invalid_field(path, f"must have one entry for each of the {rows} rows, has {len(column)}")
    is_float = isinstance(default, float)
    if rows <= _SHARED_ROWS and column is _constant(rows, default, is_float=is_float):
        return None
    same = column[0].item()
    if rows > 1:
        values: NDArray[Any] = np.ascontiguousarray(column, dtype=np.float64 if is_float else np.int64)
        if is_float and not np.isfinite(values).all():
            raise invalid_field(f"{path}[{int(np.flatnonzero(~np.isfinite(values))[0])}]", "must be a finite number")
        bits = values.view(np.int64)
        if (bits != bits[0]).any():
            return values
    if is_float and not math.isfinite(same):
        raise invalid_field(f"{path}[0]", "must be a finite number")
    return None if same == default and not _is_negative_zero(same) else same


def _dictionary_to_json(names: Sequence[str], index: Ints, path: str) -> Any:
    """The one name of all rows, or names in order of first use with the index of each row. None = no name."""
    codes = index.tolist()
    if min(codes) < 0 or max(codes) >= len(names):
        raise invalid_field(path, f"holds an entry outside 0 to {len(names) - 1}")
    order: dict[str, int] = {}
    codes_in_order = [order.setdefault(names[code], len(order)) for code in codes]
    if len(order) == 1:
        return names[codes[0]] or None
    return {"names": list(order), "index": codes_in_order}


def _configurations_to_json(configurations: Configurations, path: str) -> dict[str, Any]:
    rows = len(configurations)
    result: dict[str, Any] = {}
    for name, default in CONFIGURATION_DEFAULTS.items():
        result[name] = _column_to_json(getattr(configurations, name), default, rows, f"{path}.{name}")
    for names, index in DICTIONARIES.items():
        result[names] = _dictionary_to_json(
            getattr(configurations, names), getattr(configurations, index), f"{path}.{index}"
        )
    placement = configurations.placement
    if placement is not None and len(placement.workers):
        result["placement"] = {
            "counts": np.diff(placement.offsets).tolist(),
            "workers": placement.workers[placement.offsets[0] : placement.offsets[-1]].tolist(),
        }
    groups = configurations.worker_groups
    if groups is not None and len(groups.workers):
        entries = slice(groups.offsets[0], groups.offsets[-1])
        factors = groups.compute_factor[entries]
        if not np.isfinite(factors).all():
            raise invalid_field(f"{path}.groups", "must have finite compute factors")
        result["groups"] = {
            "counts": np.diff(groups.offsets).tolist(),
            "workers": groups.workers[entries].tolist(),
            "devices": [configurations.devices[index] for index in groups.device_index[entries].tolist()],
            "compute_factors": factors.tolist(),
        }
    return {name: value for name, value in result.items() if value is not None}


def runs_to_json(runs: PhaseTimings | Observations, path: str) -> dict[str, Any]:
    """At least one row as columns; holds NumPy arrays for orjson to write.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a number that is not finite; ``path`` stands before its name.
    """
    columns = PHASE_DEFAULTS if isinstance(runs, PhaseTimings) else OBSERVATION_DEFAULTS
    rows = len(runs)
    result: dict[str, Any] = {"rows": rows}
    result["configurations"] = _configurations_to_json(runs.configurations, f"{path}.configurations") or None
    for name, default in columns.items():
        result[name] = _column_to_json(getattr(runs, name), default, rows, f"{path}.{name}")
    return {name: value for name, value in result.items() if value is not None}


# --- rows in


def _constant(rows: int, value: float, *, is_float: bool) -> NDArray[Any]:
    if rows <= _SHARED_ROWS and not (is_float and _is_negative_zero(value)):
        return constant_floats(rows, float(value)) if is_float else constant_ints(rows, int(value))
    return freeze(np.full(rows, value, dtype=np.float64 if is_float else np.int64))


def _is_negative_zero(value: float) -> bool:
    return value == 0 and math.copysign(1, value) < 0


def _column_from_json(parts: Sequence[tuple[int, Mapping[str, Any]]], name: str, default: float) -> NDArray[Any]:
    """One column of all parts, one after the other."""
    is_float = isinstance(default, float)
    part_values = [part.get(name, default) for _, part in parts]
    if not any(isinstance(value, list) for value in part_values):
        first = part_values[0]
        if len(set(part_values)) == 1 and (
            first or not any(_is_negative_zero(value) for value in part_values) or len(part_values) == 1
        ):
            return _constant(sum(rows for rows, _ in parts), first, is_float=is_float)
    values: list[Any] = []
    for (rows, _), value in zip(parts, part_values):
        values += value if isinstance(value, list) else [value] * rows
    return freeze(np.array(values, dtype=np.float64 if is_float else np.int64))


def _dictionary_from_json(parts: Sequence[tuple[int, Mapping[str, Any]]], name: str) -> tuple[tuple[str, ...], Ints]:
    order: dict[str, int] = {}
    index: list[int] = []
    for rows, part in parts:
        value = part.get(name, "")
        if isinstance(value, str):
            index += [order.setdefault(value, len(order))] * rows
        else:
            codes = [order.setdefault(entry, len(order)) for entry in value["names"]]
            index += [codes[entry] for entry in value["index"]]
    names = tuple(order)
    if len(names) == 1:
        return names, _constant(len(index), 0, is_float=False)
    return names, freeze(np.array(index, dtype=np.int64))


def _ragged_from_json(
    parts: Sequence[tuple[int, Mapping[str, Any]]], name: str, entries: Sequence[str]
) -> tuple[Ints, dict[str, list[Any]]]:
    """Offsets of the rows' entries, and the entries one after the other, by their names."""
    counts: list[int] = []
    columns: dict[str, list[Any]] = {entry: [] for entry in entries}
    for rows, part in parts:
        value = part.get(name)
        if value is None:
            counts += [0] * rows
            continue
        counts += value["counts"]
        for entry, column in columns.items():
            column.extend(value[entry])
    return freeze(np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))), columns


def _placement_from_json(parts: Sequence[tuple[int, Mapping[str, Any]]]) -> Placement | None:
    if not any("placement" in part for _, part in parts):
        return None
    offsets, columns = _ragged_from_json(parts, "placement", ("workers",))
    return Placement(offsets, as_ints(columns["workers"]))


def _groups_from_json(
    parts: Sequence[tuple[int, Mapping[str, Any]]], devices: tuple[str, ...]
) -> tuple[tuple[str, ...], WorkerGroups]:
    """The rows' devices with those of groups after them, and the groups."""
    offsets, columns = _ragged_from_json(parts, "groups", ("workers", "devices", "compute_factors"))
    order = {name: code for code, name in enumerate(devices)}
    index = as_ints([order.setdefault(name, len(order)) for name in columns["devices"]])
    return tuple(order), WorkerGroups(
        offsets, as_ints(columns["workers"]), index, as_floats(columns["compute_factors"])
    )


def _configurations_from_json(parts: Sequence[tuple[int, Mapping[str, Any]]]) -> Configurations:
    columns: dict[str, Any] = {
        name: _column_from_json(parts, name, default) for name, default in CONFIGURATION_DEFAULTS.items()
    }
    for names, index in DICTIONARIES.items():
        columns[names], columns[index] = _dictionary_from_json(parts, names)
    if any("groups" in part for _, part in parts):
        columns["devices"], columns["worker_groups"] = _groups_from_json(parts, columns["devices"])
    return Configurations(**columns, placement=_placement_from_json(parts))


def _table(contents: Iterable[Mapping[str, Any]], name: str) -> list[tuple[int, Mapping[str, Any]]]:
    return [(table["rows"], table) for content in contents if (table := content.get(name)) is not None]


def stated_from_payload(payload: bytes) -> StatedFacts:
    """The facts and names of a batch.

    Raises
    ------
    PayloadError
        For bytes that are not a batch of this format.
    """
    if not any(name in payload for name in _BESIDES_ROWS):  # most batches: rows alone
        return NOTHING
    try:
        content = _content(payload)
        return StatedFacts(
            workload=facts_from_json(Workload, content.get("workload", {})),
            network=facts_from_json(Network, content.get("network", {})),
            naming=Naming(display_name=content.get("display_name"), labels=content.get("labels", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PayloadError("bytes that are not a batch") from error


def shared_run_to_json(run: SharedDeviceRun) -> dict[str, Any]:
    """A run beside another job as JSON. Raises NodewiseError INVALID_FIELD for a number that is not finite."""
    return {each.name: _value_to_json(getattr(run, each.name), f"shared_runs.{each.name}") for each in fields(run)}


def shared_runs_from_payload(payload: bytes) -> list[SharedDeviceRun]:
    """Runs beside other jobs in a batch.

    Raises
    ------
    PayloadError
        For bytes that are not a batch of this format.
    """
    if b'"shared_runs"' not in payload:  # most batches
        return []
    try:
        runs = _content(payload).get("shared_runs", [])
        return [SharedDeviceRun(**{**run, "mode": SharingMode(run["mode"])}) for run in runs]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PayloadError("bytes that are not a batch") from error


def runs_from_payloads(payloads: Iterable[bytes]) -> tuple[PhaseTimings, Observations]:
    """The rows of many batches, one after the other; observations without numbers.

    Raises
    ------
    PayloadError
        For bytes that are not a batch of this format.
    """
    timings: list[PhaseTimings] = []
    observations: list[Observations] = []
    try:
        for contents in _together(payloads):
            if parts := _table(contents, "phase_timings"):
                timings.append(PhaseTimings(**_runs_from_json(parts, PHASE_DEFAULTS)))
            if parts := _table(contents, "observations"):
                numbers = _constant(sum(rows for rows, _ in parts), 0, is_float=False)
                observations.append(Observations(**_runs_from_json(parts, OBSERVATION_DEFAULTS), number=numbers))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise PayloadError("bytes that are not a batch") from error
    return PhaseTimings.concatenated(timings), Observations.concatenated(observations)


def _content(payload: bytes) -> Mapping[str, Any]:
    content: Mapping[str, Any] = orjson.loads(payload)
    if content["v"] != FORMAT_VERSION:
        raise PayloadError(f"batch of format {content['v']}")
    return content


def _together(payloads: Iterable[bytes]) -> Iterator[list[Mapping[str, Any]]]:
    """Contents of batches in groups, so that small ones are read quickly and large ones do not fill the memory."""
    contents: list[Mapping[str, Any]] = []
    size = 0
    for payload in payloads:
        contents.append(_content(payload))
        size += len(payload)
        if size > _TOGETHER_BYTES:
            yield contents
            contents, size = [], 0
    yield contents


def _runs_from_json(
    parts: Sequence[tuple[int, Mapping[str, Any]]], columns: Mapping[str, int | float]
) -> dict[str, Any]:
    nothing: Mapping[str, Any] = {}
    columns_by_name: dict[str, Any] = {
        name: _column_from_json(parts, name, default) for name, default in columns.items()
    }
    columns_by_name["configurations"] = _configurations_from_json(
        [(rows, part.get("configurations", nothing)) for rows, part in parts]
    )
    return columns_by_name
