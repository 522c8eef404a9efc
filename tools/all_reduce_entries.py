"""Measured all-reduces as entries of a catalogue.

`all_reduce_entries.py FILE... (--device NAME | --link NAME) --source TEXT`. Each file is what nccl-tests'
`all_reduce_perf` printed, or a table of vTrain's profiler (CSV: size in bytes, count, type, then time in ns and bus
bandwidth in GB/s, out of place and in place). Printed is TOML for the file that the setting `catalogue` names. Times
are those out of place. How many ranks took part follows from time and bus bandwidth, 2 (n - 1) / n x size / time, and
is checked against the ranks that nccl-tests lists. A table is thinned to `--sizes` sizes, evenly spaced by their
logarithms: between them times are interpolated.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

UNITS: Final = {"us": 1e-6, "ns": 1e-9, "ms": 1e-3, "s": 1.0}
RANK: Final = re.compile(r"#\s+Rank\s+\d+\s")
TIME: Final = re.compile(r"\((us|ns|ms|s)\)")
CLOSE: Final = 0.02
"""How far the counted ranks may be from a whole number: bus bandwidths are printed with two decimals."""


class UnreadableError(ValueError):
    """A file that holds no all-reduces; the text names file and line, and what would be right."""


@dataclass(frozen=True, slots=True)
class Measured:
    """All-reduces of so many ranks: sizes in bytes, ascending, and seconds."""

    ranks: int
    sizes_bytes: tuple[float, ...]
    seconds: tuple[float, ...]


def read(path: Path) -> Measured:
    """A file in either format.

    Raises
    ------
    UnreadableError
        Naming the file, and the line where there is one.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    table = bool(lines) and lines[0].startswith("size(B),")
    listed = 0 if table else sum(bool(RANK.match(line)) for line in lines)
    rows = sorted(_vtrain(lines, path) if table else _nccl_tests(lines, path))
    if len(rows) < 2 or len({size for size, _, _ in rows}) < len(rows):
        raise UnreadableError(f"{path}: must hold at least 2 sizes of an all-reduce, each once, found {len(rows)}")
    ranks = _ranks(rows[-1], path)
    if listed and listed != ranks:
        raise UnreadableError(f"{path}: lists {listed} ranks, but its bus bandwidths are those of {ranks}")
    return Measured(ranks, tuple(size for size, _, _ in rows), tuple(seconds for _, seconds, _ in rows))


Row = tuple[float, float, float]
"""Bytes, seconds, bus bandwidth in bytes/s."""


def _vtrain(lines: Sequence[str], path: Path) -> Iterator[Row]:
    # Two columns have the same name: by position.
    for number, row in enumerate(csv.reader(lines[1:]), start=2):
        try:
            yield float(row[0]), float(row[3]) * 1e-9, float(row[4]) * 1e9
        except (ValueError, IndexError):
            text = "must be size, count, type, time in ns, bus bandwidth in GB/s"
            raise UnreadableError(f"{path}:{number}: {text}, found {','.join(row)!r}") from None


def _nccl_tests(lines: Sequence[str], path: Path) -> Iterator[Row]:
    """Rows below the heading, whose columns differ between versions: size ... time algbw busbw ..."""
    place, unit_s = -1, 1e-6
    for number, line in enumerate(lines, start=1):
        words = line.lstrip("# ").split()
        if line.startswith("#") and words[:2] == ["size", "count"] and "time" in words:
            place = words.index("time")
        unit = TIME.search(line) if line.startswith("#") else None
        unit_s = UNITS[unit.group(1)] if unit else unit_s
        if not line.strip()[:1].isdigit() or place < 0:
            continue
        try:
            size, seconds, bus = float(words[0]), float(words[place]) * unit_s, float(words[place + 2]) * 1e9
        except (ValueError, IndexError):
            raise UnreadableError(
                f"{path}:{number}: must be a row of all_reduce_perf, found {line.strip()!r}"
            ) from None
        if size > 0.0:
            yield size, seconds, bus


def _ranks(row: Row, path: Path) -> int:
    size, seconds, bus = row
    sent = bus * seconds / size
    found = 2.0 / (2.0 - sent) if sent < 2.0 else 0.0
    if found < 2.0 - CLOSE or abs(found - round(found)) > CLOSE * found:
        text = f"a bus bandwidth of {sent:.3f} x size / time is no all-reduce's, which has 2 (n - 1) / n"
        raise UnreadableError(f"{path}: {text}")
    return round(found)


def thinned(measured: Measured, most: int) -> Measured:
    """At most so many sizes: the smallest, the largest, and evenly spaced ones between them."""
    logs = np.log(measured.sizes_bytes)
    nearest = np.abs(logs[:, None] - np.linspace(logs[0], logs[-1], most)).argmin(axis=0)
    kept = sorted(set(nearest.tolist()))
    sizes, seconds = (tuple(each[place] for place in kept) for each in (measured.sizes_bytes, measured.seconds))
    return Measured(measured.ranks, sizes, seconds)


def entry(measured: Measured, kind: str, name: str, source: str) -> str:
    """TOML of one table; ``kind`` is "device" or "link"."""
    # What JSON writes of texts, TOML reads.
    return "\n".join(
        (
            f"[all_reduces.{json.dumps(f'{name}, {measured.ranks} ranks')}]",
            f"{kind} = {json.dumps(name)}",
            f"ranks = {measured.ranks}",
            f"sizes_bytes = [{', '.join(f'{size:.0f}' for size in measured.sizes_bytes)}]",
            f"seconds = [{', '.join(f'{seconds:.6g}' for seconds in measured.seconds)}]",
            f"source = {json.dumps(source)}",
            "",
        )
    )


def main(arguments: Sequence[str]) -> Iterable[str]:
    """TOML of every file that the command line names."""
    parser = argparse.ArgumentParser(description="Measured all-reduces as entries of a catalogue.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--device", help="whose node the all-reduces ran in")
    what.add_argument("--link", help="joins the devices of the node; counts for all that it joins")
    parser.add_argument("--source", required=True, help="where and when measured")
    parser.add_argument("--sizes", type=int, default=32, help="most sizes of a table (default 32)")
    chosen = parser.parse_args(arguments)
    if chosen.sizes < 2:
        parser.error("--sizes: must be at least 2")
    kind = "device" if chosen.device else "link"
    try:
        tables = [thinned(read(path), chosen.sizes) for path in chosen.files]
    except (OSError, UnreadableError) as error:
        parser.error(str(error))
    return [entry(table, kind, chosen.device or chosen.link, chosen.source) for table in tables]


if __name__ == "__main__":
    print("\n".join(main(sys.argv[1:])))
