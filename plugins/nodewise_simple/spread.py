"""How far off the rules are: deviations of ln(step time) that grow with the distance from what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats

__all__ = ["DEVIATION_TO_MEAN", "MORE_REPLICAS", "SPREADS", "Spread"]

DEVIATION_TO_MEAN: Final = float(np.sqrt(2.0 / np.pi))
"""Mean of the absolute value of a normal variable over its standard deviation."""


AGAIN: Final = 0.10
"""Standard deviation of ln(step time) of what was run and is run again: equal configurations differ by 2.6 to 8.7 % on
average (Sia's clusters), matching entries of two vendors by 4 % in the middle and 13 % at the ninth decile (MLPerf)."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation of ln(step time): ``near`` beside the runs, and ``per_reach`` for each unit of reach."""

    near: float
    per_reach: float

    def at(self, reach: Floats) -> Floats:
        """Spread of rows at such a distance; a measured row (reach below 0) has measurement noise only."""
        away = np.hypot(self.near, self.per_reach * np.maximum(reach, 0.0))
        return np.where(reach < 0.0, AGAIN, away)


MORE_REPLICAS: Final = Spread(0.05, 0.043)
"""Of a transformer's last step where nothing but the number of replicas grows: twice what is left of repeated runs of a
replica (0.035 of each), and what steps lengthen by with the replicas, at most 3 % a doubling (MPT, GPT-3, InternEvo:
1 to 3 %). MPT (llm-foundry) has a mean error of 0.027 where this expects 0.055; sources that took no part 0.020 of
0.059 (NeMo on H100 and GB200) and 0.067 of 0.073 (MaxText on TPUs)."""

SPREADS: Final = {
    "last-known": Spread(0.14, 0.08),
    "batch-line": Spread(0.24, 0.06),
    "power-law": Spread(0.40, 0.10),
}
"""Of the least interval score at 90 %, sources weighing alike. Entries of MLPerf and of InternEvo stay within; on
clusters of slow links a line in the batch errs by a factor of two wherever it is asked, which is what ``near`` is for
(research/learn_simple_rules.py)."""
