"""PredictionService's lists: estimators, plugins and devices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

from nodewise.domain.scores import RunningScore
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO
from nodewise.evaluation.running_scores import auto_version
from nodewise.hosting.distributions import SHIPPED_DISTRIBUTION
from nodewise.hosting.registry import LoadedPlugin, PluginProblem
from nodewise.mapper.mapping import to_message
from nodewise.mapper.reading import Reader
from nodewise.rpc.calls import Call
from nodewise.rpc.paging import page
from nodewise_protos.v1 import objective_pb2, plugin_pb2, problem_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["Listing", "write_plugin", "write_plugin_problem"]


def write_plugin(plugin: LoadedPlugin[Any], kind: str) -> plugin_pb2.Plugin:
    """The record of a plugin, and where it runs."""
    return to_message(
        plugin.record,
        plugin_pb2.Plugin,
        kind=kind,
        distribution=plugin.distribution,
        mode=plugin.mode,
        parameters=getattr(plugin.record, "parameters", ()),
    )


def write_plugin_problem(problem: PluginProblem) -> plugin_pb2.PluginProblem:
    """A plugin that is not loaded, and why."""
    kind = "unspecified" if problem.kind == "plugin" else problem.kind
    problem_message = problem_pb2.Problem(reason=problem.reason, message=problem.message)
    return to_message(problem, plugin_pb2.PluginProblem, kind=kind, problem=problem_message)


def write_score(score: RunningScore) -> pb.RunningScore:
    """A running score of at least one observation."""
    return to_message(score.sums, pb.RunningScore, update_time=score.update_time_s)


_AUTO: Final = "Chooses among the other estimators, or mixes them, by the job's evidence and by their past errors."


@dataclass(slots=True, eq=False)
class Listing:
    """Behaviours of PredictionService that list estimators, plugins and devices.

    Attributes
    ----------
    answers : Answers
        Has the registry and the catalogue.
    scores : callable
        Returns the running scores.
    """

    answers: Answers
    scores: Callable[[], Awaitable[Sequence[RunningScore]]]

    async def list_estimators(self, request: pb.ListEstimatorsRequest, call: Call) -> pb.ListEstimatorsResponse:
        """All estimators, with ``auto``."""
        registry = self.answers.registry
        entries = {_key(plugin): plugin for plugin in registry.estimators.values()}
        versions = {_key(plugin): (plugin.record.name, plugin.record.version) for plugin in entries.values()}
        auto = f"{AUTO} {auto_version(registry)}"
        versions[auto] = (AUTO, auto_version(registry))
        keys, next_token = page(sorted(versions), request)
        nonempty = [score for score in await self.scores() if score.sums.observations]
        scores = {(score.estimator, score.version): write_score(score) for score in nonempty}
        response = pb.ListEstimatorsResponse(next_page_token=next_token)
        for key in keys:
            plugin = entries.get(key)
            response.estimators.add(
                plugin=self._auto() if plugin is None else write_plugin(plugin, "estimator"),
                capabilities=() if plugin is None else sorted(plugin.record.capabilities),
                score=scores.get(versions[key]),
            )
        return response

    async def list_plugins(self, request: pb.ListPluginsRequest, call: Call) -> pb.ListPluginsResponse:
        """All loaded plugins, and on the first page those that could not be loaded."""
        reader = Reader()
        wanted_kind = reader.whole(request.kind, "kind", most=max(plugin_pb2.PluginKind.values()))
        reader.finish()
        entries = {
            f"{number} {_key(each)}": write_plugin(each, kind)
            for number, (kind, plugin) in enumerate(self.answers.registry.by_kind.items(), 1)
            for each in plugin.values()
            if wanted_kind in (0, number)
        }
        keys, next_token = page(sorted(entries), request)
        problems = [write_plugin_problem(problem) for problem in self.answers.registry.problems]
        # A plugin that failed before its kind was known may have any kind.
        kinds = {plugin_pb2.PLUGIN_KIND_UNSPECIFIED, wanted_kind} if wanted_kind else {*plugin_pb2.PluginKind.values()}
        return pb.ListPluginsResponse(
            plugins=[entries[key] for key in keys],
            problems=[each for each in problems if each.kind in kinds and not request.page_token],
            next_page_token=next_token,
        )

    async def list_devices(self, request: pb.ListDevicesRequest, call: Call) -> pb.ListDevicesResponse:
        """The devices of the catalogue."""
        catalogue = self.answers.estimators.catalogue
        entries = {device.name: device for device in catalogue.listed}
        names, next_token = page(sorted(entries), request)
        response = pb.ListDevicesResponse(next_page_token=next_token, catalog_digest=catalogue.digest)
        for name in names:
            device = entries[name]
            facts = [objective_pb2.NamedNumber(name=fact, value=value) for fact, value in device.facts.items()]
            response.devices.append(to_message(device, pb.Device, facts=facts))
        return response

    def _auto(self) -> plugin_pb2.Plugin:
        return plugin_pb2.Plugin(
            kind=plugin_pb2.PLUGIN_KIND_ESTIMATOR,
            name=AUTO,
            version=auto_version(self.answers.registry),
            description=_AUTO,
            distribution=f"{SHIPPED_DISTRIBUTION} {metadata.version(SHIPPED_DISTRIBUTION)}",
            mode=plugin_pb2.PLUGIN_MODE_INLINE,
        )


def _key(plugin: LoadedPlugin[Any]) -> str:
    """The sort key of lists: name, then version. Names have no space, and a space sorts before their characters."""
    return f"{plugin.record.name} {plugin.record.version}"
