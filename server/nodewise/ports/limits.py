"""Limits of a call. Every error about a limit names it and the alternative."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from nodewise.domain.errors import NodewiseError, Reason

__all__ = ["Limits", "too_much"]

LARGEST_CONFIGURATION: Final = 1 << 20
"""Largest number of nodes or workers: beyond it exact models, which are linear in it, take minutes and gigabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a call, each at least 1. Raises ValueError otherwise.

    Attributes
    ----------
    rows_per_call : int
        Configurations of a Predict, or of all jobs or architectures of a BatchPredict together: 1,000 jobs on 64
        configurations each.
        A reply of so many rows keeps below ``reply_bytes`` with few columns; one of every column at about 20,000 rows.
    jobs_per_call : int
        Jobs of a BatchPredict or Schedule.
    rows_per_batch : int
        Observations in one ingest batch or append.
    backtest_rows : int
        Rows of a table.
    max_nodes, max_workers : int
        Largest configuration that is not taken for a typing error; exact models are linear in it.
    simulated_steps_per_call : int
        Steps of a call's simulations, over all rows, whatever their size.
    simulated_cycles_per_question : int
        Cycles of single workers that the simulations of one job's question count, of all rows together: a million take
        about a second, and each round of a synchronous job is one of every worker.
    trace_unpacked_bytes : int
        Largest trace once it is unpacked: about 20 million events of a rank.
    simulated_jobs_per_call : int
        Jobs of a Simulate (a few times the 82,247 of the Philly trace); of all its repetitions together where columns
        of jobs or of the timeline are answered.
    simulation_rows_per_call : int
        Rows of all curves that are given to a Simulate, or predicted for it, together: 8 bytes a number, four of them.
    simulation_repetitions_per_call : int
        Repetitions of a Simulate.
    cluster_pools_per_call, cluster_nodes_per_call, cluster_devices_per_call : int
        Pools of a cluster to schedule on or to simulate, nodes of all its pools together, and their devices: eight on
        each of the most nodes.
    schedule_rows_per_call : int
        Counts to predict for all jobs of a Schedule: 512 jobs on each of 384 counts, about 50 MB.
    devices_per_node : int
        Devices on one node of a cluster, a few times the largest machines that are sold as one: the scheduler
        indexes nodes by their free devices.
    sharing_jobs_per_call, sharing_runs_per_call, sharing_sets_per_call : int
        Jobs, measured pairs and sets of a PredictSharing: every pair of 180 jobs. Learning repeatedly inverts matrices
        of some columns for each job that ran: seconds for a hundred jobs, a minute for a few hundred.
    entries_per_list : int
        Entries of a list of messages or names in a request without another limit; counted before decoding.
    parts_per_call : int
        Fields of a request on all levels that hold such lists, together: about a tenth of a second of counting.
    bytes_in_flight : int
        Bytes of requests above 64 KiB in memory, over all calls. Decoding takes up to about thirty times as much
        memory as the bytes on the wire.
    unread_reply_bytes : int
        Bytes of replies above 64 KiB that callers have not read yet, over all calls; those of streams and over HTTP do
        not count.
    reply_bytes : int
        Largest reply: gRPC's default limit of a client.
    """

    rows_per_call: int = 65_536
    jobs_per_call: int = 4_096
    rows_per_batch: int = 10_000
    backtest_rows: int = 100_000
    max_nodes: int = 16_384
    max_workers: int = 131_072
    simulated_steps_per_call: int = 10_000_000
    simulated_cycles_per_question: int = 8_000_000
    trace_unpacked_bytes: int = 8 * 1024 * 1024 * 1024
    simulated_jobs_per_call: int = 250_000
    simulation_rows_per_call: int = 1_000_000
    simulation_repetitions_per_call: int = 1_000
    cluster_pools_per_call: int = 256
    cluster_nodes_per_call: int = 65_536
    cluster_devices_per_call: int = 524_288
    schedule_rows_per_call: int = 262_144
    devices_per_node: int = 4_096
    sharing_jobs_per_call: int = 512
    sharing_runs_per_call: int = 4_096
    sharing_sets_per_call: int = 16_384
    entries_per_list: int = 65_536
    parts_per_call: int = 524_288
    bytes_in_flight: int = 64 * 1024 * 1024
    unread_reply_bytes: int = 128 * 1024 * 1024
    reply_bytes: int = 4 * 1024 * 1024

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    """They are settings."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 1:
                raise ValueError(f"{each.name} must be at least 1")
        if max(self.max_nodes, self.max_workers) > LARGEST_CONFIGURATION:
            raise ValueError(f"max_nodes and max_workers must be at most {LARGEST_CONFIGURATION}")


def too_much(text: str, limit: str, value: int, count: int, alternative: str = "") -> NodewiseError:
    """The error for a call that exceeds a limit.

    Parameters
    ----------
    text : str
        What was found, the limit, and what to do.
    alternative : str
        Method that takes larger requests; empty = none.
    """
    metadata = {"limit": limit, "value": str(value), "found": str(count)}
    return NodewiseError(Reason.LIMIT_EXCEEDED, text, metadata | ({"alternative": alternative} if alternative else {}))
