"""What ends the sizes that a recommendation was chosen from: the question's range, or how far the evidence reaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import FewestDevices, RecommendationBound, Rule
from nodewise.domain.words import counted
from nodewise.estimation.answer.rules import Rows
from nodewise.estimation.reach import Reach

__all__ = ["bound_of", "out_of_reach"]


def bound_of(
    rule: Rule, rows: Rows, chosen: int, reach: Reach, most: float, further: NDArray[np.bool_] | None
) -> tuple[RecommendationBound, str]:
    """What kept the recommendation from being larger, and how its reason says so.

    Parameters
    ----------
    rows, chosen : Rows, int
        Those that could be recommended, and the one that is.
    most : float
        Largest multiple of the evidence that is recommended; 0 = no limit.
    further : bool or None
        Answered rows of the question that lie further; None = there are none.
    """
    asked, scale = rows.configurations, int(rows.scale[chosen])
    full = rule.max_nodes is not None and int(rows.held[chosen]) >= rule.max_nodes
    if isinstance(rule, FewestDevices) or full or scale < rows.scale.max():
        return RecommendationBound.NOTHING, ""
    if further is not None:
        by_nodes = _by_nodes(asked, reach, most, further)
    else:
        sizes = asked.nodes if rows.scale_name == "nodes" else asked.workers
        if scale == rows.scale.min() or scale < sizes.max():  # nothing was compared, or a larger row has no answer
            return RecommendationBound.NOTHING, ""
        most_nodes, most_workers = reach.limits(most)
        counts_nodes = rows.scale_name == "nodes"
        by_nodes = counts_nodes and scale + 1 > most_nodes
        next_workers = int(rows.workers[chosen]) * (scale + 1) / scale
        if reach.by_phases or not (by_nodes or next_workers > most_workers):
            measured = "" if reach.measured else ", and no run of the job was measured"
            return RecommendationBound.RANGE, f"; the range asked about ends here{measured}"
    text = f"; {_reaches(reach, most, by_nodes=by_nodes)}: measure {rows.said(chosen)} to look further"
    return RecommendationBound.EVIDENCE, text


def out_of_reach(configurations: Configurations, reach: Reach, most: float, further: NDArray[np.bool_]) -> str:
    """Why no row is recommended where those that could be lie further than the evidence reaches."""
    told = _reaches(reach, most, by_nodes=_by_nodes(configurations, reach, most, further))
    return f"no row is near enough: {told}; measure a larger run, or state max_extrapolation_ratio (0 = no limit)"


def _by_nodes(configurations: Configurations, reach: Reach, most: float, further: NDArray[np.bool_]) -> bool:
    """Whether the rows that lie further do so by their nodes, else by their workers alone."""
    return bool(configurations.nodes[further].min() > reach.limits(most)[0])


def _reaches(reach: Reach, most: float, *, by_nodes: bool) -> str:
    if reach.by_phases:
        return f"{most:g} times what the evidence identifies is the furthest that is recommended"
    scale = counted(reach.nodes, "node") if by_nodes else counted(reach.workers, "worker")
    return f"the evidence reaches {scale}, and {most:g} times that is the furthest that is recommended"
