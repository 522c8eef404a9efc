"""The columns of a measurements table: what they may hold, and what an empty cell stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nodewise_cli.inputs.cells import LONGEST, CellParser, by_fact, choice, groups, moment, placement, text
from nodewise_client import Recomputation, SyncMode
from nodewise_values import facts
from nodewise_values.fact import by_csv

__all__ = [
    "BY_WORKER_MODES",
    "COLUMNS",
    "FACTS",
    "OF_PHASES",
    "PARAMETER_SERVER_MODES",
    "PHASES",
    "REQUIRED",
    "TRANSFORMER",
    "Column",
]

PARAMETER_SERVER_MODES: Final = frozenset({"async", "sync", "hybrid"})
BY_WORKER_MODES: Final = frozenset({"async", "hybrid"})
"""Modes of which a step is one worker's mini-batch."""
PHASES: Final = ("compute_s", "download_s", "upload_s", "update_s")
OF_PHASES: Final = tuple(name for name in by_csv(facts.PHASE_TIMINGS) if name not in PHASES)
"""What may be known of phases besides their means."""
TRANSFORMER: Final = tuple(by_csv(facts.TRANSFORMER))
FACTS: Final = tuple(
    name for name in by_csv(facts.WORKLOAD, facts.NETWORK, facts.TRANSFORMER) if name != "link_bytes_per_s"
)
"""What a job trains and over what network: the same in all its rows, but for the link, which may differ."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table.

    Attributes
    ----------
    parse : callable
        Reads a cell that is not empty.
    default : object
        What an empty cell, or an absent column, stands for; None = not known.
    required : bool
        The column must be there.
    filled : bool
        No cell of it may be empty.
    """

    parse: CellParser
    default: Any = None
    required: bool = False
    filled: bool = False


REQUIRED: Final = ("job", "device", "nodes", "workers", "steps_per_s", "split")
_DEFAULTS: Final = {"sync": "allreduce", "parameter_servers": 0, "accumulation": 1}


def _parsers() -> dict[str, CellParser]:
    """The contract's own columns by its facts, and those that are more than one number or text, or a table's alone."""
    of_contract = by_csv(
        *(facts.CONFIGURATIONS, facts.OBSERVATIONS, facts.PHASE_TIMINGS),
        *(facts.WORKLOAD, facts.NETWORK, facts.TRANSFORMER),
    )
    return {name: by_fact(fact) for name, fact in of_contract.items()} | {
        "job": text(LONGEST),
        "split": choice("train", "test"),
        "sync": choice(*SyncMode),
        "recompute": choice(*Recomputation),
        "placement": placement,
        "groups": groups,
        "measured_at": moment,
        "micro_batch": by_fact(of_contract["batch_per_worker"]),
    }


def _columns() -> dict[str, Column]:
    parsers = _parsers()
    return {
        name: Column(
            parsers[name],
            default=_DEFAULTS.get(name),
            required=name in REQUIRED,
            filled=name in REQUIRED and name != "steps_per_s",
        )
        for name in dict.fromkeys((*REQUIRED, *parsers))
    }


COLUMNS: Final = _columns()
