"""The estimator: judges what was observed, learns what all jobs teach, and fits one job under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
import scipy

from nodewise.plugin import (
    Assessment,
    Catalogue,
    Context,
    Corpus,
    Model,
    Notice,
    Prior,
    Profile,
    Query,
    Refusal,
    RowRefusal,
    freeze,
)
from nodewise_scaling.device import INTERVAL_LEVEL, DeviceModel
from nodewise_scaling.fitting import TAIL_DEGREES, JobFit, student_log_density
from nodewise_scaling.model import SettingsModel
from nodewise_scaling.overlap import REFERENCE_PEAK_FLOPS_PER_S, OverlapFit, fit_overlap
from nodewise_scaling.points import Points, Setting, Split, points_of, splits_of
from nodewise_scaling.prior import Knowledge, load_default_prior, update
from nodewise_scaling.replicas import ScalingModel, not_known
from nodewise_scaling.routing import Route, routes_of
from nodewise_scaling.speed import known_as
from nodewise_scaling.transfer import Sources, fit_with_donors, sources_of

__all__ = ["ScalingEstimator", "log_peak", "odds_of", "share_of"]

NAME: Final = "scaling"

SEVERAL_NODES: Final = 0.8
ONE_NODE: Final = 0.5
ONE_POINT: Final = 0.3
LONE_WORKERS: Final = 0.2
OTHER_DEVICE: Final = 0.1
"""Strength of evidence: runs across nodes; inside one node; a single configuration; one worker; other devices."""

EXPECTED_LOG_ERROR: Final = {
    SEVERAL_NODES: 0.08,
    ONE_NODE: 0.15,
    ONE_POINT: 0.20,
    LONE_WORKERS: 0.50,
    OTHER_DEVICE: 0.40,
}
"""Mean |ln(predicted / measured)| by strength, as measured with sources left out (docs/accuracy.md)."""


TEMPER: Final = 0.5
"""What runs weigh in the odds of the two hypotheses: neither is true, and runs at small scale tell little of what
happens at a large one (P. Gruenwald, "The Safe Bayesian", ALT 2012)."""

LEAST_SHARE: Final = 0.15
"""A hypothesis that is less probable than this is not followed."""

PEAKS: Final = ("fp16_flops_per_s", "bf16_flops_per_s")


class ScalingEstimator:
    """Compute and gradient exchange fitted to observed runs, with a prior over jobs and clusters."""

    def learn(self, corpus: Corpus) -> Prior:
        """The shipped prior, extended by devices of stored profiles that it does not hold.

        For the devices that it holds, a few runs of other jobs say less than the prior (research/scaling.md).
        """
        default_prior = load_default_prior()
        ran = [
            (setting, points)
            for profile in sorted(corpus, key=lambda each: each.digest)
            for settings in points_of(profile).values()
            for setting, points in settings.items()
            if setting.device and setting.device not in default_prior.offset
        ]
        lessons = [(setting.device, points) for setting, points in ran]
        links: dict[str, frozenset[float]] = {}
        for device, link in sorted({setting for setting, _ in ran}):
            links[device] = links.get(device, frozenset()) | {link}
        knowledge = replace(update(default_prior, lessons), links=links)
        source = f"{len(lessons)} jobs of the corpus, on devices of their own" if lessons else ""
        sources = tuple(filter(None, (*knowledge.sources, source)))
        return Prior.of(NAME, knowledge.document(), sources=sources, content=knowledge)

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Accept rows with runs on the asked devices, or with runs elsewhere and catalogue facts to transfer them."""
        evidence = points_of(profile)
        row_refusals: list[RowRefusal] = []
        used: list[tuple[Route, Mapping[Setting, Points]]] = []
        unknown: list[Split] = []
        errors = np.full(len(query.configurations), np.inf)
        for split, alike in splits_of(query.configurations).items():
            settings = evidence.get(split)
            if settings is None:
                unknown.append(split)
                continue
            rows = np.flatnonzero(alike)
            refusals, routes = routes_of(query.configurations.take(rows), settings, query.catalogue)
            row_refusals += refusals
            used += [(route, settings) for route in sorted(routes, key=str)]
            for route, members in routes.items():
                errors[rows[members]] = EXPECTED_LOG_ERROR[_strength_of(route, settings)]
        if not used:
            nothing = Refusal.missing("configurations must hold at least one row", "observations")
            reasons = [each.refusal for each in row_refusals] + [not_known(split, evidence) for split in unknown]
            return Assessment(refusal=reasons[0] if reasons else nothing, of_profile=not evidence)
        lines = [line for route, settings in used for line in _lines(route, settings)]
        return Assessment(
            evidence=tuple(dict.fromkeys(lines)),
            strength=min(_strength_of(route, settings) for route, settings in used),
            expected_log_error=float(errors[0]) if len(set(errors.tolist())) == 1 else freeze(errors),
        )

    def fit(self, profile: Profile, context: Context) -> Model:
        """Fit each split and device that was measured, first by itself, then with the fits on other devices."""
        precision = profile.workload.precision or ""
        return ScalingModel(
            {split: _fit_settings(evidence, context, precision) for split, evidence in points_of(profile).items()}
        )


def _fit_settings(evidence: Mapping[Setting, Points], context: Context, precision: str) -> SettingsModel:
    """Runs of replicas that are split alike."""
    prior = context.prior
    knowledge = prior.content if prior is not None and isinstance(prior.content, Knowledge) else load_default_prior()
    bare = Sources(knowledge=knowledge, catalogue=context.catalogue, precision=precision)
    exchange_flags = [points.exchange_seen for points in evidence.values()]
    sources = sources_of(evidence, bare) if any(exchange_flags) else bare
    # What a device without runs is answered from too, but only where facts of one that has runs are known.
    carried = any(context.catalogue.device(setting.device) is not None for setting in evidence)

    @cache
    def where_unseen() -> Sources:
        if not carried and all(exchange_flags):
            return sources
        return sources_of(evidence, replace(bare, knowledge=knowledge.where_unseen))

    models = {}
    for setting, points in evidence.items():
        own_sources = sources if points.exchange_seen else where_unseen()
        multiplier = own_sources.knowledge.multiplier(own_sources.name_of(setting), INTERVAL_LEVEL)
        fit = fit_with_donors(setting, own_sources)
        other, share = _overlap_hypothesis(setting, fit, own_sources)
        models[setting] = DeviceModel(fit, multiplier, points, overlapped=other, overlapped_share=share)
    # Fitted only when a row asks about such a device, or where no run shows exchange anyhow.
    return SettingsModel(
        models, sources if all(exchange_flags) else where_unseen(), where_unseen, _notices(evidence, sources)
    )


def _notices(evidence: Mapping[Setting, Points], sources: Sources) -> tuple[Notice, ...]:
    """What holds of every row."""
    notices = []
    unknown = sorted({setting for setting in evidence if not sources.name_of(setting)})
    if unknown:
        names = ", ".join(dict.fromkeys(map(_setting_name, unknown)))
        message = (
            f"the prior holds no other job on {names}: how its cluster exchanges gradients is assumed from other "
            "clusters"
        )
        notices.append(Notice("CLUSTER_NOT_KNOWN", message))
    drifted = sum(points.drifted for points in evidence.values())
    if drifted:
        message = (
            f"repeated measurements of {drifted} configurations differ from the earlier ones: only the newest are used"
        )
        notices.append(Notice("DRIFTED", message))
    return tuple(notices)


def _setting_name(setting: Setting) -> str:
    link = f" over a link of {setting.link_bytes_per_s:.3g} bytes/s" if setting.link_bytes_per_s else ""
    return f"{setting.device or 'a device that is not stated'}{link}"


def _overlap_hypothesis(setting: Setting, fit: JobFit, sources: Sources) -> tuple[OverlapFit | None, float]:
    """The hypothesis that exchange hides, and its probability by the runs."""
    name = known_as(sources.catalogue, setting.device, sources.knowledge.overlapped)
    other = fit_overlap(fit.points, log_peak(setting.device, sources.catalogue))
    usual = sources.knowledge.overlapped_share(name, setting.link_bytes_per_s)
    share = share_of(other, fit, sources.level_sd(setting), usual)
    return (other, share) if share >= LEAST_SHARE else (None, 0.0)


def share_of(other: OverlapFit, fit: JobFit, level_sd: float, usual: float) -> float:
    """The probability that exchange hides, by the runs and how usual it is."""
    log_odds = TEMPER * odds_of(other, fit, level_sd)
    if fit.points.keys[:, 0].max() == 1.0:
        # Exchange that shows inside a node shows across nodes too; if it hides inside a node, links stay unknown.
        log_odds = min(log_odds, 0.0)
    return float(scipy.special.expit(scipy.special.logit(usual) + log_odds))


def odds_of(other: OverlapFit, fit: JobFit, level_sd: float) -> float:
    """Ln of the odds, by the runs only, that exchange hides.

    T_L has no prior of its own; the form's level lies about the very runs: as much is granted to both.
    """
    level = float(student_log_density(np.zeros(1), TAIL_DEGREES)[0] - np.log(level_sd))
    return other.log_evidence + level - fit.log_evidence


def log_peak(device: str, catalogue: Catalogue) -> float | None:
    """Ln of a device's 16-bit peak over an A100's."""
    facts = catalogue.device(device)
    peaks = [facts[name] for name in PEAKS if name in facts] if facts is not None else []
    return float(np.log(max(peaks) / REFERENCE_PEAK_FLOPS_PER_S)) if peaks else None


def _strength_of(route: Route, settings: Mapping[Setting, Points]) -> float:
    return OTHER_DEVICE if route.evidence is None else _strength(settings[route.evidence])


def _strength(points: Points) -> float:
    if not points.exchange_seen:
        return LONE_WORKERS
    if len(points) == 1:
        return ONE_POINT
    return SEVERAL_NODES if np.any(points.keys[:, 0] > 1.0) else ONE_NODE


def _lines(route: Route, evidence: Mapping[Setting, Points]) -> list[str]:
    """What a route's answer rests on."""
    if route.evidence is not None:
        return [_describe(route.evidence.device, evidence[route.evidence])]
    donors = [(setting.device, points) for setting, points in evidence.items() if setting.device]
    return [f"{_describe(*donor)}, carried over to {route.asked.device}" for donor in donors]


def _describe(device: str, points: Points) -> str:
    nodes = points.keys[:, 0]
    reach = f"{nodes.min():.0f} to {nodes.max():.0f} nodes" if nodes.max() > nodes.min() else f"{nodes.max():.0f} nodes"
    plural = "s" if len(points) > 1 else ""
    return f"{len(points)} all-reduce configuration{plural} measured on {device or 'a device not stated'} ({reach})"
