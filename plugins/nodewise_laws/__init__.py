"""Laws of distributed training: the mathematics that Nodewise's estimators share.

Pure functions of numbers and arrays, in seconds, customers and rates per second. They read nothing,
remember nothing that changes an answer, and depend on NumPy, SciPy and numba alone.
"""

from nodewise_laws.barrier_backup import MAX_MIXED_WORKERS, MixedRound, barrier_round_backup, barrier_round_mixed
from nodewise_laws.barrier_queue import QueuedRounds, barrier_round_queued
from nodewise_laws.bounds import ThroughputBounds, asymptotic_bounds, balanced_job_bounds, knee_population
from nodewise_laws.kth_order_statistic import expected_order_statistic_gamma
from nodewise_laws.linearizer import bard_schweitzer, linearizer
from nodewise_laws.load_dependent import LoadDependentCurve, flow_capped_rates, load_dependent
from nodewise_laws.multiclass import MAX_CHEAP_STATES, multiclass
from nodewise_laws.multiclass_mva import MAX_MULTICLASS_STATES, MulticlassMethod, MulticlassMva, exact_mva_multiclass
from nodewise_laws.mva import MvaCurve, MvaCurves, OverlappedMva, exact_mva, exact_mva_many, overlapped_mva
from nodewise_laws.order_statistics import MAX_COEFFICIENT_OF_VARIATION, MAX_WORKERS, expected_maximum_gamma
from nodewise_laws.soft_minimum import soft_minimum, soft_minimum_demand
from nodewise_laws.staleness import private_cycle_cv, staleness_deviation, staleness_p95

__all__ = [
    "MAX_CHEAP_STATES",
    "MAX_COEFFICIENT_OF_VARIATION",
    "MAX_MIXED_WORKERS",
    "MAX_MULTICLASS_STATES",
    "MAX_WORKERS",
    "LoadDependentCurve",
    "MixedRound",
    "MulticlassMethod",
    "MulticlassMva",
    "MvaCurve",
    "MvaCurves",
    "OverlappedMva",
    "QueuedRounds",
    "ThroughputBounds",
    "asymptotic_bounds",
    "balanced_job_bounds",
    "bard_schweitzer",
    "barrier_round_backup",
    "barrier_round_mixed",
    "barrier_round_queued",
    "exact_mva",
    "exact_mva_many",
    "exact_mva_multiclass",
    "expected_maximum_gamma",
    "expected_order_statistic_gamma",
    "flow_capped_rates",
    "knee_population",
    "linearizer",
    "load_dependent",
    "multiclass",
    "overlapped_mva",
    "private_cycle_cv",
    "soft_minimum",
    "soft_minimum_demand",
    "staleness_deviation",
    "staleness_p95",
]
