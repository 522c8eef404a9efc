"""Laws of distributed training: the mathematics that Nodewise's estimators share.

Pure functions of numbers and arrays, in seconds, customers and rates per second. They read nothing,
remember nothing that changes an answer, and depend on NumPy and SciPy alone.
"""

from nodewise_laws.barrier import barrier_round_best_overlap_s, barrier_round_no_overlap_s
from nodewise_laws.barrier_queue import QueuedRounds, barrier_round_queued
from nodewise_laws.bounds import (
    ThroughputBounds,
    asymptotic_bounds,
    balanced_job_bounds,
    erlang_finite_source,
    knee_population,
)
from nodewise_laws.multiclass_mva import MAX_MULTICLASS_STATES, MulticlassMva, exact_mva_multiclass
from nodewise_laws.mva import MvaCurve, MvaCurves, exact_mva, exact_mva_many
from nodewise_laws.order_statistics import (
    MAX_COEFFICIENT_OF_VARIATION,
    MAX_WORKERS,
    expected_maximum,
    expected_maximum_exponential,
    expected_maximum_gamma,
    expected_maximum_normal,
)
from nodewise_laws.soft_minimum import soft_minimum, soft_minimum_demand

__all__ = [
    "MAX_COEFFICIENT_OF_VARIATION",
    "MAX_MULTICLASS_STATES",
    "MAX_WORKERS",
    "MulticlassMva",
    "MvaCurve",
    "MvaCurves",
    "QueuedRounds",
    "ThroughputBounds",
    "asymptotic_bounds",
    "balanced_job_bounds",
    "barrier_round_best_overlap_s",
    "barrier_round_no_overlap_s",
    "barrier_round_queued",
    "erlang_finite_source",
    "exact_mva",
    "exact_mva_many",
    "exact_mva_multiclass",
    "expected_maximum",
    "expected_maximum_exponential",
    "expected_maximum_gamma",
    "expected_maximum_normal",
    "knee_population",
    "soft_minimum",
    "soft_minimum_demand",
]
