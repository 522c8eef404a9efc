"""The columns of a measurements table: values of cells, errors in cells, and defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from nodewise_cli.inputs.bounds import describe_bounds, within
from nodewise_client import Recomputation, SyncMode
from nodewise_values import facts
from nodewise_values.fact import Fact, by_csv

__all__ = [
    "BY_WORKER_MODES",
    "COLUMNS",
    "DEFAULTS",
    "INSTEAD_OF_RATES",
    "OF_STEPS",
    "PARAMETER_SERVER_MODES",
    "PHASES",
    "RATES",
    "READ",
    "REQUIRED",
    "TRANSFORMER",
    "CellError",
    "RowError",
]

PARAMETER_SERVER_MODES: Final = frozenset({"async", "sync", "hybrid"})
BY_WORKER_MODES: Final = frozenset({"async", "hybrid"})
"""Modes of which a step is one worker's mini-batch."""
PHASES: Final = ("compute_s", "download_s", "upload_s", "update_s")
TRANSFORMER: Final = tuple(name for name, fact in by_csv(facts.TRANSFORMER).items() if fact.required)
"""Dimensions that every transformer needs; the others have usual values."""

CellParser = Callable[[str], Any]
"""Reads a cell that is not empty."""

MOST_INT32: Final = (1 << 31) - 1
LONGEST: Final = 256
"""Characters of a text that nothing else bounds."""
FLAGS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_GROUP: Final = re.compile(r"([0-9]{1,7})(?:\s*x\s*([^*]*[^*\s]))?(?:\s*\*\s*([0-9.]+))?")


class CellError(ValueError):
    """A cell with an invalid value; the text begins with "must be"."""


class RowError(ValueError):
    """A row whose cells contradict each other, or lack a value."""

    def __init__(self, row: int, column: str, message: str) -> None:
        super().__init__(message)
        self.row, self.column = row, column


def by_fact(fact: Fact) -> CellParser:
    """The parser of a field of the contract."""
    if fact.kind == "bool":
        return flag
    if fact.kind == "str":
        return partial(text, fact.maximum_length or LONGEST)
    if fact.kind == "int" or fact.whole:
        return partial(whole, int(fact.minimum or 0), int(fact.maximum or MOST_INT32))
    return partial(number, fact)


def number(fact: Fact, cell: str) -> float:
    """A number within the bounds of its field."""
    value = _float(cell)
    if value is None or not within(fact, value):
        raise CellError(describe_bounds(fact))
    return value


def above_0(unit: str, cell: str) -> float:
    """A number above 0."""
    value = _float(cell)
    if value is None or value <= 0.0:
        raise CellError(f"must be a finite number above 0 ({unit})")
    return value


def text(most: int, cell: str) -> str:
    """Any text of at most so many characters."""
    if len(cell) > most:
        raise CellError(f"must be at most {most} characters")
    return cell


def some(fact: Fact, cell: str) -> int | None:
    """A whole number, or None for 0, such as no experts."""
    return whole(0, int(fact.maximum or MOST_INT32), cell) or None


def choice(words: Sequence[str], cell: str) -> str:
    """One of some words."""
    if cell not in words:
        raise CellError(f"must be {', '.join(words[:-1])} or {words[-1]}")
    return cell


def whole(least: int, most: int, cell: str) -> int:
    """A whole number; ``4.0`` is one, as spreadsheets and data frames write it."""
    value = _float(cell)
    if value is None or not value.is_integer():
        raise CellError(f"must be a whole number of at least {least}")
    if not least <= value <= most:
        raise CellError(f"must be at least {least}" if value < least else f"must be at most {most}")
    return int(value)


def samples(fact: Fact, cell: str) -> int | float:
    """Samples of one worker; a part of one where several workers share it."""
    value = _float(cell)
    if value is None or not 0.0 < value <= float(fact.maximum or MOST_INT32):
        raise CellError(f"must be above 0 and at most {fact.maximum}")
    return int(value) if value.is_integer() else value


def flag(cell: str) -> bool:
    """True or false."""
    if cell.lower() not in FLAGS:
        raise CellError("must be true or false")
    return FLAGS[cell.lower()]


def rate_or_flag(cell: str) -> bool:
    """True or false, or a rate of 0 to 1 of which anything above 0 is true."""
    value = _float(cell)
    if value is None:
        return flag(cell)
    if not 0.0 <= value <= 1.0:
        raise CellError("must be true, false or a rate from 0 to 1")
    return value > 0.0


def share_or_flag(fact: Fact, cell: str) -> float:
    """A share, or true for all and false for none of it."""
    return number(fact, cell) if _float(cell) is not None else float(flag(cell))


def placement(cell: str) -> tuple[int, ...]:
    """Workers on each node, e.g. ``4+4``."""
    parts = cell.split("+")
    if not all(part.strip().isascii() and part.strip().isdigit() and int(part) >= 1 for part in parts):
        raise CellError("must be the workers on each node joined by +, each at least 1, such as 4+4")
    return tuple(int(part) for part in parts)


def stage_layers(cell: str) -> tuple[int, ...]:
    """Layers of each pipeline stage, e.g. ``11+12+12+11``; stages without layers hold the embedding or the loss."""
    parts = cell.split("+")
    if not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        raise CellError("must be the layers of each pipeline stage joined by +, such as 11+12+12+11")
    return tuple(int(part) for part in parts)


def groups(cell: str) -> tuple[tuple[int, str, float], ...]:
    """Workers that are not alike: how many, on which device (empty = the row's), the factor of their compute time."""
    parsed_groups = []
    for part in cell.split("+"):
        match = _GROUP.fullmatch(part.strip())
        factor = None if match is None else _float(match[3] or "1")
        if match is None or not factor or int(match[1]) < 1:
            raise CellError(
                "must be groups of workers joined by +, each a number, x and a device unless it is the row's, and * "
                "and a factor of their compute time unless it is 1, such as 6+2*1.5 or 4xV100+4xK80"
            )
        parsed_groups.append((int(match[1]), match[2] or "", factor))
    return tuple(parsed_groups)


def moment(cell: str) -> datetime:
    """A time: seconds since 1970, or ISO 8601 (UTC where it names no zone)."""
    seconds = _float(cell)
    try:
        time = datetime.fromisoformat(cell) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise CellError("must be a time as 2026-03-01T12:00:00Z (ISO 8601) or as seconds since 1970 above 0") from None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    if time.timestamp() <= 0:
        raise CellError("must be a time after 1970")
    return time


def _float(cell: str) -> float | None:
    """A finite number in plain ASCII, or None."""
    if not cell.isascii() or "_" in cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


REQUIRED: Final = ("job", "device", "nodes", "workers")
RATES: Final = ("steps_per_s", "it_per_s", "samples_per_s", "images_per_s", "tokens_per_s", "step_s", "ms_per_step")
"""Columns of which each states a measured throughput, in its own unit."""
OF_STEPS: Final = ("steps_per_s", "it_per_s")
_OTHER_UNITS: Final = {
    "samples_per_s": "samples/s",
    "images_per_s": "images/s",
    "tokens_per_s": "tokens/s",
    "step_s": "s",
    "ms_per_step": "ms",
}
INSTEAD_OF_RATES: Final = ("measured_memory_bytes", "fitted")
"""Columns of which one is enough where no rate was measured."""
DEFAULTS: Final = {"sync": "allreduce", "parameter_servers": 0, "accumulation": 1}
"""What an empty cell, or an absent column, stands for; of all other columns it is not known."""


def _parsers() -> dict[str, CellParser]:
    """The contract's own columns by its facts, and those that are more than one number or text, or a table's alone."""
    of_contract = by_csv(
        *(facts.MEASUREMENT_TABLE, facts.CONFIGURATIONS, facts.OBSERVATIONS, facts.PHASE_TIMINGS),
        *(facts.WORKLOAD, facts.NETWORK, facts.TRANSFORMER, facts.ENCODER),
    )
    parsers = {name: by_fact(fact) for name, fact in of_contract.items()}
    dimensions = by_csv(facts.TRANSFORMER, facts.ENCODER)
    optional = {name: fact for name, fact in dimensions.items() if not fact.required}
    parsers |= {name: partial(some, fact) for name, fact in optional.items() if fact.kind == "int"}
    parsers |= {
        "job": partial(text, LONGEST),
        "split": partial(choice, ("train", "test")),
        "sync": partial(choice, tuple(SyncMode)),
        "recompute": partial(choice, tuple(Recomputation)),
        "placement": placement,
        "stage_layers": stage_layers,
        "groups": groups,
        "dropout": rate_or_flag,
        "frozen_weights": partial(share_or_flag, of_contract["frozen_weights"]),
        "measured_at": moment,
        "batch_per_worker": partial(samples, of_contract["batch_per_worker"]),
        "micro_batch": partial(samples, of_contract["batch_per_worker"]),
    }
    return {name: parsers[name] for name in dict.fromkeys((*REQUIRED, "steps_per_s", *parsers))}


COLUMNS: Final = _parsers()
"""How a cell that is not empty is read, by column of a table that was read."""
READ: Final[dict[str, CellParser]] = {
    **COLUMNS,
    **{name: partial(above_0, unit) for name, unit in _OTHER_UNITS.items()},
    "it_per_s": COLUMNS["steps_per_s"],
    "gpus_per_node": partial(whole, 1, MOST_INT32),
}
"""The same for the columns of a file, with those that other columns are derived from."""
