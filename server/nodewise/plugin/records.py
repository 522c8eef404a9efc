"""Records, which hooks register: the objects of plugins, with their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.domain.policy_parameters import PolicyParameter
from nodewise.plugin.diagnosers import Diagnoser
from nodewise.plugin.estimators import Estimator
from nodewise.plugin.policies import Policy
from nodewise.plugin.readers import TraceReader
from nodewise.plugin.sharing import SharingModel

__all__ = [
    "BASIC_COLUMNS",
    "PLUGIN_API_VERSION",
    "DiagnoserRecord",
    "EstimatorRecord",
    "PolicyRecord",
    "SharingModelRecord",
    "TraceReaderRecord",
]

PLUGIN_API_VERSION: Final = "1.0"
"""Version of everything in ``nodewise.plugin``. Records state the range that they were written for."""

PLUGIN_API_RANGE: Final = ">=1.0,<2"
"""Range of a record that does not state one."""

BASIC_COLUMNS: Final = frozenset(
    {
        "nodes",
        "workers",
        "parameter_servers",
        "devices",
        "sync_mode",
        "batch_per_worker",
        "accumulation",
        "global_batch",
        "link_bytes_per_s",
        "placement",
    }
)
"""Columns of Configurations that every estimator takes into account, or refuses row by row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """Fields of all records. ``name``: lower case letters, digits and dashes; unique over all plugins."""

    name: str
    version: str
    description: str
    plugin_api: str = PLUGIN_API_RANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorRecord(_Record):
    """An estimator as registered.

    ``columns`` are the fields of Configurations that it takes into account (``groups`` for workers that differ). The
    service refuses rows that state another one, since an answer that ignores a stated fact would be wrong unnoticed.
    ``predicts`` False = it predicts something else than throughput: only calls that name it use it, and it takes no
    part where estimators are chosen, tried and scored.
    """

    estimator: Estimator
    capabilities: frozenset[str] = frozenset()
    columns: frozenset[str] = BASIC_COLUMNS
    predicts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecord(_Record):
    """A policy as registered."""

    policy: Policy
    parameters: tuple[PolicyParameter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingModelRecord(_Record):
    """A sharing model as registered."""

    model: SharingModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReaderRecord(_Record):
    """A trace reader as registered."""

    reader: TraceReader


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoserRecord(_Record):
    """A diagnoser as registered."""

    diagnoser: Diagnoser
