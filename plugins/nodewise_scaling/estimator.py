"""The estimator: judges what was observed, learns what all jobs teach, and fits one job under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Context,
    Corpus,
    Model,
    Notice,
    Prior,
    Profile,
    Query,
    Refusal,
)
from nodewise_scaling.device import INTERVAL_LEVEL, DeviceModel
from nodewise_scaling.model import ScalingModel
from nodewise_scaling.points import Points, Setting, points_of
from nodewise_scaling.prior import Knowledge, shipped, updated
from nodewise_scaling.routing import Route, routes_of
from nodewise_scaling.transfer import Sources, sources_of, supported

__all__ = ["ScalingEstimator"]

NAME: Final = "scaling"

SEVERAL_NODES: Final = 0.8
ONE_NODE: Final = 0.5
ONE_POINT: Final = 0.3
OTHER_DEVICE: Final = 0.1
"""Strength of evidence: runs across nodes; inside one node; a single configuration; on other devices alone."""


class ScalingEstimator:
    """Compute and gradient exchange fitted to observed runs, with a prior over jobs and clusters."""

    def learn(self, corpus: Corpus) -> Prior:
        """The shipped prior, with what the profiles say of devices that it does not know.

        Of those that it knows, a few runs of other jobs say less than it holds (research/scaling.md).
        """
        known = shipped()
        lessons = [
            (device, points)
            for profile in sorted(corpus, key=lambda each: each.digest)
            for (device, _), points in points_of(profile).items()
            if device and device not in known.offset
        ]
        knowledge = updated(known, lessons)
        told = f"{len(lessons)} jobs of the corpus, on devices of their own" if lessons else ""
        sources = tuple(filter(None, (*knowledge.sources, told)))
        return Prior.of(NAME, knowledge.document(), sources=sources, content=knowledge)

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Say whether runs of the asked devices are known, or runs and facts that can be carried over."""
        evidence = points_of(profile)
        refusals, routes = routes_of(query.configurations, evidence, query.catalogue)
        if not routes:
            nothing = Refusal.missing("no configuration was asked about", "observations")
            return Assessment(refusal=refusals[0].refusal if refusals else nothing)
        lines = [line for route in sorted(routes, key=str) for line in _lines(route, evidence)]
        weakest = min(OTHER_DEVICE if each.evidence is None else _strength(evidence[each.evidence]) for each in routes)
        return Assessment(evidence=tuple(dict.fromkeys(lines)), strength=weakest)

    def fit(self, profile: Profile, context: Context) -> Model:
        """Fit every device that was measured, by itself, and then with what the others say of it."""
        prior = context.prior
        knowledge = prior.content if prior is not None and isinstance(prior.content, Knowledge) else shipped()
        evidence = points_of(profile)
        precision = profile.workload.precision or ""
        bare = Sources(knowledge=knowledge, catalogue=context.catalogue, precision=precision)
        seen = [points.exchange_seen for points in evidence.values()]
        sources = sources_of(evidence, bare) if any(seen) else bare
        # What a device without runs is answered from too, but only where facts of one that has runs are known.
        carried = any(context.catalogue.device(setting.device) is not None for setting in evidence)
        unseen = replace(bare, knowledge=knowledge.where_unseen)
        where_unseen = sources_of(evidence, unseen) if carried or not all(seen) else sources
        models = {}
        for setting, points in evidence.items():
            known = sources if points.exchange_seen else where_unseen
            multiplier = known.knowledge.multiplier(known.name_of(setting.device), INTERVAL_LEVEL)
            models[setting] = DeviceModel(supported(setting, known), multiplier, points)
        notices = []
        unknown = sorted({setting.device for setting in evidence if not sources.name_of(setting.device)})
        if unknown:
            named = ", ".join(device or "a device that is not stated" for device in unknown)
            message = f"no other job on {named} is known: how its cluster exchanges gradients is taken from others"
            notices.append(Notice("CLUSTER_NOT_KNOWN", message))
        drifted = sum(points.drifted for points in evidence.values())
        if drifted:
            message = f"{drifted} configurations were measured anew with other results: the older ones are left out"
            notices.append(Notice("DRIFTED", message))
        return ScalingModel(models, where_unseen, tuple(notices))


def _strength(points: Points) -> float:
    if len(points) == 1:
        return ONE_POINT
    return SEVERAL_NODES if np.any(points.keys[:, 0] > 1.0) else ONE_NODE


def _lines(route: Route, evidence: Mapping[Setting, Points]) -> list[str]:
    """What a route's answer rests on."""
    if route.evidence is not None:
        return [_described(route.evidence.device, evidence[route.evidence])]
    donors = [(setting.device, points) for setting, points in evidence.items() if setting.device]
    return [f"{_described(*donor)}, carried over to {route.asked.device}" for donor in donors]


def _described(device: str, points: Points) -> str:
    nodes = points.keys[:, 0]
    reach = f"{nodes.min():.0f} to {nodes.max():.0f} nodes" if nodes.max() > nodes.min() else f"{nodes.max():.0f} nodes"
    plural = "s" if len(points) > 1 else ""
    return f"{len(points)} all-reduce configuration{plural} measured on {device or 'a device not stated'} ({reach})"
