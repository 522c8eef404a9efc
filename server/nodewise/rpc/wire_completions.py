"""Questions about completion on the wire: offers, what is best, and changes that a job makes on purpose."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nodewise.completion.questions import CompletionQuestion, HybridQuestion
from nodewise.domain.completions import (
    ChiefLoss,
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    CompletionTerms,
    LossReaction,
    NodePrices,
    NodeReplacement,
    SavedBytes,
)
from nodewise.domain.configurations import SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.lifetimes import AvailabilityLaw, LifetimeLaw
from nodewise.domain.objective import FewestDevices, HighestThroughput, LeastCost, LeastTime, Objective
from nodewise.domain.transitions import HybridTimes, OnDemandQuestion
from nodewise.rpc.errors import below
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.reading import Reader, shown
from nodewise.rpc.wire_lifetimes import read_availability, read_data_sets, read_law
from nodewise.rpc.wire_objectives import read_objective
from nodewise.rpc.wire_rows import read_row, read_time
from nodewise_protos.v1 import objective_pb2
from nodewise_protos.v1beta1 import completion_offer_pb2, completion_pb2
from nodewise_protos.v1beta1 import completion_service_pb2 as pb

__all__ = ["read_completion"]

MOST_OFFERS: Final = 1000
MOST_RUNS: Final = 10_000_000
"""Offers times runs of a call: seconds to minutes of work."""
MOST_GROUPS: Final = 8
MOST_NODES: Final = 4096
MOST_SPEEDS: Final = 1 << 20
USUAL_FRACTIONS: Final = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class _Known:
    """What offers are read with."""

    common: completion_offer_pb2.CompletionOffer
    lifetimes: Mapping[str, LifetimeLaw]


def read_completion(message: pb.EstimateCompletionRequest, options: ReadOptions) -> CompletionQuestion:
    """What is asked, its profile still to be found. What is wrong with an offer stands in its place.

    Raises
    ------
    NodewiseError
        INVALID_FIELD; LIMIT_EXCEEDED for more runs than are made in a call.
    """
    reader = Reader()
    stated = reader.stated(message, "", but=("method",))
    runs = stated.get("runs_count", 10_000)
    _limited(message, runs)
    common = message.common
    if common.name or common.groups:
        reader.wrong("common", "must have no name and no groups: these are each offer's own")
    known = _Known(common, read_data_sets(message.data_sets, reader))
    if not message.offers and not message.HasField("on_demand") and not message.HasField("hybrid"):
        reader.wrong("offers", "must hold at least one offer, unless on_demand or hybrid is asked")
    objective = read_objective(message.objective, message.work)
    if not isinstance(objective.rule, HighestThroughput | LeastCost | LeastTime | FewestDevices) or (
        message.objective.WhichOneof("rule") == "highest_throughput"
    ):
        reader.wrong("objective", "must be least_cost, least_time or fewest_devices: throughput knows no risk")
    on_demand = _on_demand(message.on_demand, reader) if message.HasField("on_demand") else None
    hybrid = _hybrid(message.hybrid, reader) if message.HasField("hybrid") else None
    reader.finish()
    names = _names(message)
    return CompletionQuestion(
        profile=None,
        terms=options.terms,
        offers=tuple(_offer_or_error(each, number, known) for number, each in enumerate(message.offers)),
        names=names,
        objective=objective,
        asked=CompletionTerms(
            simulates=message.method != pb.COMPLETION_METHOD_DETERMINISTIC,
            runs=runs,
            seed=options.terms.options.seed,
            deadline_s=_deadline_s(objective),
            saves_cost=_costs_decide(objective, message),
            now_s=read_time(message.now) if message.HasField("now") else time.time(),
        ),
        estimator=message.completion_estimator,
        certain=message.certain_speeds,
        on_demand=on_demand,
        hybrid=hybrid,
    )


def _limited(message: pb.EstimateCompletionRequest, runs: int) -> None:
    offers = len(message.offers)
    if offers > MOST_OFFERS:
        _over("offers_per_call", f"{offers} offers are more than the {MOST_OFFERS} of a call", MOST_OFFERS)
    if offers * runs > MOST_RUNS:
        text = f"{offers} offers of {runs} runs are more than the {MOST_RUNS} runs of a call: take fewer runs_count"
        _over("completion_runs_per_call", text, MOST_RUNS)


def _over(limit: str, message: str, most: int) -> None:
    raise NodewiseError(Reason.LIMIT_EXCEEDED, message, {"limit": limit, "most": str(most)})


def _deadline_s(objective: Objective) -> float | None:
    rule = objective.rule
    return rule.deadline_s if isinstance(rule, LeastCost | FewestDevices) else None


def _costs_decide(objective: Objective, message: pb.EstimateCompletionRequest) -> bool:
    """Whether intervals are chosen for cost: where cost is compared, and there are prices."""
    if isinstance(objective.rule, LeastTime | FewestDevices):
        return False
    groups = [group for offer in message.offers for group in offer.groups]
    return any(group.price_per_node_hour > 0.0 or group.HasField("prices") for group in groups)


def _names(message: pb.EstimateCompletionRequest) -> tuple[str, ...]:
    return tuple(offer.name or str(number) for number, offer in enumerate(message.offers, 1))


def _offer_or_error(
    message: completion_offer_pb2.CompletionOffer, number: int, known: _Known
) -> CompletionOffer | NodewiseError:
    try:
        with below(f"offers[{number}]."):
            return _offer(message, known)
    except NodewiseError as error:
        return error


def _offer(message: completion_offer_pb2.CompletionOffer, known: _Known) -> CompletionOffer:
    whole = completion_offer_pb2.CompletionOffer()
    whole.CopyFrom(known.common)
    for part in ("speeds", "checkpoints"):  # a list is stated as a whole, and a choice of two
        if message.HasField(part):
            whole.ClearField(part)
    whole.MergeFrom(message)
    reader = Reader()
    if len(whole.speeds.samples_per_second) > MOST_SPEEDS:
        reader.wrong("speeds.samples_per_second", f"must hold at most {MOST_SPEEDS} numbers")
    speeds = reader.floats(
        whole.speeds.samples_per_second[:MOST_SPEEDS],
        "speeds.samples_per_second",
        len(whole.speeds.samples_per_second[:MOST_SPEEDS]),
        default=0.0,
        most=1e18,
    )
    groups = _groups(whole, known, reader)
    found = read_row(
        CompletionOffer,
        whole,
        "",
        reader,
        groups=groups,
        sync_mode=_sync_mode(whole.sync_mode, reader),
        reaction=LossReaction(_word(whole.reaction, set(LossReaction), "reaction", reader)),
        chief_loss=ChiefLoss(_word(whole.chief_loss, set(ChiefLoss), "chief_loss", reader)),
        checkpoints=_checkpoints(whole.checkpoints, reader) if whole.HasField("checkpoints") else None,
        speeds=tuple(speeds.tolist()),
    )
    _consistent(found, reader)
    reader.finish()
    return found


def _word(value: int, allowed: set[int], path: str, reader: Reader) -> int:
    if value in allowed:
        return value
    reader.wrong(path, f"must be one of the values of the contract, found {value}")
    return 0


def _sync_mode(value: int, reader: Reader) -> SyncMode:
    if value == SyncMode.HYBRID:
        reader.wrong("sync_mode", "must be ASYNC, SYNC or ALLREDUCE: a hybrid has two reactions to a loss")
        return SyncMode.UNSPECIFIED
    return SyncMode(_word(value, set(SyncMode), "sync_mode", reader))


def _groups(
    message: completion_offer_pb2.CompletionOffer, known: _Known, reader: Reader
) -> tuple[CompletionGroup, ...]:
    if not 1 <= len(message.groups) <= MOST_GROUPS:
        reader.wrong("groups", f"must hold 1 to {MOST_GROUPS} groups, found {len(message.groups)}")
    return tuple(
        _group(group, f"groups[{number}]", known, reader) for number, group in enumerate(message.groups[:MOST_GROUPS])
    )


def _group(message: completion_offer_pb2.CompletionGroup, path: str, known: _Known, reader: Reader) -> CompletionGroup:
    lifetime = LifetimeLaw()
    if message.HasField("lifetime"):
        lifetime = read_law(message.lifetime, f"{path}.lifetime", reader, known.lifetimes)
    spot = message.tier == objective_pb2.CAPACITY_TIER_SPOT
    if spot and not message.HasField("lifetime"):
        reader.wrong(
            f"{path}.lifetime", "must be given for nodes on spot: a law, observations, a record, or a data set"
        )
    return read_row(
        CompletionGroup,
        message,
        f"{path}.",
        reader,
        spot=spot,
        lifetime=lifetime,
        prices=_prices(message.prices, f"{path}.prices", reader) if message.HasField("prices") else None,
        replacement=_replacement(message, path, reader),
    )


def _prices(message: completion_offer_pb2.NodePrices, path: str, reader: Reader) -> NodePrices:
    found = read_row(NodePrices, message, f"{path}.", reader)
    since = found.since_s
    if not since or since[0] != 0.0 or any(one >= other for one, other in itertools.pairwise(since)):
        reader.wrong(f"{path}.since_seconds", "must ascend from 0")
    if len(found.per_h) != len(since):
        text = f"must have as many entries as since_seconds ({len(since)}), found {len(found.per_h)}"
        reader.wrong(f"{path}.prices_per_node_hour", text)
    return found


def _replacement(message: completion_offer_pb2.CompletionGroup, path: str, reader: Reader) -> NodeReplacement | None:
    if not message.HasField("replacement"):
        return None
    found = read_row(NodeReplacement, message.replacement, f"{path}.replacement.", reader)
    if not found.delays_s:
        reader.wrong(f"{path}.replacement.delays_seconds", "must hold at least one delay")
    return found


def _checkpoints(message: completion_offer_pb2.CompletionCheckpoints, reader: Reader) -> CompletionCheckpoints:
    path = "checkpoints"
    length = message.WhichOneof("length")
    if length is None:
        reader.wrong(path, "must say how long a save takes: seconds, or saved")
    stated = dict(reader.stated(message, f"{path}.").items())
    interval = message.WhichOneof("interval")
    return CompletionCheckpoints(
        seconds=_saved(message.saved, f"{path}.saved", reader) if length == "saved" else message.seconds,
        interval_s=message.interval_seconds if interval == "interval_seconds" else None,
        interval_samples=message.interval_samples if interval == "interval_samples" else None,
        stopped=stated.get("stopped_ratio", 1.0),
    )


def _saved(message: completion_offer_pb2.SavedBytes, path: str, reader: Reader) -> SavedBytes:
    found = read_row(SavedBytes, message, f"{path}.", reader)
    saves = len(found.measured_s)
    if saves < 2:
        reader.wrong(f"{path}.measured_seconds", f"must hold at least two saves, found {saves}")
    for name, values in (
        ("measured_weights_bytes", found.measured_weights_bytes),
        ("measured_graph_bytes", found.measured_graph_bytes or (0.0,) * saves),
    ):
        if len(values) != saves:
            text = f"must have as many entries as measured_seconds ({saves}), found {len(values)}"
            reader.wrong(f"{path}.{name}", text)
    if len(set(found.measured_weights_bytes)) < min(saves, 2):
        reader.wrong(f"{path}.measured_weights_bytes", "must differ: saves of one size tell no law")
    return found


def _consistent(offer: CompletionOffer, reader: Reader) -> None:
    """What must hold among the groups of an offer."""
    names = [group.name for group in offer.groups if group.name]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.contradicts("groups.name", f"must be unique in the offer, found {shown(name)} twice")
    for number, group in enumerate(offer.groups):
        joins = "" if group.replacement is None else group.replacement.joins
        if joins and joins not in names:
            listed = ", ".join(names) or "none has a name"
            text = f"must name a group of the offer ({listed}), found {shown(joins)}"
            reader.wrong(f"groups[{number}].replacement.group_name", text)
    if not 1 <= offer.nodes <= MOST_NODES:
        reader.wrong("groups.nodes", f"must come to 1 to {MOST_NODES} nodes together, found {offer.nodes}")
    if offer.groups and not offer.groups[0].nodes and offer.chief_loss != ChiefLoss.NONE:
        reader.wrong(
            "groups[0].nodes", "must be at least 1 where the loss of the chief matters: it is the first of them"
        )


def _on_demand(message: completion_pb2.OnDemandQuestion, reader: Reader) -> OnDemandQuestion | None:
    path = "on_demand"
    source = message.WhichOneof("source")
    if source is None:
        reader.wrong(path, "must state availability, a record, or a law")
        return None
    found = read_row(
        OnDemandQuestion,
        message,
        f"{path}.",
        reader,
        availability=read_availability(message.availability, f"{path}.availability", reader)
        if source == "availability"
        else read_row(AvailabilityLaw, message.law, f"{path}.law.", reader),
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


def _hybrid(message: completion_pb2.HybridQuestion, reader: Reader) -> HybridQuestion:
    path = "hybrid."
    times = read_row(HybridTimes, message, path, reader)
    nodes = None
    if message.HasField("nodes"):
        others: dict[str, Any] = {"lifetime": LifetimeLaw(), "prices": None, "replacement": None}
        nodes = read_row(CompletionGroup, message.nodes, f"{path}nodes.", reader, spot=False, **others)
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
