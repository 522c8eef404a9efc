"""Changes that a job makes on purpose, on the wire: to machines on demand, to asynchronous training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from nodewise.completion.questions import HybridQuestion
from nodewise.domain.lifetimes import AvailabilityLaw
from nodewise.domain.transitions import HybridTimes, OnDemandQuestion
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader
from nodewise_protos.v1beta1 import completion_pb2

__all__ = ["TRANSITION_CHECKS", "read_hybrid", "read_on_demand"]

MOST_RECORDS: Final = 64
USUAL_FRACTIONS: Final = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


def read_on_demand(message: completion_pb2.OnDemandQuestion, reader: Reader) -> OnDemandQuestion | None:
    """When to pay for machines on demand; None = the reader was told what is missing."""
    path, others = "on_demand", {}
    source = message.WhichOneof("source")
    if source is None:
        reader.wrong(path, "must state availability, a record, or a law")
        return None
    if len(message.learned_from) > MOST_RECORDS:
        reader.wrong(f"{path}.learned_from", f"must hold at most {MOST_RECORDS} records")
        return None
    if source == "law":
        others["availability"] = from_message(message.law, AvailabilityLaw, f"{path}.law.", reader)
    return from_message(message, OnDemandQuestion, f"{path}.", reader, **others)  # type: ignore[arg-type]  # attributes


def _check_on_demand(found: OnDemandQuestion, path: str, reader: Reader) -> None:
    if found.deadline_s < found.work_s + found.switch_s:
        text = f"must be at least work_seconds + switch_seconds ({found.work_s + found.switch_s:g})"
        reader.wrong(f"{path}deadline_seconds", f"{text}, found {found.deadline_s:g}")
    if found.spot_per_h > found.on_demand_per_h:
        text = f"must be at most on_demand_price_per_hour ({found.on_demand_per_h:g}), found {found.spot_per_h:g}"
        reader.wrong(f"{path}spot_price_per_hour", text)


TRANSITION_CHECKS: Final[Mapping[type, Any]] = MappingProxyType({OnDemandQuestion: _check_on_demand})


def read_hybrid(message: completion_pb2.HybridQuestion, reader: Reader) -> HybridQuestion:
    """When to switch from synchronous to asynchronous training."""
    times = from_message(message, HybridTimes, "hybrid.", reader)
    found = from_message(message, HybridQuestion, "hybrid.", reader, times=times)
    if found.nodes is not None and not found.nodes.nodes:
        reader.wrong("hybrid.nodes.nodes", "must be at least 1")
    if len(times.slowdowns) == 1:
        reader.wrong("hybrid.slowdown_ratios", "must hold one ratio for each worker, at least two")
    return found if times.fractions else replace(found, times=replace(times, fractions=USUAL_FRACTIONS))
