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
from nodewise.domain.lifetimes import *
from nodewise.domain.planning import *
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
