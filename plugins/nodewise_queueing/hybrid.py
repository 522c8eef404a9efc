"""Hybrid training: each worker's first mini-batches synchronously, behind a barrier, the rest asynchronously."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Floats
from nodewise_queueing.tables import BASIC, Columns
from nodewise_queueing.unsaid import mixed_unsaid

__all__ = ["hybrid_columns"]


def hybrid_columns(synchronous: Columns, asynchronous: Columns, sync_fraction: Floats, switch_s: Floats) -> Columns:
    """Answers of a job that runs a share f of its mini-batches synchronously, row by row.

    ::

        step = f t_BSP + (1 - f) t_ASP;   T = (N / W) step + T_switch

    t_BSP is a round, in which every worker does one mini-batch, and t_ASP the cycle of one asynchronous worker; N are
    the mini-batches of all workers. Deviations of the two add up: they rest on the same measurements. Staleness is
    that of all mini-batches, its percentile that of the asynchronous ones.
    """
    first, second = synchronous.basic, asynchronous.basic
    share = np.stack([sync_fraction, 1.0 - sync_fraction])
    steps = share * np.stack([first["step_s"], second["step_s"]])
    step_s = steps.sum(axis=0)
    weight = steps / step_s
    basic = {
        "step_s": step_s,
        "log_spread": weight[0] * first["log_spread"] + weight[1] * second["log_spread"],
        "extrapolation": np.maximum(
            np.where(share[0] > 0.0, first["extrapolation"], 1.0),
            np.where(share[1] > 0.0, second["extrapolation"], 1.0),
        ),
        "staleness_mean": share[1] * second["staleness_mean"],
        "staleness_p95": np.where(share[1] > 0.0, second["staleness_p95"], 0.0),
    }
    parts = _add(synchronous.breakdown_s, asynchronous.breakdown_s, share)
    return Columns.of(
        {name: basic[name] for name in BASIC},
        parts=parts,
        utilisation=_add(synchronous.utilisation, asynchronous.utilisation, weight),
        extra={"sync_step_s": first["step_s"], "async_step_s": second["step_s"]},
        bottleneck=np.argmax(list(parts.values()), axis=0),
        notices=tuple(dict.fromkeys((*synchronous.notices, *asynchronous.notices))),
        once_s=np.where((share > 0.0).all(axis=0), switch_s, 0.0),
        unsaid=mixed_unsaid([synchronous.unsaid, asynchronous.unsaid], list(weight)),
    )


def _add(first: dict[str, Floats], second: dict[str, Floats], weight: Floats) -> dict[str, Floats]:
    """Columns of both by name, weighted; one that is missing on a side counts as 0 there."""
    none = np.zeros(weight.shape[1])
    names = dict.fromkeys((*first, *second))
    return {name: weight[0] * first.get(name, none) + weight[1] * second.get(name, none) for name in names}
