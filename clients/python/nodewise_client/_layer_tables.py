"""Import of a general network's layers from a CSV table."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nodewise_client._hugging_face_reader import ImportedModelError
from nodewise_values import Layer

_TEXTS: Final = ("name", "kind")
_NUMBERS: Final = ("forward_flops_per_sample", "parameter_bytes", "activation_bytes_per_sample")
_OPTIONAL: Final = ("halo_bytes_per_sample",)
_COLUMNS: Final = (*_TEXTS, *_NUMBERS, *_OPTIONAL)
_LARGEST: Final = 1 << 53


def layers_from_csv(path: str | Path) -> tuple[Layer, ...]:
    """The layers of a table, one row each in order of the forward pass.

    Columns: `name`, `kind`, `forward_flops_per_sample`, `parameter_bytes`, `activation_bytes_per_sample`, and where a
    layer can be split spatially `halo_bytes_per_sample`.

    Raises
    ------
    ImportedModelError
        Naming the file, the line and the column, and what would be right.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ImportedModelError(f"{path}: cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError as error:
        raise ImportedModelError(f"{path}: byte {error.start} is not UTF-8; save the table as CSV in UTF-8") from None
    rows = _rows(path, text)
    first = next(rows, None)
    if first is None:
        raise ImportedModelError(f"{path}: is empty; the first line must name the columns {', '.join(_COLUMNS)}")
    header = _header(path, *first)
    layers = tuple(_layer(f"{path}:{line}", header, cells) for line, cells in rows)
    if not layers:
        raise ImportedModelError(f"{path}: has no layers below the header")
    return layers


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise ImportedModelError(f"{path}:{reader.line_num}: is not valid CSV: {error}") from None


def _header(path: Path, line: int, cells: list[str]) -> list[str]:
    for name in cells:
        if name not in _COLUMNS:
            raise ImportedModelError(f"{path}:{line}: unknown column {name!r}; columns are: {', '.join(_COLUMNS)}")
        if cells.count(name) > 1:
            raise ImportedModelError(
                f"{path}:{line}: column {name} is there {cells.count(name)} times in the header; keep one"
            )
    missing = [name for name in (*_TEXTS, *_NUMBERS) if name not in cells]
    if missing:
        raise ImportedModelError(f"{path}:{line}: column {missing[0]} is missing")
    return cells


def _layer(where: str, header: list[str], cells: list[str]) -> Layer:
    if len(cells) != len(header):
        raise ImportedModelError(f"{where}: has {len(cells)} cells, but the header has {len(header)}")
    row = dict(zip(header, cells, strict=True))
    for name in _TEXTS:
        if not row[name]:
            raise ImportedModelError(f"{where}: column {name}: must be given")
    # An empty cell of what every layer has is a mistake, of what only some have it says that this one has not.
    numbers = {name: _number(where, name, row[name]) for name in _NUMBERS}
    numbers |= {name: _number(where, name, row[name]) for name in _OPTIONAL if row.get(name)}
    size = numbers["parameter_bytes"]
    if size != int(size):
        raise ImportedModelError(
            f"{where}: column parameter_bytes: must be a whole number of bytes, found {row['parameter_bytes']}"
        )
    return Layer(name=row["name"], kind=row["kind"], **numbers | {"parameter_bytes": int(size)})


def _number(where: str, name: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    largest = _LARGEST if name == "parameter_bytes" else math.inf
    if not (math.isfinite(value) and 0 <= value <= largest):
        bound = f" and at most {largest}" if value > largest else ""
        raise ImportedModelError(
            f"{where}: column {name}: must be a number of at least 0{bound}, found {cell or 'nothing'!r}"
        )
    return value
