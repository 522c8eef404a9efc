"""The generation methods of AdminService."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.domain.errors import invalid_field
from nodewise.mapper.mapping import timestamp
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.listing import write_plugin, write_plugin_problem
from nodewise.rpc.paging import page
from nodewise.runtime.generations.changes import Changes
from nodewise.runtime.generations.manifest import Generation
from nodewise.runtime.generations.serving import CANARY
from nodewise.runtime.generations.serving_state import ServingState
from nodewise.runtime.generations.standing import folder_faults
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

__all__ = ["Administration"]

AGREED_S: Final = 30.0
"""Patience with the other processes of a server, in calls without a deadline too."""
_WIDTH: Final = 12
"""Digits of a number in a page's token, so that numbers sort as texts."""


@dataclass(slots=True, eq=False)
class Administration:
    """Generation methods of AdminService."""

    changes: Changes

    async def list_generations(self, request: pb.ListGenerationsRequest, call: Call) -> pb.ListGenerationsResponse:
        """List generations, newest first."""
        response: pb.ListGenerationsResponse = await run_in(None, self._list, request)
        return response

    async def reload(self, request: pb.ReloadRequest, call: Call) -> pb.ReloadResponse:
        """Activate another generation."""
        result = await self.changes.reload(request.generation if request.HasField("generation") else None)
        await self._wait_for_agreement(call)
        return pb.ReloadResponse(
            outcome=f"RELOAD_OUTCOME_{result.outcome.name}",
            generation=result.number,
            generation_before=result.before,
            trial=result.trial if result.trial.HasField("trial_time") else None,
            tracks=await run_in(None, self._tracks),
        )

    async def set_canary(self, request: pb.SetCanaryRequest, call: Call) -> pb.SetCanaryResponse:
        """Let a generation answer a share of the jobs."""
        if not 0.0 < request.share < 1.0:
            raise invalid_field("share", f"must be above 0 and below 1, found {request.share:g}")
        number = request.generation if request.HasField("generation") else None
        result = await self.changes.set_canary(number, request.share)
        await self._wait_for_agreement(call)
        return pb.SetCanaryResponse(
            outcome=f"RELOAD_OUTCOME_{result.outcome.name}",
            generation=result.number,
            trial=result.trial if result.trial.HasField("trial_time") else None,
            tracks=await run_in(None, self._tracks),
        )

    async def promote(self, request: pb.PromoteRequest, call: Call) -> pb.PromoteResponse:
        """Let the canary answer all jobs."""
        number = await self.changes.promote()
        await self._wait_for_agreement(call)
        return pb.PromoteResponse(generation=number, tracks=await run_in(None, self._tracks))

    async def rollback(self, request: pb.RollbackRequest, call: Call) -> pb.RollbackResponse:
        """End the canary, or return to the previous generation."""
        result = await self.changes.rollback()
        await self._wait_for_agreement(call)
        return pb.RollbackResponse(
            outcome=f"RELOAD_OUTCOME_{result.outcome.name}",
            generation=result.number,
            failures=result.trial.failures,
            tracks=await run_in(None, self._tracks),
        )

    async def list_plugin_states(self, request: pb.ListPluginStatesRequest, call: Call) -> pb.ListPluginStatesResponse:
        """List the plugins of all tracks."""
        tracks = self.changes.serving.application.tracks
        states = [state for each in tracks.serving_states for state in _states(each, canary=each is tracks.canary)]
        problems = [write_plugin_problem(each) for each in tracks.stable.loaded_plugins.registry.problems]
        return pb.ListPluginStatesResponse(plugins=states, problems=problems)

    def _list(self, request: pb.ListGenerationsRequest) -> pb.ListGenerationsResponse:
        folder = self.changes.folder
        generations = {each.number: each for each in folder.generations()}
        highest = 10**_WIDTH
        keys = {f"{highest - number:0{_WIDTH}d}": number for number in generations}
        names, next_token = page(sorted(keys), request)
        return pb.ListGenerationsResponse(
            generations=[_generation(generations[keys[name]], folder.report(keys[name])) for name in names],
            next_page_token=next_token,
            tracks=self._tracks(),
        )

    async def _wait_for_agreement(self, call: Call) -> None:
        await self.changes.wait_for_agreement(min(AGREED_S, call.remaining_s() / 2))

    def _tracks(self) -> pb.Tracks:
        folder = self.changes.folder
        with folder_faults():
            state = folder.state()
        workers = [
            pb.WorkerState(
                process_id=pid,
                stable_generation=report["stable"],
                canary_generation=report["canary"],
                problem=report["problem"],
            )
            for pid, report in sorted(folder.reports().items())
        ]
        tracks = pb.Tracks(
            stable_generation=state.stable,
            candidate_generation=state.candidate,
            previous_generations=state.previous,
            workers=workers,
        )
        if state.canary is not None:
            tracks.canary.generation, tracks.canary.share = state.canary.number, state.canary.share
        return tracks


def _generation(generation: Generation, trial: pb.Trial | None) -> pb.Generation:
    return pb.Generation(
        number=generation.number,
        create_time=timestamp(generation.created_unix_s),
        why=generation.why,
        distributions=[
            pb.PluginDistribution(name=each.name, version=each.version, digest=each.digest)
            for each in generation.distributions
        ],
        catalog_digest=generation.catalogue_digest,
        trial=trial,
    )


def _states(serving_state: ServingState, *, canary: bool) -> list[pb.PluginState]:
    states = []
    for kind, records in serving_state.loaded_plugins.registry.by_kind.items():
        for plugin in records.values():
            tallies = plugin.calls.by_method().values()
            states.append(
                pb.PluginState(
                    plugin=write_plugin(plugin, kind),
                    generation=serving_state.loaded_plugins.number,
                    track=CANARY if canary else "",
                    serving=plugin.breaker is None or plugin.breaker.is_closed,
                    calls_count=sum(each.calls for each in tallies),
                    failures_count=sum(each.failures for each in tallies),
                )
            )
    return states
