"""Questions about completion on the wire: offers, what is best, and changes that a job makes on purpose."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodewise.completion.questions import CompletionQuestion
from nodewise.domain.completion_offers import (
    ChiefLoss,
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    LossReaction,
    NodePrices,
    NodeReplacement,
    SavedBytes,
)
from nodewise.domain.completions import CompletionTerms
from nodewise.domain.configurations import SyncMode
from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.lifetimes import AvailabilityRecord, KnownRevocations, LifetimeLaw
from nodewise.domain.objective import FewestDevices, LeastCost, LeastTime, Objective
from nodewise.mapper.mapping import from_message, read_time
from nodewise.mapper.reading import Reader, shown
from nodewise.rpc.errors import below
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.wire_lifetimes import read_data_sets, read_law
from nodewise.rpc.wire_objectives import read_objective
from nodewise.rpc.wire_transitions import read_hybrid, read_on_demand
from nodewise_protos.v1 import objective_pb2
from nodewise_protos.v1beta1 import completion_offer_pb2
from nodewise_protos.v1beta1 import completion_service_pb2 as pb

__all__ = ["read_completion"]

MOST_OFFERS: Final = 1000
MOST_RUNS: Final = 10_000_000
"""Offers times runs of a call: seconds to minutes of work."""
MOST_NAME: Final = 64
MOST_GROUPS: Final = 8
MOST_NODES: Final = 4096
MOST_SPEEDS: Final = 1 << 20


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
    objective = read_objective(message.objective, message.work, usual=LeastCost())
    if not isinstance(objective.rule, LeastCost | LeastTime | FewestDevices):
        reader.wrong("objective", "must be least_cost, least_time or fewest_devices: throughput knows no risk")
    on_demand = read_on_demand(message.on_demand, reader) if message.HasField("on_demand") else None
    hybrid = read_hybrid(message.hybrid, reader) if message.HasField("hybrid") else None
    reader.finish()
    names = tuple((offer.name or str(number))[:MOST_NAME] for number, offer in enumerate(message.offers, 1))
    return CompletionQuestion(
        profile=None,
        terms=options.terms,
        offers=tuple(_offer_or_error(each, number, known, names) for number, each in enumerate(message.offers)),
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


def _offer_or_error(
    message: completion_offer_pb2.CompletionOffer, number: int, known: _Known, names: Sequence[str]
) -> CompletionOffer | NodewiseError:
    try:
        with below(f"offers[{number}]."):
            first = names.index(names[number])
            if first < number:
                text = f"must be unique in the request, offer {first} has {shown(names[number])} too"
                raise invalid_field("name", text)
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
    found = from_message(
        whole,
        CompletionOffer,
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
    return from_message(
        message,
        CompletionGroup,
        f"{path}.",
        reader,
        spot=spot,
        lifetime=lifetime,
        prices=_prices(message.prices, f"{path}.prices", reader) if message.HasField("prices") else None,
        replacement=_replacement(message, path, reader),
    )


def _prices(message: completion_offer_pb2.NodePrices, path: str, reader: Reader) -> NodePrices:
    found = from_message(message, NodePrices, f"{path}.", reader)
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
    found = from_message(message.replacement, NodeReplacement, f"{path}.replacement.", reader)
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
    found = from_message(message, SavedBytes, f"{path}.", reader)
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
        if isinstance(group.lifetime.law, KnownRevocations) and len(group.lifetime.law.times_s) > group.nodes:
            text = f"must hold at most one time for each of {group.nodes} nodes"
            reader.wrong(f"groups[{number}].lifetime.revocations.times_seconds", text)
        if isinstance(group.lifetime.law, KnownRevocations | AvailabilityRecord) and group.replacement is not None:
            text = "must be absent where availability or revocations are recorded: the record says who is there"
            reader.contradicts(f"groups[{number}].replacement", text)
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
