"""Tables as the estimators' side of the service gets them: read by the command line, sent over the wire's messages."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from nodewise.domain.measurements import MeasurementTable
from nodewise.ports.limits import Limits
from nodewise.rpc.evaluations import read_table as off_the_wire
from nodewise_cli.inputs.table_content import measurement_table
from nodewise_cli.inputs.tables import read_table
from nodewise_values.wire import to_message

__all__ = ["table_of"]


@cache
def table_of(paths: tuple[Path, ...], dropped: tuple[str, ...] = ()) -> MeasurementTable:
    """Several tables as one, without some columns. Jobs of one name in several tables are one job."""
    if len(paths) == 1 and not dropped:
        return _sent(paths[0])
    rows: list[dict[str, str]] = []
    for path in paths:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows += csv.DictReader(stream)
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in dropped]
    with TemporaryDirectory() as folder:
        joined = Path(folder) / "joined.csv"
        _write(joined, names, rows)
        return _sent(joined)


def _write(path: Path, names: Sequence[str], rows: Sequence[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def _sent(path: Path) -> MeasurementTable:
    return off_the_wire(to_message(measurement_table(read_table(path))), "table", Limits())
