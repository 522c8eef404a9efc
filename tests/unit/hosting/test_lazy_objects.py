"""Plugins' objects that are imported when they are first called."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from nodewise.hosting.records import HOOKS
from nodewise.hosting.registry import load_registry
from nodewise.plugin import (
    CompletionEstimator,
    Diagnoser,
    Estimator,
    LearningEstimator,
    SharingModel,
    StepsDiagnoser,
    lazy_object,
)

REGISTRY = load_registry(safe_mode=True)
PLACES = {
    "partitioning": "nodewise_partitioning.estimator:PartitioningEstimator",
    "queueing": "nodewise_queueing.estimator:QueueingEstimator",
    "replay": "nodewise_diagnosis.diagnoser:ReplayDiagnoser",
    "scaling": "nodewise_scaling.estimator:ScalingEstimator",
    "fitted-sharing": "nodewise_sharing.model:FittedSharing",
    "transient": "nodewise_transient.estimator:TransientEstimator",
    "unseen": "nodewise_unseen.estimator:UnseenEstimator",
}
PROTOCOLS = (CompletionEstimator, Diagnoser, Estimator, LearningEstimator, SharingModel, StepsDiagnoser)


def test_a_class_is_imported_at_the_first_call_and_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that lists its plugins imports none of what they compute with."""
    (tmp_path / "counting_plugin.py").write_text(
        "class Counter:\n    count = 0\n"
        "    def add(self, step):\n        self.count += step\n        return self.count\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    counter = lazy_object("counting_plugin:Counter", "add")
    assert "counting_plugin" not in sys.modules
    assert [counter.add(2), counter.add(3)] == [2, 5]
    assert not hasattr(counter, "take")


def test_warming_up_imports_a_class_that_has_nothing_to_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer of a server does not wait for an import."""
    (tmp_path / "cold_plugin.py").write_text("class Cold:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    lazy_object("cold_plugin:Cold").warm_up()
    assert "cold_plugin" in sys.modules


@pytest.mark.parametrize("name", PLACES)
def test_what_stands_for_a_class_has_its_protocols(name: str) -> None:
    """A method that is left out would be a feature that nobody is offered."""
    module, _, kind = PLACES[name].partition(":")
    whole = getattr(import_module(module), kind)()
    held = {hook.kinds: getattr(REGISTRY, hook.kinds).get(name) for hook in HOOKS.values()}
    given = next(
        getattr(held[hook.kinds].record, hook.attribute)
        for hook in HOOKS.values()
        if held[hook.kinds] is not None and type(getattr(held[hook.kinds].record, hook.attribute)).__name__ == kind
    )
    assert [isinstance(given, each) for each in PROTOCOLS] == [isinstance(whole, each) for each in PROTOCOLS]
