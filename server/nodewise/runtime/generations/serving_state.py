"""The state that serves one generation: all methods whose answers depend on plugins, created and closed together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nodewise.estimation.answer.answer_cache import AnswerCache
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.lessons.lessons import Teachings
from nodewise.hosting.records import Listing as HostListing
from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue
from nodewise.ports.limits import Limits
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.answering import Answering
from nodewise.rpc.architectures import ArchitectureBatches
from nodewise.rpc.batches import Batches
from nodewise.rpc.calls import run_in
from nodewise.rpc.listing import Listing
from nodewise.rpc.long_call import Workshop
from nodewise.rpc.predictions import Predictions
from nodewise.rpc.services import behaviours_by_name, late_behaviours
from nodewise.rpc.sources import ProfileSources
from nodewise.runtime.compute.pool import ComputePool, GenerationCompute, Tools
from nodewise.runtime.settings import Settings
from nodewise.runtime.workshops import workshop_of

__all__ = ["LoadedPlugins", "ServingState", "SharedResources", "serving_state_of"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharedResources:
    """Resources that generations share: the store, threads, processes, and caches of unchanged plugins.

    Attributes
    ----------
    work, simulations : Executor
        Threads for fits and large queries, and for simulations.
    reads : Executor
        Threads for disk access.
    ahead : callable
        Runs background work.
    tasks : set of Task
        Tasks that no caller waits for; the end of the server cancels them.
    """

    settings: Settings
    store: ProfileStore
    writer: StoreWriter
    sources: ProfileSources
    pool: ComputePool
    work: Executor
    simulations: Executor
    reads: Executor
    answer_cache: AnswerCache
    ahead: Callable[[Callable[[], None]], None]
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LoadedPlugins:
    """The loaded plugins of a serving state.

    Attributes
    ----------
    name : str
        Name of the generation in bases; "" = a digest of the registry.
    number : int
        Number of the generation; 0 = none.
    opening : callable or None
        Returns what :class:`Tools` needs, from the directory of traces and the listings of the hosts; None = only
        this process can have these plugins.
    """

    registry: Registry
    catalogue: Catalogue
    name: str = ""
    number: int = 0
    opening: Callable[[Path, Mapping[str, HostListing]], Callable[[], Workshop]] | None = None
    _holding: threading.Lock = field(default_factory=threading.Lock, init=False)
    _holders: list[None] = field(default_factory=list, init=False)

    def hold(self) -> None:
        """Count one more serving state that uses these plugins; each calls :meth:`let_go` once."""
        with self._holding:
            self._holders.append(None)

    def let_go(self) -> None:
        """Close the plugin hosts, once the last serving state has let go."""
        with self._holding:
            self._holders.pop()
            left = bool(self._holders)
        if not left:
            self.registry.close()


@dataclass(slots=True, eq=False)
class ServingState:
    """Methods over one registry, one catalogue and the lessons learned with them.

    Attributes
    ----------
    methods : mapping of name to callable
        Implementations by method name in snake case.
    late_services : mapping of service to callable
        Return the objects of services that are made at their first call.
    homes : mapping of distribution to executor
        Threads for calls to one plugin host.
    calls : int
        Calls in progress. Only the event loop's thread counts them.
    retired : bool
        Whether new calls are no longer accepted.
    """

    loaded_plugins: LoadedPlugins
    answers: Answers
    predictions: Predictions
    batches: Batches
    methods: Mapping[str, Callable[..., Any]]
    late_services: Mapping[str, Callable[[], object]]
    homes: Mapping[str, ThreadPoolExecutor]
    calls: int = 0
    is_retired: bool = field(default=False)

    def close(self) -> None:
        """Close the plugin hosts. Blocks for a moment. No call may be in progress."""
        self.predictions.forget()
        self.answers.forget()
        self.loaded_plugins.let_go()
        for home in self.homes.values():
            home.shutdown(wait=True, cancel_futures=True)

    def make_services(self) -> None:
        """Make all services now, so that no call waits for it. Blocks for a moment."""
        for make in self.late_services.values():
            make()

    @property
    def answering(self) -> Answering:
        """The object that answers queries."""
        return self.predictions.answering


def serving_state_of(
    resources: SharedResources, loaded_plugins: LoadedPlugins, teachings: Teachings, track: str = ""
) -> ServingState:
    """Create the state that serves a generation.

    Parameters
    ----------
    teachings : Teachings
        Current lessons of its estimators.
    track : str
        Name of the track in bases; "" = the default track.
    """
    loaded_plugins.hold()
    settings, catalogue = resources.settings, loaded_plugins.catalogue
    workshop = workshop_of(
        settings,
        loaded_plugins.registry,
        catalogue,
        resources.store.traces,
        ahead=resources.ahead,
        cache=resources.answer_cache,
        generation=loaded_plugins.name,
        track=track,
    )
    answers, limits = workshop.answers, workshop.limits
    answers.adopt(teachings)
    opening = loaded_plugins.opening
    how_opened = (
        None if opening is None else lambda: opening(resources.store.traces.root, loaded_plugins.registry.listings)
    )
    compute = GenerationCompute(resources.pool, Tools(workshop, how_opened))
    sources = resources.sources
    homes = {
        host.distribution: ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-hosted")
        for host in loaded_plugins.registry.hosts
    }
    answering = Answering(answers, resources.work, resources.simulations, homes)
    architectures = ArchitectureBatches(answers, sources, limits, resources.work, compute)
    predictions = Predictions(answering, sources, limits, compute)
    batches = Batches(answering, architectures, sources, limits)
    listing = Listing(answers, partial(run_in, resources.reads, resources.store.scores.scores))
    late_services = _late_services(resources, answers, limits, compute, homes)
    methods = {**behaviours_by_name((predictions, batches, listing)), **late_behaviours(late_services)}
    return ServingState(loaded_plugins, answers, predictions, batches, MappingProxyType(methods), late_services, homes)


# ruff: disable[PLC0415]  # an embedded server answers one question: to import all takes longer than most answers
def _late_services(
    resources: SharedResources,
    answers: Answers,
    limits: Limits,
    compute: GenerationCompute,
    homes: Mapping[str, ThreadPoolExecutor],
) -> Mapping[str, Callable[[], object]]:
    """Return what makes the services that compute for long, by name; each imports its modules at its first call."""
    sources, policy = resources.sources, resources.settings.default_policy

    def schedules() -> object:
        from nodewise.rpc.schedules import Schedules

        return Schedules(answers, sources, limits, resources.work, policy, homes)

    def simulations() -> object:
        from nodewise.rpc.simulations import Simulations

        return Simulations(answers, sources, limits, compute, policy)

    def completions() -> object:
        from nodewise.rpc.completions import Completions

        return Completions(answers, sources, limits, compute)

    def plans() -> object:
        from nodewise.rpc.plans import Plans

        return Plans(answers, sources, limits, compute)

    def diagnoses() -> object:
        from nodewise.diagnosis.watching import StepWatch
        from nodewise.rpc.diagnoses import Diagnoses

        watch = StepWatch(compute, resources.store, resources.writer, resources.reads, resources.tasks)
        return Diagnoses(sources, compute, watch)

    def evaluations() -> object:
        from nodewise.rpc.evaluations import Evaluations

        return Evaluations(compute)

    def sharing() -> object:
        from nodewise.rpc.sharing import Sharing

        return Sharing(answers, sources, limits, compute)

    makers = {
        "ScheduleService": schedules,
        "SimulationService": simulations,
        "CompletionService": completions,
        "PlanService": plans,
        "DiagnosisService": diagnoses,
        "EvaluationService": evaluations,
        "SharingService": sharing,
    }
    return {service: cache(make) for service, make in makers.items()}


# ruff: enable[PLC0415]
