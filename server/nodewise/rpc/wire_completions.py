"""Questions about completion on the wire: lifetimes, offers, what is best, and changes that a job makes on purpose."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from nodewise.completion.questions import CompletionQuestion, HybridQuestion, OfferResult
from nodewise.domain.completion_offers import (
    ChiefLoss,
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    NodePrices,
    NodeReplacement,
    SavedBytes,
)
from nodewise.domain.completions import CompletionTerms
from nodewise.domain.configurations import SyncMode
from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.lifetimes import (
    AvailabilityLaw,
    AvailabilityRecord,
    EmpiricalLifetimes,
    FleetRecord,
    KnownRevocations,
    LifetimeFamily,
    LifetimeLaw,
    NamedLifetimes,
    ObservedLifetimes,
)
from nodewise.domain.objective import FewestDevices, LeastCost, LeastTime, Objective
from nodewise.domain.transitions import HybridTimes, OnDemandQuestion
from nodewise.mapper.mapping import from_message, read_time, to_message
from nodewise.mapper.reading import Reader, quote
from nodewise.rpc.errors import below, write_problem
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.wire_objectives import read_objective
from nodewise_protos.v1 import objective_pb2
from nodewise_protos.v1beta1 import completion_offer_pb2 as pb_offer
from nodewise_protos.v1beta1 import completion_pb2
from nodewise_protos.v1beta1 import completion_service_pb2 as pb

__all__ = ["CHECKS", "read_checkpoints", "read_completion", "write_row"]

MOST_ENTRIES: Final = 100_000
"""Ages, lives, events or changes of one law."""
MOST_DATA_SETS: Final = 256


def read_data_sets(messages: Sequence[pb_offer.LifetimeDataSet], reader: Reader) -> dict[str, LifetimeLaw]:
    """Lifetimes that the request states, by name."""
    laws: dict[str, LifetimeLaw] = {}
    reader.at_most(messages, "data_sets", MOST_DATA_SETS, "data sets")
    for number, message in enumerate(messages[:MOST_DATA_SETS]):
        path = f"data_sets[{number}]"
        name = reader.text(message.name, f"{path}.name", 64)
        if not name:
            reader.wrong(f"{path}.name", "must be given, since offers refer to the lifetimes by name")
        if name in laws:
            reader.contradicts(f"{path}.name", f"must be unique, found {quote(name)} twice")
        if message.law.WhichOneof("law") in (None, "data_set"):
            reader.wrong(f"{path}.law", "must state a law, observations or a record, not another data set")
            continue
        laws[name] = read_law({}, message.law, f"{path}.law", reader)
    return laws


def read_law(laws: Mapping[str, LifetimeLaw], message: pb_offer.LifetimeLaw, path: str, reader: Reader) -> LifetimeLaw:
    """The lifetimes of nodes; names of data sets refer to those of the request first."""
    kind = message.WhichOneof("law")
    if kind is None:
        reader.wrong(path, "must state a law: a data set, observations, Weibull, exponential, or a record")
    elif kind != "data_set" and not _is_short(getattr(message, kind), f"{path}.{kind}", reader):
        return LifetimeLaw()
    law = from_message(message, LifetimeLaw, f"{path}.", reader)
    if kind == "availability":  # a record states its lifetimes itself
        return LifetimeLaw(law=law.law)
    if kind != "data_set":
        return law
    name = reader.text(message.data_set, f"{path}.data_set", 64)
    own = laws.get(name, LifetimeLaw(law=NamedLifetimes(name=name)))
    return own if law.family == LifetimeFamily.UNSPECIFIED else replace(own, family=law.family)


def _is_short(message: Any, path: str, reader: Reader) -> bool:
    """Whether all columns are within the limit of entries."""
    columns = [(field.name, values) for field, values in message.ListFields() if field.is_repeated]
    return all(reader.at_most(values, f"{path}.{name}", MOST_ENTRIES, "entries") for name, values in columns)


def _check_availability(record: AvailabilityRecord, path: str, reader: Reader) -> None:
    reader.at_most(record.since_s, f"{path}since_seconds", MOST_ENTRIES, "entries")
    reader.alike(path, since_seconds=record.since_s, nodes_counts=record.nodes)
    if not record.since_s or record.since_s[0] != 0.0 or not rises(record.since_s):
        reader.wrong(f"{path}since_seconds", "must start at 0 and ascend")
    elif record.length_s < record.since_s[-1]:
        reader.wrong(f"{path}length_seconds", f"must not end before the last change, at {record.since_s[-1]:g}")


def _check_empirical(law: EmpiricalLifetimes, path: str, reader: Reader) -> None:
    reader.alike(path, ages_seconds=law.ages_s, revoked_shares=law.revoked)
    if not law.ages_s:
        reader.wrong(f"{path}ages_seconds", "must hold at least one age")
    if not rises(law.ages_s):
        reader.wrong(f"{path}ages_seconds", "must ascend")
    if list(law.revoked) != sorted(law.revoked):
        reader.wrong(f"{path}revoked_shares", "must not descend: revoked nodes stay revoked")


def _check_observed(law: ObservedLifetimes, path: str, reader: Reader) -> None:
    if not law.lives_s:
        reader.wrong(f"{path}lives_seconds", "must hold at least one life")
    if law.revoked:
        reader.alike(path, lives_seconds=law.lives_s, revoked=law.revoked)


def _check_fleet(law: FleetRecord, path: str, reader: Reader) -> None:
    reader.alike(path, times_seconds=law.times_s, added=law.added, nodes=law.nodes)
    if not law.times_s:
        reader.wrong(f"{path}times_seconds", "must hold at least one event")
    if list(law.times_s) != sorted(law.times_s):
        reader.wrong(f"{path}times_seconds", "must not descend")


def rises(values: Sequence[float]) -> bool:
    """Whether each value is above the one before."""
    return all(one < other for one, other in itertools.pairwise(values))


MOST_OFFERS: Final = 1000
MOST_RUNS: Final = 10_000_000
"""Offers times runs of a call: seconds to minutes of work."""
MOST_NAME: Final = 64
MOST_GROUPS: Final = 8
LAST_TIER: Final = max(objective_pb2.CapacityTier.values())
MOST_NODES: Final = 4096
MOST_SPEEDS: Final = 1 << 20


def read_completion(message: pb.EstimateCompletionRequest, options: ReadOptions) -> CompletionQuestion:
    """The request as read, without its profile. The error of a single offer takes its place.

    Raises
    ------
    NodewiseError
        INVALID_FIELD; LIMIT_EXCEEDED for more runs than a call may have.
    """
    reader = Reader(CHECKS)
    scalars = reader.read_scalars(message, "", but=("method",))
    runs = scalars.get("runs_count", 10_000)
    _check_limits(message, runs)
    common = message.common
    if common.name or common.groups:
        reader.wrong("common", "must have no name and no groups: each offer has its own")
    lifetimes = read_data_sets(message.data_sets, reader)
    if not message.offers and not message.HasField("on_demand") and not message.HasField("hybrid"):
        reader.wrong("offers", "must hold at least one offer unless on_demand or hybrid is given")
    objective = read_objective(message.objective, message.work, usual=LeastCost())
    if not isinstance(objective.rule, LeastCost | LeastTime | FewestDevices):
        reader.wrong("objective", "must be least_cost, least_time or fewest_devices: others ignore revocations")
    on_demand = read_on_demand(message.on_demand, reader) if message.HasField("on_demand") else None
    hybrid = read_hybrid(message.hybrid, reader) if message.HasField("hybrid") else None
    reader.finish()
    names = tuple((offer.name or str(number))[:MOST_NAME] for number, offer in enumerate(message.offers, 1))
    return CompletionQuestion(
        profile=None,
        terms=options.terms,
        offers=tuple(
            _offer_or_error(each, number, common, lifetimes, names) for number, each in enumerate(message.offers)
        ),
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


def _check_limits(message: pb.EstimateCompletionRequest, runs: int) -> None:
    offers = len(message.offers)
    if offers > MOST_OFFERS:
        _over("offers_per_call", f"{offers} offers exceed the {MOST_OFFERS} of a call; send several calls", MOST_OFFERS)
    if offers * runs > MOST_RUNS:
        text = f"{offers} offers of {runs} runs exceed the {MOST_RUNS} runs of a call; state a smaller runs_count"
        _over("completion_runs_per_call", text, MOST_RUNS)


def _over(limit: str, message: str, most: int) -> None:
    raise NodewiseError(Reason.LIMIT_EXCEEDED, message, {"limit": limit, "most": str(most)})


def _deadline_s(objective: Objective) -> float | None:
    rule = objective.rule
    return rule.deadline_s if isinstance(rule, LeastCost | FewestDevices) else None


def _costs_decide(objective: Objective, message: pb.EstimateCompletionRequest) -> bool:
    """Whether to choose checkpoint intervals for cost: if the objective compares costs, and there are prices."""
    if isinstance(objective.rule, LeastTime | FewestDevices):
        return False
    groups = [group for offer in message.offers for group in offer.groups]
    return any(group.price_per_node_hour > 0.0 or group.HasField("prices") for group in groups)


def _offer_or_error(
    message: pb_offer.CompletionOffer,
    number: int,
    common: pb_offer.CompletionOffer,
    lifetimes: Mapping[str, LifetimeLaw],
    names: Sequence[str],
) -> CompletionOffer | NodewiseError:
    try:
        with below(f"offers[{number}]."):
            first = names.index(names[number])
            if first < number:
                text = f"must be unique; offers[{first}] is named {quote(names[number])} too"
                raise invalid_field("name", text)
            return _offer(message, common, lifetimes)
    except NodewiseError as error:
        return error


def _offer(
    message: pb_offer.CompletionOffer, common: pb_offer.CompletionOffer, lifetimes: Mapping[str, LifetimeLaw]
) -> CompletionOffer:
    whole = pb_offer.CompletionOffer()
    whole.CopyFrom(common)
    for part in ("speeds", "checkpoints"):  # an offer's list or choice replaces the common one
        if message.HasField(part):
            whole.ClearField(part)
    whole.MergeFrom(message)
    reader = Reader(
        CHECKS,
        {LifetimeLaw: partial(read_law, lifetimes), CompletionGroup: _group, CompletionCheckpoints: read_checkpoints},
    )
    speeds, hybrid = whole.speeds.samples_per_second, int(whole.sync_mode) == SyncMode.HYBRID
    if len(speeds) > MOST_SPEEDS:
        reader.wrong("speeds.samples_per_second", f"must hold at most {MOST_SPEEDS} numbers")
    if not 1 <= len(whole.groups) <= MOST_GROUPS:
        reader.wrong("groups", f"must hold 1 to {MOST_GROUPS} groups, found {len(whole.groups)}")
    if hybrid:
        reader.wrong("sync_mode", "must be ASYNC, SYNC or ALLREDUCE: a hybrid has two reactions to a loss")
    del whole.groups[MOST_GROUPS:]
    rates = reader.floats(speeds[:MOST_SPEEDS], "speeds.samples_per_second", len(speeds), default=0.0, most=1e18)
    offer = from_message(whole, CompletionOffer, "", reader, speeds=tuple(rates.tolist()))
    reader.finish()
    return offer


def _group(message: pb_offer.CompletionGroup, path: str, reader: Reader) -> CompletionGroup:
    spot = message.tier == objective_pb2.CAPACITY_TIER_SPOT
    if spot and not message.HasField("lifetime"):
        text = "must be given for nodes on spot: a law, observations, a record, or a data set"
        reader.wrong(f"{path}.lifetime", text)
    reader.whole(message.tier, f"{path}.tier", most=LAST_TIER)
    return from_message(message, CompletionGroup, f"{path}.", reader, spot=spot)


def read_checkpoints(message: pb_offer.CompletionCheckpoints, path: str, reader: Reader) -> CompletionCheckpoints:
    """Checkpoints, whose duration must be stated."""
    if message.WhichOneof("length") is None:
        reader.wrong(path, "must have seconds or saved, for the duration of a save")
    if not message.HasField("saved"):
        return from_message(message, CompletionCheckpoints, f"{path}.", reader)
    saved_bytes = from_message(message.saved, SavedBytes, f"{path}.saved.", reader)
    return from_message(message, CompletionCheckpoints, f"{path}.", reader, seconds=saved_bytes)


def _check_prices(prices: NodePrices, path: str, reader: Reader) -> None:
    since = prices.since_s
    if not since or since[0] != 0.0 or not rises(since):
        reader.wrong(f"{path}since_seconds", "must start at 0 and ascend")
    reader.alike(path, since_seconds=since, prices_per_node_hour=prices.per_h)


def _check_replacement(replacement: NodeReplacement, path: str, reader: Reader) -> None:
    if not replacement.delays_s:
        reader.wrong(f"{path}delays_seconds", "must hold at least one delay")


def _check_saved(saved_bytes: SavedBytes, path: str, reader: Reader) -> None:
    saves = saved_bytes.measured_s
    if len(saves) < 2:
        reader.wrong(f"{path}measured_seconds", f"must hold at least two saves, found {len(saves)}")
    reader.alike(path, measured_seconds=saves, measured_weights_bytes=saved_bytes.measured_weights_bytes)
    if saved_bytes.measured_graph_bytes:
        reader.alike(path, measured_seconds=saves, measured_graph_bytes=saved_bytes.measured_graph_bytes)
    if len(set(saved_bytes.measured_weights_bytes)) < min(len(saves), 2):
        reader.wrong(f"{path}measured_weights_bytes", "must differ: a fit needs saves of different sizes")


def _check_offer(offer: CompletionOffer, _path: str, reader: Reader) -> None:
    """Check how the groups of an offer go together."""
    names = [group.name for group in offer.groups if group.name]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.contradicts("groups.name", f"must be unique in the offer, found {quote(name)} twice")
    for number, group in enumerate(offer.groups):
        joins = "" if group.replacement is None else group.replacement.joins
        if isinstance(group.lifetime.law, KnownRevocations) and len(group.lifetime.law.times_s) > group.nodes:
            text = f"must hold at most one time for each of {group.nodes} nodes"
            reader.wrong(f"groups[{number}].lifetime.revocations.times_seconds", text)
        if isinstance(group.lifetime.law, KnownRevocations | AvailabilityRecord) and group.replacement is not None:
            text = "must be absent with a record of availability or revocations, which includes replacements"
            reader.contradicts(f"groups[{number}].replacement", text)
        if joins and joins not in names:
            names_text = ", ".join(names) or "none has a name"
            text = f"must name a group of the offer ({names_text}), found {quote(joins)}"
            reader.wrong(f"groups[{number}].replacement.group_name", text)
    if not 1 <= offer.nodes <= MOST_NODES:
        reader.wrong("groups.nodes", f"must have a sum of 1 to {MOST_NODES}, found {offer.nodes}")
    if offer.groups and not offer.groups[0].nodes and offer.chief_loss != ChiefLoss.NONE:
        text = "must be at least 1 with chief_loss: the chief is the first node of the first group"
        reader.wrong("groups[0].nodes", text)


def write_row(row: OfferResult) -> completion_pb2.CompletionRow:
    """The result of an offer, or why it has none."""
    completion, offer = row.completion, row.offer
    if completion is None or offer is None:
        problem = None if row.error is None else write_problem(row.error)
        return completion_pb2.CompletionRow(name=row.name, status="ROW_STATUS_REFUSED", problem=problem)
    return to_message(
        completion,
        completion_pb2.CompletionRow,
        name=row.name,
        status="ROW_STATUS_ANSWERED",
        problem=None,
        samples_per_second=row.samples_per_s,
        warnings=row.warnings,
        basis=row.basis,
        nodes=offer.nodes,
        workers=offer.workers,
        device_names=dict.fromkeys(group.device for group in offer.groups if group.device and group.nodes),
        speed_log_spread=row.log_spread or None,
    )


MOST_RECORDS: Final = 64
USUAL_FRACTIONS: Final = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


def read_on_demand(message: completion_pb2.OnDemandQuestion, reader: Reader) -> OnDemandQuestion | None:
    """The question about on-demand machines; None = the reader has an error."""
    path, others = "on_demand", {}
    source = message.WhichOneof("source")
    if source is None:
        reader.wrong(path, "must state availability, which is a record, or a law")
        return None
    if len(message.learned_from) > MOST_RECORDS:
        reader.wrong(f"{path}.learned_from", f"must hold at most {MOST_RECORDS} records")
        return None
    if source == "law":
        others["availability"] = from_message(message.law, AvailabilityLaw, f"{path}.law.", reader)
    return from_message(message, OnDemandQuestion, f"{path}.", reader, **others)  # type: ignore[arg-type]  # attributes


def _check_on_demand(question: OnDemandQuestion, path: str, reader: Reader) -> None:
    if question.deadline_s < question.work_s + question.switch_s:
        text = f"must be at least work_seconds + switch_seconds ({question.work_s + question.switch_s:g})"
        reader.wrong(f"{path}deadline_seconds", f"{text}, found {question.deadline_s:g}")
    if question.spot_per_h > question.on_demand_per_h:
        text = f"must be at most on_demand_price_per_hour ({question.on_demand_per_h:g}), found {question.spot_per_h:g}"
        reader.wrong(f"{path}spot_price_per_hour", text)


def read_hybrid(message: completion_pb2.HybridQuestion, reader: Reader) -> HybridQuestion:
    """The question when to switch from synchronous to asynchronous training."""
    times = from_message(message, HybridTimes, "hybrid.", reader)
    question = from_message(message, HybridQuestion, "hybrid.", reader, times=times)
    if question.nodes is not None and not question.nodes.nodes:
        reader.wrong("hybrid.nodes.nodes", "must be at least 1")
    reader.whole(message.nodes.tier, "hybrid.nodes.tier", most=LAST_TIER)
    if len(times.slowdowns) == 1:
        reader.wrong("hybrid.slowdown_ratios", "must hold one ratio for each worker, at least two")
    return question if times.fractions else replace(question, times=replace(times, fractions=USUAL_FRACTIONS))


CHECKS: Final[Mapping[type, Any]] = MappingProxyType(
    {
        AvailabilityRecord: _check_availability,
        EmpiricalLifetimes: _check_empirical,
        ObservedLifetimes: _check_observed,
        FleetRecord: _check_fleet,
        NodePrices: _check_prices,
        NodeReplacement: _check_replacement,
        SavedBytes: _check_saved,
        CompletionOffer: _check_offer,
        OnDemandQuestion: _check_on_demand,
    }
)
"""Checks of how the fields of a value go together."""
