"""SimulationService: with progress, its columns in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.caps import answered_within
from nodewise.rpc.errors import below
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.options import read_model_options
from nodewise.rpc.policies import policy_named
from nodewise.rpc.simulation_requests import read_simulation
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_simulated_jobs import check_sizes
from nodewise.rpc.wire_simulations import write_progress, write_result, write_rows
from nodewise.scheduling.simulating import simulated_repeatedly
from nodewise.scheduling.simulation.core import Progress
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb

__all__ = ["Simulations"]


@dataclass(slots=True, eq=False)
class Simulations:
    """The behaviour of Simulate.

    Attributes
    ----------
    answers : Answers
        Knows the estimators and the policies.
    sources : ProfileSources
        Finds profiles.
    limits : Limits
        Caps of a call.
    compute : Compute
        Where simulations are made.
    default_policy : str
        Used when a request names none.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    compute: Compute[Workshop]
    default_policy: str

    @streamed
    async def simulate(self, request: pb.SimulateRequest, call: Call) -> LongCall:
        """Progress, then columns, then the result: of what was simulated so far where time was over before."""
        policy = request.policy or self.default_policy
        policy_named(self.answers.registry, policy)
        options = read_model_options(request.options).required_of(self.answers)
        check_sizes(request.jobs, request.curves, self.limits)
        profiles: dict[int, Profile] = {}
        for number, curve in enumerate(request.curves):
            if curve.HasField("profile"):
                with below(f"curves[{number}].profile."):
                    profiles[number] = await self.sources.profile(curve.profile.profile, options.waiting(call))
        return LongCall(_simulated, (request.SerializeToString(), policy, profiles))


def _simulated(workshop: Workshop, asked: tuple[bytes, str, dict[int, Profile]], run: LongRun) -> Iterator[bytes]:
    """Read, predict, simulate; the messages that tell of it are made as they are sent."""
    data, policy_name, profiles = asked
    request = pb.SimulateRequest.FromString(data)
    policy = policy_named(workshop.answers.registry, policy_name)
    options = read_model_options(request.options)

    answer = partial(answered_within, workshop.limits, workshop.answers)
    read = read_simulation(request, policy.record, options, profiles, answer, run.budget, workshop.limits)
    question = read.question
    jobs, repetitions = len(question.jobs), question.repetitions

    def advanced(done: int, found: Progress) -> None:
        run.tell(lambda: write_progress(done, repetitions, jobs, found).SerializeToString())

    found = simulated_repeatedly(question, policy, run.budget, advanced)
    last = found[-1].result
    end = Progress(
        now_s=last.last_completion_s,
        arrived=last.jobs,
        finished=last.finished,
        active=last.jobs - last.finished,
        decisions=last.decisions,
    )
    advanced(sum(each.result.complete for each in found), end)
    for message in write_rows(found, jobs=request.include_jobs):
        yield message.SerializeToString()
    yield pb.SimulateResponse(result=write_result(found, repetitions, policy.record, read.bases)).SerializeToString()
