"""The estimators that this distribution registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import EstimatorRecord, hookimpl

from .ernest import Ernest, per_gpu, per_node
from .estimator import FormEstimator
from .form import Form
from .optimus import Optimus, with_node_servers, with_worker_servers
from .plain_scaling import PerfectScaling
from .pollux import Pollux
from .reference import Reference

__all__ = ["nodewise_estimators"]

VERSION: Final = "1.0"
"""Of the equations and rules of fitting: another version may predict otherwise from the same runs."""

_FORMS: Final[tuple[tuple[str, str, Form], ...]] = (
    ("linear", "Perfect scaling: a worker's step takes what it took in the smallest run", PerfectScaling()),
    ("ernest-gpu", "Ernest (NSDI 2016), machines read as GPUs", Ernest(per_gpu)),
    ("ernest-node", "Ernest (NSDI 2016), machines read as nodes", Ernest(per_node)),
    ("optimus-workers", "Optimus (EuroSys 2018); all-reduce with p = workers", Optimus(with_worker_servers)),
    ("optimus-nodes", "Optimus (EuroSys 2018); all-reduce with p = nodes", Optimus(with_node_servers)),
    ("pollux", "Pollux (OSDI 2021), derived synchronisation, the published single start", Pollux()),
    ("pollux-restarts", "Pollux (OSDI 2021), derived synchronisation, best of 13 starts", Pollux(restarts=True)),
    ("reference", "A yardstick: non-negative least squares of terms inside a node and across nodes", Reference()),
)


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """One record for each published form."""
    return [
        EstimatorRecord(
            name=name,
            version=VERSION,
            description=description,
            estimator=FormEstimator(form),
            capabilities=frozenset({"observations", *(f"sync-mode:{mode.name.lower()}" for mode in form.sync_modes)}),
            plugin_api=">=1.0,<2",
        )
        for name, description, form in _FORMS
    ]
