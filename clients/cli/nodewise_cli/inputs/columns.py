"""The columns of a measurements table: what they may hold, and what an empty cell stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nodewise_cli.inputs.cells import CellParser, choice, flag, groups, moment, number, placement, text, whole

__all__ = [
    "BY_WORKER_MODES",
    "COLUMNS",
    "FACTS",
    "NETWORK",
    "OF_PHASES",
    "PARAMETER_SERVER_MODES",
    "PHASES",
    "REQUIRED",
    "TRANSFORMER",
    "Column",
]

LONGEST_NAME: Final = 256
LONGEST_DEVICE: Final = 64
LARGEST_BYTES: Final = 1 << 53

PARAMETER_SERVER_MODES: Final = frozenset({"async", "sync", "hybrid"})
BY_WORKER_MODES: Final = frozenset({"async", "hybrid"})
"""Modes of which a step is one worker's mini-batch."""
PHASES: Final = ("compute_s", "download_s", "upload_s", "update_s")
TRANSFORMER: Final = ("layers", "hidden_size", "attention_heads", "sequence_length", "vocabulary_size")
NETWORK: Final = ("worker_link_bytes_per_s", "half_duplex", "per_message_s", "round_trip_s")
FACTS: Final = ("parameter_bytes", "tensors", "framework", *NETWORK, *TRANSFORMER)
"""What a job trains and over what network: the same in all its rows."""
OF_PHASES: Final = ("compute_cv", "transfer_cv", "hidden_s", "phase_steps")
"""What may be known of phases besides their means."""


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


_COUNT: Final = Column(whole(1))
_SECONDS: Final = Column(number(least=0, unit="seconds"))

COLUMNS: Final[dict[str, Column]] = {
    "job": Column(text(LONGEST_NAME), required=True, filled=True),
    "device": Column(text(LONGEST_DEVICE), required=True, filled=True),
    "nodes": Column(whole(1), required=True, filled=True),
    "workers": Column(whole(1), required=True, filled=True),
    "steps_per_s": Column(number(above=0, unit="steps per second"), required=True),
    "split": Column(choice("train", "test"), required=True, filled=True),
    "sync": Column(choice("async", "sync", "allreduce", "hybrid"), default="allreduce"),
    "parameter_servers": Column(whole(0), default=0),
    "placement": Column(placement),
    "batch_per_worker": _COUNT,
    "accumulation": Column(whole(1), default=1),
    "compute_s": _SECONDS,
    "download_s": _SECONDS,
    "upload_s": _SECONDS,
    "update_s": _SECONDS,
    "compute_cv": Column(number(least=0)),
    "transfer_cv": Column(number(least=0)),
    "hidden_s": _SECONDS,
    "phase_steps": _COUNT,
    "parameter_bytes": Column(whole(1, LARGEST_BYTES)),
    "tensors": _COUNT,
    "link_bytes_per_s": Column(number(above=0, unit="bytes per second")),
    "worker_link_bytes_per_s": Column(number(above=0, unit="bytes per second")),
    "half_duplex": Column(flag),
    "per_message_s": _SECONDS,
    "round_trip_s": _SECONDS,
    "exposed_sync_s": _SECONDS,
    "measured_at": Column(moment),
    "steps": _COUNT,
    "step_cv": Column(number(least=0)),
    "groups": Column(groups),
    "backup_workers": Column(whole(0)),
    "hybrid_sync_fraction": Column(number(least=0, most=1)),
    "hybrid_switch_s": _SECONDS,
    "global_batch": _COUNT,
    "micro_batch": _COUNT,
    "layers": _COUNT,
    "hidden_size": _COUNT,
    "attention_heads": _COUNT,
    "sequence_length": _COUNT,
    "vocabulary_size": _COUNT,
    "tensor_parallel": _COUNT,
    "pipeline_parallel": _COUNT,
    "data_parallel": _COUNT,
    "precision": Column(text(16)),
    "recompute": Column(choice("none", "selective", "full")),
    "sequence_parallel": Column(flag),
    "interleave": _COUNT,
    "zero_stage": Column(whole(0, 3)),
    "expert_parallel": _COUNT,
    "context_parallel": _COUNT,
    "framework": Column(text(64)),
}
REQUIRED: Final = tuple(name for name, column in COLUMNS.items() if column.required)
