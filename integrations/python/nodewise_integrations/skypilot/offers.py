"""The choice of an offer for a task: accelerator, number of nodes, and spot or on demand."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nodewise_client import (
    CapacityTier,
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    EstimateCompletionRequest,
    LeastCost,
    LifetimeLaw,
    LossReaction,
    NodeReplacement,
    Objective,
    Offer,
    PredictRequest,
    Work,
    configurations,
    objective,
    profile_source,
)
from nodewise_integrations.advice import WRONG_ANSWER, Adviser, NoAdvice, NoAnswer
from nodewise_integrations.skypilot.candidates import (
    TIMEOUT_SECONDS,
    Candidate,
    candidate_of,
    device_of,
    named,
    why_not,
)

__all__ = ["ChosenOffer", "Spot", "catalogue_prices", "choose_offer"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Facts about spot machines. Without them, only machines on demand are considered."""

    lifetime: LifetimeLaw
    restart_seconds: float
    checkpoint_seconds: float
    replacement_seconds: float


@dataclass(frozen=True, slots=True)
class ChosenOffer:
    """The offer that a task was set to."""

    accelerator: str
    accelerators_per_node: int
    nodes: int
    use_spot: bool
    seconds: float
    """Seconds until the work is done; for spot machines the mean."""
    cost: float
    why: str


def choose_offer(
    task: Any,
    profile_id: str,
    *,
    samples: float,
    nodes: Iterable[int],
    deadline_seconds: float | None = None,
    confidence: float | None = None,
    spot: Spot | None = None,
    adviser: Adviser | None = None,
    columns: Mapping[str, Any] | None = None,
    devices: Mapping[str, str] | None = None,
    prices: Callable[[Any, Candidate], tuple[float | None, float | None]] | None = None,
) -> ChosenOffer | NoAnswer:
    """Set a task to the cheapest accelerator, number of nodes, and spot or on demand, that is done in time.

    Candidates are the accelerators of the task's resources, with each of the numbers of nodes. A candidate that does
    not fit into memory is never chosen. Without an answer the task is not changed.

    Args:
        task: the task, whose `num_nodes` and resources are set.
        profile_id: profile of the job.
        samples: samples left to train on.
        nodes: numbers of nodes to choose from.
        deadline_seconds: seconds within which the work must be done; None = no deadline.
        confidence: probability with which the deadline must be met; None = it is met on average.
        spot: facts about spot machines; None = on demand only.
        adviser: calls the server; None = one for NODEWISE_SERVER.
        columns: further columns for `configurations`. They or the job's evidence must state a batch.
        devices: Nodewise's names of accelerators by SkyPilot's; they override `DEVICES`.
        prices: returns prices per node and hour, on demand and spot; None = SkyPilot's catalogue.
    """
    adviser = adviser or Adviser(timeout_seconds=TIMEOUT_SECONDS, user_agent="skypilot")
    try:
        offered = _offered(task, tuple(nodes), prices or catalogue_prices, devices or {})
    except Exception as error:  # noqa: BLE001  # an unreadable catalogue must not stop a launch
        return NoAnswer(NoAdvice.FAULT, f"prices are not known: {type(error).__name__}: {error}")
    if not offered:
        return NoAnswer(NoAdvice.REJECTED, "the task's resources name no accelerators with a price")
    rule = objective(LeastCost(deadline_seconds=deadline_seconds), confidence=confidence)

    def request() -> PredictRequest:
        return _request(profile_id, offered, Work(samples=samples), rule, columns or {})

    if spot is None:
        advice = adviser.advise(request)
        if isinstance(advice, NoAnswer):
            return advice
        row = advice.answer.recommendation.row if advice.answer.recommendation else 0
        found = offered[row]
        seconds, cost = advice.chosen.finish_seconds or 0.0, advice.chosen.cost or 0.0
        return _set(task, found, on_spot=False, seconds=seconds, cost=cost, why=advice.why)
    answer = adviser.predict(request)
    if isinstance(answer, NoAnswer):
        return answer
    fitting = [each for each, row in zip(offered, answer, strict=True) if row.answered and not row.excess_memory_bytes]
    if not fitting:
        return NoAnswer(NoAdvice.NOTHING_FITS, f"no candidate can be predicted: {why_not(answer[0])}")
    return _with_spot(task, profile_id, fitting, spot, samples, rule, adviser, columns or {})


def _request(
    profile_id: str, offered: list[_Offered], work: Work, rule: Objective, columns: Mapping[str, Any]
) -> PredictRequest:
    """Make one request for all candidates on demand."""
    return PredictRequest(
        profile=profile_source(profile_id),
        configurations=configurations(
            **{
                **columns,
                "nodes": [each.nodes for each in offered],
                "workers": [each.nodes * each.candidate[1] for each in offered],
                "devices": [each.device for each in offered],
                "offers": [each.name for each in offered],
            }
        ),
        offers=tuple(
            Offer(name=each.name, device_name=each.device, price_per_node_hour=each.price, currency="USD")
            for each in offered
        ),
        work=work,
        objective=rule,
    )


@dataclass(frozen=True, slots=True)
class _Offered:
    resources: Any
    candidate: Candidate
    device: str
    nodes: int
    price: float
    spot_price: float | None

    @property
    def name(self) -> str:
        return named(self.nodes, self.candidate)


def _with_spot(
    task: Any,
    profile_id: str,
    fitting: list[_Offered],
    spot: Spot,
    samples: float,
    rule: Objective,
    adviser: Adviser,
    columns: Mapping[str, Any],
) -> ChosenOffer | NoAnswer:
    names: dict[str, tuple[_Offered, bool]] = {}
    offers = []
    for each in fitting:
        for on_spot, price in ((False, each.price), (True, each.spot_price)):
            if price is None:
                continue
            name = f"{each.name} spot" if on_spot else each.name
            names[name] = (each, on_spot)
            group = CompletionGroup(
                device_name=each.device,
                nodes=each.nodes,
                workers_per_node=each.candidate[1],
                tier=CapacityTier.SPOT if on_spot else CapacityTier.ON_DEMAND,
                price_per_node_hour=price,
                lifetime=spot.lifetime if on_spot else None,
                replacement=NodeReplacement(delays_seconds=(spot.replacement_seconds,)) if on_spot else None,
            )
            offers.append(CompletionOffer(name=name, groups=(group,)))
    answer = adviser.ask(
        lambda client: client.estimate_completion(
            EstimateCompletionRequest(
                profile=profile_source(profile_id),
                work=Work(samples=samples),
                offers=tuple(offers),
                common=CompletionOffer(
                    sync_mode=columns.get("sync_modes"),
                    global_batch_samples=columns.get("global_batch_samples"),
                    batch_per_worker_samples=columns.get("batch_per_worker_samples"),
                    reaction=LossReaction.RESTART,
                    restart_seconds=spot.restart_seconds,
                    checkpoints=CompletionCheckpoints(seconds=spot.checkpoint_seconds),
                ),
                objective=rule,
            )
        )
    )
    if isinstance(answer, NoAnswer):
        return answer
    if answer.choice is None:
        return NoAnswer(NoAdvice.NOTHING_FITS, answer.no_choice_why)
    chosen = answer.choice.row
    row = answer.rows[chosen] if 0 <= chosen < len(answer.rows) else None
    if row is None or row.name not in names:
        return WRONG_ANSWER
    found, on_spot = names[row.name]
    mean_seconds = None if row.time_seconds is None else row.time_seconds.mean
    mean_cost = None if row.cost is None else row.cost.mean
    seconds, cost = mean_seconds or 0.0, mean_cost or 0.0
    return _set(task, found, on_spot=on_spot, seconds=seconds, cost=cost, why=answer.choice.why)


def _set(task: Any, found: _Offered, *, on_spot: bool, seconds: float, cost: float, why: str) -> ChosenOffer:
    accelerator, per_node = found.candidate
    task.num_nodes = found.nodes
    task.set_resources(found.resources.copy(accelerators={accelerator: per_node}, use_spot=on_spot))
    logger.info("%s%s: %s", found.name, " spot" if on_spot else "", why)
    return ChosenOffer(accelerator, per_node, found.nodes, on_spot, seconds, cost, why)


def _offered(
    task: Any,
    nodes: tuple[int, ...],
    prices: Callable[[Any, Candidate], tuple[float | None, float | None]],
    devices: Mapping[str, str],
) -> list[_Offered]:
    """List each accelerator with each number of nodes once, at its price per node and hour."""
    by_candidate: dict[Candidate, Any] = {}
    for resources in task.resources:
        candidate = candidate_of(resources)
        if candidate is not None:
            by_candidate.setdefault(candidate, resources)
    found = []
    for candidate, resources in sorted(by_candidate.items(), key=lambda item: item[0]):
        price, spot_price = prices(resources, candidate)
        if price is not None:
            device = device_of(candidate[0], devices)
            found += [_Offered(resources, candidate, device, count, price, spot_price) for count in nodes]
    return found


def catalogue_prices(resources: Any, candidate: Candidate) -> tuple[float | None, float | None]:
    """Return the lowest prices of a node with these accelerators, on demand and spot, on the enabled clouds."""
    from sky import catalog, check  # noqa: PLC0415  # slow to import, and not needed if prices are given
    from sky.clouds import CloudCapability  # noqa: PLC0415

    where = (
        [resources.cloud] if resources.cloud else check.get_cached_enabled_clouds_or_refresh(CloudCapability.COMPUTE)
    )
    name, count = candidate
    listed = catalog.list_accelerators(
        gpus_only=False,
        name_filter=f"^{re.escape(name)}$",
        region_filter=resources.region,
        quantity_filter=count,
        clouds=[str(each).lower() for each in where],
    )
    sold = [each for each in listed.get(name, ()) if each.accelerator_count == count]
    return _least(each.price for each in sold), _least(each.spot_price for each in sold)


def _least(prices: Iterable[float]) -> float | None:
    # The catalogue uses NaN if a machine is not sold this way.
    return min((price for price in prices if price == price), default=None)  # noqa: PLR0124
