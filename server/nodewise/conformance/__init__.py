"""The conformance suite: checks of every kind of plugin, which plugin authors can run on their own.

In a test of the plugin's own project:

>>> import pytest
>>> from nodewise.conformance import cases
>>> import my_plugin
>>> @pytest.mark.parametrize("case", cases(my_plugin), ids=str)
... def test_conforms(case):
...     case.run()

or, for what is installed, without writing any: ``pytest --nodewise-conformance my-plugin``
(``nodewise.pytest_plugin``). The suite itself knows nothing of pytest.
"""

from nodewise.conformance.cases import Case, cases, installed_cases
from nodewise.conformance.evidence import Cluster, Evidence, File, Job, Recording
from nodewise.conformance.findings import NonConformanceError
from nodewise.conformance.stores import store_cases

__all__ = [
    "Case",
    "Cluster",
    "Evidence",
    "File",
    "Job",
    "NonConformanceError",
    "Recording",
    "cases",
    "installed_cases",
    "store_cases",
]
