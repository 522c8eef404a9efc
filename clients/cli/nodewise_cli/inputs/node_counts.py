"""Nodes and workers of each row, if only one of them is stated beside the GPUs of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodewise_cli.inputs.columns import RowError

__all__ = ["node_counts"]


def node_counts(columns: Mapping[str, Sequence[Any]]) -> dict[str, tuple[int, ...]]:
    """Both columns, filled in.

    Raises
    ------
    RowError
        For a row that does not state them, or states them in two ways that disagree.
    """
    cells_by_row = zip(columns["nodes"], columns["workers"], columns["gpus_per_node"], strict=True)
    pairs = [_pair(row, *cells) for row, cells in enumerate(cells_by_row)]
    return {"nodes": tuple(nodes for nodes, _ in pairs), "workers": tuple(workers for _, workers in pairs)}


def _pair(row: int, nodes: int | None, workers: int | None, per_node: int | None) -> tuple[int, int]:
    if workers is None:
        if nodes is None or per_node is None:
            raise RowError(row, "workers", _missing("gpus_per_node" if nodes is not None else ""))
        return nodes, nodes * per_node
    if per_node is None:
        if nodes is None:
            raise RowError(row, "nodes", _missing("gpus_per_node"))
        return nodes, workers
    node_count = -(-workers // per_node)
    if nodes is None and workers > per_node and workers % per_node:
        text = f"must be given, because workers ({workers}) is not a multiple of gpus_per_node ({per_node})"
        raise RowError(row, "nodes", text)
    if nodes is not None and nodes != node_count:
        text = f"must be {node_count} for {workers} workers with gpus_per_node {per_node}, found {nodes}"
        raise RowError(row, "nodes", text)
    return node_count, workers


def _missing(instead: str) -> str:
    return f"must be given{instead and f', or {instead} instead'}"
