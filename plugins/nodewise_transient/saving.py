"""Seconds of a save as a law of what is written: a constant of the store, and seconds per megabyte.

Weights (with the optimiser's state) and the description of the graph, which grows with the number of tensors, go
through different code and have slopes of their own. Where only the total is known one slope has to do. Coefficients
belong to one store; another needs its own saves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats

__all__ = ["SaveLaw", "fit_saves"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveLaw:
    """``constant_s + s_per_weights_mb x weights + s_per_graph_mb x graph``."""

    constant_s: float
    s_per_weights_mb: float
    s_per_graph_mb: float

    def seconds(self, weights_mb: npt.ArrayLike, graph_mb: npt.ArrayLike = 0.0) -> Floats:
        """Seconds of a save of so many megabytes of weights and of graph."""
        weights, graph = np.asarray(weights_mb, dtype=np.float64), np.asarray(graph_mb, dtype=np.float64)
        return self.constant_s + self.s_per_weights_mb * weights + self.s_per_graph_mb * graph


def fit_saves(seconds: npt.ArrayLike, weights_mb: npt.ArrayLike, graph_mb: npt.ArrayLike | None = None) -> SaveLaw:
    """Least squares on relative errors. Without graphs, or with fewer than four saves, there is one slope for all."""
    save_s = np.asarray(seconds, dtype=np.float64)
    weights = np.asarray(weights_mb, dtype=np.float64)
    columns = [np.ones_like(save_s), weights]
    if graph_mb is not None and len(save_s) > 3:
        columns.append(np.asarray(graph_mb, dtype=np.float64))
    if len(save_s) < 2:
        raise ValueError("at least two saves of different sizes are needed")
    design = np.stack(columns, axis=1) / save_s[:, np.newaxis]
    coefficients, *_ = np.linalg.lstsq(design, np.ones_like(save_s))
    return SaveLaw(
        constant_s=float(coefficients[0]),
        s_per_weights_mb=float(coefficients[1]),
        s_per_graph_mb=float(coefficients[2]) if len(coefficients) > 2 else 0.0,
    )
