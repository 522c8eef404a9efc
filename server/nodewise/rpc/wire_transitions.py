"""Changes that a job makes on purpose, on the wire: to machines on demand, to asynchronous training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from nodewise.completion.questions import HybridQuestion
from nodewise.domain.completion_offers import CompletionGroup
from nodewise.domain.lifetimes import AvailabilityLaw, LifetimeLaw
from nodewise.domain.transitions import HybridTimes, OnDemandQuestion
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader
from nodewise.rpc.wire_lifetimes import read_availability
from nodewise_protos.v1beta1 import completion_pb2

__all__ = ["read_hybrid", "read_on_demand"]

MOST_RECORDS: Final = 64
USUAL_FRACTIONS: Final = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


def read_on_demand(message: completion_pb2.OnDemandQuestion, reader: Reader) -> OnDemandQuestion | None:
    """When to pay for machines on demand; None = the reader was told what is missing."""
    path = "on_demand"
    source = message.WhichOneof("source")
    if source is None:
        reader.wrong(path, "must state availability, a record, or a law")
        return None
    if len(message.learned_from) > MOST_RECORDS:
        reader.wrong(f"{path}.learned_from", f"must hold at most {MOST_RECORDS} records")
        return None
    found = from_message(
        message,
        OnDemandQuestion,
        f"{path}.",
        reader,
        availability=read_availability(message.availability, f"{path}.availability", reader)
        if source == "availability"
        else from_message(message.law, AvailabilityLaw, f"{path}.law.", reader),
        learned_from=tuple(
            read_availability(each, f"{path}.learned_from[{number}]", reader)
            for number, each in enumerate(message.learned_from)
        ),
    )
    if found.deadline_s < found.work_s + found.switch_s:
        text = f"must be at least work_seconds + switch_seconds ({found.work_s + found.switch_s:g})"
        reader.wrong(f"{path}.deadline_seconds", f"{text}, found {found.deadline_s:g}")
    if found.spot_per_h > found.on_demand_per_h:
        text = f"must be at most on_demand_price_per_hour ({found.on_demand_per_h:g}), found {found.spot_per_h:g}"
        reader.wrong(f"{path}.spot_price_per_hour", text)
    return found


def read_hybrid(message: completion_pb2.HybridQuestion, reader: Reader) -> HybridQuestion:
    """When to switch from synchronous to asynchronous training."""
    path = "hybrid."
    times = from_message(message, HybridTimes, path, reader)
    nodes = None
    if message.HasField("nodes"):
        others: dict[str, Any] = {"lifetime": LifetimeLaw(), "prices": None, "replacement": None}
        nodes = from_message(message.nodes, CompletionGroup, f"{path}nodes.", reader, spot=False, **others)
        if not nodes.nodes:
            reader.wrong(f"{path}nodes.nodes", "must be at least 1")
    if len(times.slowdowns) == 1:
        reader.wrong(f"{path}slowdown_ratios", "must hold one ratio for each worker, at least two")
    return HybridQuestion(
        times=times if times.fractions else replace(times, fractions=USUAL_FRACTIONS),
        nodes=nodes,
        batch_per_worker=message.batch_per_worker_samples,
        parameter_servers=message.parameter_servers_count if message.HasField("parameter_servers_count") else None,
    )
