"""The plugin API: everything that a plugin imports.

A plugin is a module (or object) named by an entry point of the group ``nodewise.plugins``. It implements one or more of
the hooks with :data:`hookimpl`; hooks register records and never compute. The records carry the objects that answer.

Import all names from this module; it has all that the modules below list in ``__all__``. Each kind mostly uses:

- all: ``hookimpl``, ``Floats``, ``Ints``, ``as_floats``, ``as_ints``, ``freeze``, ``NodewiseError``, ``Reason``;
- estimators: ``EstimatorRecord``, ``Assessment``, ``Refusal``, ``Profile``, ``Query``, ``Context``, ``Configurations``,
  ``Options``, ``Predictions``, ``SyncMode``;
- policies: ``PolicyRecord``, ``ClusterState``, ``Curves``, ``Budget``, ``Allocation``, ``Grant``, ``Shares``;
- sharing models: ``SharingModelRecord``, ``SharingQuestion``, ``SoloJob``, ``PairRun``, ``DeviceShares``;
- trace readers: ``TraceReaderRecord``, ``TraceSource``, ``Trace``, ``Lane``, ``EventKind``, ``TraceReport``;
- diagnosers: ``DiagnoserRecord``, ``DiagnoserContext``, ``ReplayQuestion``, ``Replay``, ``DiagnosisQuestion``,
  ``Diagnosis``.

Example
-------
>>> from nodewise.plugin import EstimatorRecord, hookimpl
>>> @hookimpl
... def nodewise_estimators():
...     return [EstimatorRecord(name="mine", version="1.0", description="...", estimator=MyEstimator())]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from nodewise.domain.architectures import *
    from nodewise.domain.budget import *
    from nodewise.domain.columns import *
    from nodewise.domain.completion_offers import *
    from nodewise.domain.completions import *
    from nodewise.domain.configurations import *
    from nodewise.domain.diagnosis import *
    from nodewise.domain.errors import NodewiseError as NodewiseError
    from nodewise.domain.errors import Reason as Reason
    from nodewise.domain.errors import Refusal as Refusal
    from nodewise.domain.errors import Violation as Violation
    from nodewise.domain.failures import *
    from nodewise.domain.lifetimes import *
    from nodewise.domain.planning import *
    from nodewise.domain.policy_parameters import *
    from nodewise.domain.predictions import *
    from nodewise.domain.profile import *
    from nodewise.domain.replay import *
    from nodewise.domain.schedule import *
    from nodewise.domain.shared_pairs import *
    from nodewise.domain.sharing import *
    from nodewise.domain.simulated_steps import *
    from nodewise.domain.step_times import *
    from nodewise.domain.trace import *
    from nodewise.domain.transitions import *
    from nodewise.domain.workload import *
    from nodewise.plugin.architectures import *
    from nodewise.plugin.catalogue import *
    from nodewise.plugin.completions import *
    from nodewise.plugin.diagnosers import *
    from nodewise.plugin.estimators import *
    from nodewise.plugin.hooks import *
    from nodewise.plugin.lazy import *
    from nodewise.plugin.plans import *
    from nodewise.plugin.policies import *
    from nodewise.plugin.readers import *
    from nodewise.plugin.records import *
    from nodewise.plugin.sharing import *

_MODULES: Final = (
    *("domain.columns", "domain.errors", "domain.configurations", "domain.predictions", "domain.workload"),
    *("domain.profile", "domain.architectures", "domain.budget", "domain.simulated_steps", "domain.policy_parameters"),
    *("plugin.catalogue", "plugin.estimators", "plugin.lazy", "plugin.records", "plugin.hooks"),
    *("plugin.architectures", "plugin.plans", "plugin.policies", "plugin.readers", "plugin.diagnosers"),
    *("plugin.sharing", "plugin.completions"),
    *("domain.planning", "domain.schedule", "domain.trace", "domain.shared_pairs", "domain.sharing"),
    *("domain.step_times", "domain.replay", "domain.diagnosis"),
    *("domain.lifetimes", "domain.failures", "domain.completion_offers", "domain.completions", "domain.transitions"),
)
"""Where names come from, those of all estimators first: one is imported when a name of it or of a later one is read."""
_ERRORS: Final = ("NodewiseError", "Reason", "Refusal", "Violation")
"""What plugins need of ``domain.errors``."""


def __getattr__(name: str) -> Any:
    """A name of the API; ``__all__`` lists all."""
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    every: list[str] = []
    for place in _MODULES:
        module = import_module(f"nodewise.{place}")
        names = _ERRORS if place == "domain.errors" else module.__all__
        if name in names:
            value = globals()[name] = getattr(module, name)
            return value
        every += names
    if name == "__all__":
        return every
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
