"""Layouts of plans as settings of training frameworks, and files of frameworks as layouts.

``launch(Layout.of(plan.best.configuration, workload), "megatron")`` is what to paste to train as planned;
``read_layout("ds_config.json")`` is what a file states. Nothing of a framework is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from nodewise_client.frameworks import _accelerate, _deepspeed_settings, _megatron, _nemo, _torchtitan
from nodewise_client.frameworks._layout import Launch, Layout, LayoutError
from nodewise_client.frameworks._reading import LayoutFileError, StatedLayout, read_layout

__all__ = [
    "FRAMEWORKS",
    "Launch",
    "Layout",
    "LayoutError",
    "LayoutFileError",
    "StatedLayout",
    "facts",
    "launch",
    "plan_constraints",
    "read_layout",
]

_MODULES: Final[Mapping[str, ModuleType]] = {
    "megatron": _megatron,
    "deepspeed": _deepspeed_settings,
    "torchtitan": _torchtitan,
    "nemo": _nemo,
    "accelerate": _accelerate,
}
FRAMEWORKS: Final = tuple(_MODULES)


def launch(layout: Layout, framework: str) -> Launch:
    """What to paste to run a layout.

    Raises
    ------
    LayoutError
        Naming what the framework lacks.
    ValueError
        For a framework that is not one of FRAMEWORKS.
    """
    result: Launch = _module(framework).launch(layout)
    return result


def plan_constraints(framework: str) -> Mapping[str, tuple[Any, ...]]:
    """Constraints of a plan that leave out what the framework never expresses, by fields of `PlanConstraints`.

    Sets of counts are tuples of their values. A combination may still be refused by `launch`.

    Raises
    ------
    ValueError
        For a framework that is not one of FRAMEWORKS.
    """
    constraints: Mapping[str, tuple[Any, ...]] = _module(framework).CONSTRAINTS
    return constraints


def facts(framework: str) -> Mapping[str, Any]:
    """Facts of a workload that a framework trains, by fields of `Workload`.

    Raises
    ------
    ValueError
        For a framework that is not one of FRAMEWORKS.
    """
    values: Mapping[str, Any] = _module(framework).FACTS
    return values


def _module(framework: str) -> ModuleType:
    if framework not in _MODULES:
        raise ValueError(f"framework: must be one of {', '.join(FRAMEWORKS)}, found {framework!r}")
    return _MODULES[framework]
