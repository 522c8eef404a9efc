"""Spaces that a planning model may not answer, each with the text for its author."""

from __future__ import annotations

from typing import Any

import pytest
from planning import TableModel, checked_model, random_table

from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.planning import PlanConstraints, PlanPool

TABLE = random_table(1, 4, 2)
CONSTRAINTS = PlanConstraints(pools=(PlanPool(device="A100", nodes=(1,), workers_per_node=8),), global_batches=(8,))
EMPTY_NODES = Configurations.of(1).replaced(nodes=as_ints([0]), workers=as_ints([0]))


def model(**attributes: Any) -> TableModel:
    wrong = TableModel(TABLE, {name: value for name, value in attributes.items() if name == "prefixes"})
    for name, value in attributes.items():
        if name != "prefixes":
            setattr(wrong, name, value)
    return wrong


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"prefixes": [1]}, "prefixes must be Configurations, found list"),
        ({"prefixes": EMPTY_NODES}, "workers, nodes and global_batch of every prefix must be 1 or more"),
        ({"exclusions": ("memory",)}, "exclusions must contain nothing but Exclusion objects"),
    ],
)
def test_the_text_names_the_attribute(attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        checked_model(model(**attributes)).space(CONSTRAINTS)
    assert caught.value.metadata["problem"] == text


def test_names_of_memory_terms_are_printable() -> None:
    wrong = checked_model(model(memory_terms=("",)))
    with pytest.raises(NodewiseError) as caught:
        wrong.memory_terms(TABLE.rows)
    assert caught.value.metadata["problem"] == "names must be printable texts of 1 to 64 characters"
