"""The table of results, for a terminal and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodewise_conformance.running import Results
from nodewise_conformance.scenarios import Scenario

__all__ = ["page", "sums", "table"]

_MARKS: Final = {None: "", True: "✓", False: "✗"}
_INTRODUCTION: Final = """# The conformance of the clients

`make conformance` runs every scenario below against the client of each language: a real server, and one between it and
the client that injects faults and counts attempts. ✓ = the client did what it must, ✗ = it did not, empty = the
scenario is not for this column. [How it works](../clients/conformance/PROTOCOL.md).
`make conformance RESTARTS=100` restarts a server under the load of all clients instead.

Every RPC of the contract and every reason of the [catalogue of errors](errors.md) is among the scenarios: the run fails
where one is not.
"""


def table(results: Results, scenarios: Sequence[Scenario]) -> str:
    """Scenarios by columns, for a terminal."""
    width = max(len(scenario.name) for scenario in scenarios)
    lines = [" " * width + "  " + "  ".join(results.columns)]
    for scenario in scenarios:
        marks = (_mark(results, scenario, column).ljust(len(column)) for column in results.columns)
        lines.append(f"{scenario.name.ljust(width)}  {'  '.join(marks)}")
    return "\n".join([*lines, sums(results)])


def sums(results: Results) -> str:
    """How many of each column are right."""
    counts = []
    for column in results.columns:
        complaints_of_column = [complaints for (_, name), complaints in results.complaints.items() if name == column]
        counts.append(
            f"{column}: {sum(not complaints for complaints in complaints_of_column)} of {len(complaints_of_column)}"
        )
    return "; ".join(counts)


def page(results: Results, scenarios: Sequence[Scenario], left_out: Mapping[str, str]) -> str:
    """The page for people: what each scenario requires, and which clients meet it."""
    lines = [_INTRODUCTION]
    if left_out:
        absent = "; ".join(f"{name} ({why})" for name, why in left_out.items())
        lines.append(f"Not run on the machine that wrote this page: {absent}.\n")
    file = ""
    for scenario in scenarios:
        if scenario.file != file:
            file = scenario.file
            lines += ["", f"## {file.replace('_', ' ').capitalize()}", ""]
            lines += ["| scenario | what a client must do | " + " | ".join(results.columns) + " |"]
            lines += ["|---|---|" + "---|" * len(results.columns)]
        marks = " | ".join(_mark(results, scenario, column) for column in results.columns)
        lines.append(f"| `{scenario.name}` | {scenario.about} | {marks} |")
    return "\n".join(lines) + "\n"


def _mark(results: Results, scenario: Scenario, column: str) -> str:
    complaints = results.complaints.get((scenario.name, column))
    return _MARKS[None if complaints is None else not complaints]
