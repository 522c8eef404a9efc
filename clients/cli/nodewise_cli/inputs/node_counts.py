"""Nodes and workers of each row, where only one of them is stated beside the GPUs of a node."""

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
        For a row that does not say them, or says them in two ways that disagree.
    """
    told = zip(columns["nodes"], columns["workers"], columns["gpus_per_node"], strict=True)
    pairs = [_pair(row, *cells) for row, cells in enumerate(told)]
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
    needed = -(-workers // per_node)
    if nodes is None and workers > per_node and workers % per_node:
        text = f"must be given where workers ({workers}) are no multiple of gpus_per_node ({per_node}), found nothing"
        raise RowError(row, "nodes", text)
    if nodes is not None and nodes != needed:
        text = f"must be {needed}, as {workers} workers with gpus_per_node {per_node} take, found {nodes}"
        raise RowError(row, "nodes", text)
    return needed, workers


def _missing(instead: str) -> str:
    return f"must be given, found nothing{instead and f'; {instead} would do'}"
