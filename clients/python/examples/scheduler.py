"""A small cluster scheduler on Nodewise: clients/examples.md says what it does, step by step, in every language.

python examples/scheduler.py [TARGET [DEVICES [ROUNDS]]]
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import floor

from nodewise_client import (
    AppendProfileRequest,
    AsyncClient,
    BatchJob,
    BatchPredictRequest,
    Cluster,
    Configurations,
    CurrentAllocation,
    JobAllocation,
    Network,
    NodewiseError,
    ProfileContent,
    ProfileSource,
    ScheduleAction,
    ScheduleJob,
    ScheduleRequest,
    WatchProfilesRequest,
    Workload,
    configurations,
    node_pool,
    observations,
    phase_timings,
    profile_source,
    worker_range,
)

PREFIX = "examples/scheduler-python/"
DEVICES_PER_NODE = 4
BATCH_SAMPLES = 32
ROUND_SECONDS = 600
PATIENCE_SECONDS = 30
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Job:
    """A job of the cluster, and what it holds."""

    name: str
    parameter_bytes: float
    compute_seconds: float
    transfer_seconds: float
    samples_left: float
    holds: CurrentAllocation | None = None
    runs: JobAllocation | None = None

    @property
    def profile_id(self) -> str:
        """Where its evidence is."""
        return PREFIX + self.name


class Profiles:
    """The newest revision of each profile, as the watch tells it."""

    def __init__(self) -> None:
        self.revisions: dict[str, int] = {}
        self.caught_up = False
        self._news = asyncio.Condition()

    async def watch(self, client: AsyncClient) -> None:
        """Hear of profiles for as long as it runs."""
        async for event in client.watch_profiles(WatchProfilesRequest(name_prefix=PREFIX)):
            async with self._news:
                self.revisions |= {profile.profile_id: profile.revision for profile in event.profiles}
                self.caught_up = self.caught_up or event.caught_up
                self._news.notify_all()

    async def all_told(self) -> None:
        """Wait until there is nothing more to hear of what was there at the start."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._news:
            await self._news.wait_for(lambda: self.caught_up)

    async def wait_for_revision(self, profile_id: str, revision: int) -> None:
        """Wait until the watch has told of a revision."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._news:
            await self._news.wait_for(lambda: self.revisions.get(profile_id, 0) >= revision)


class Scheduler:
    """Predicts, schedules, applies and reports, round by round."""

    def __init__(self, client: AsyncClient, devices: int) -> None:
        self.client = client
        self.devices = devices
        self.profiles = Profiles()
        self.policy_state = b""
        self.decisions = self.observations = 0
        self.jobs = [
            Job("small", 25_000_000, 0.060, 0.020, 2e6),
            Job("medium", 102_000_000, 0.210, 0.082, 4e6),
            Job("large", 550_000_000, 0.480, 0.440, 3e6),
        ]

    async def run(self, rounds: int) -> None:
        """Run so many rounds, or until all jobs are finished."""
        await self.append_profiles()
        watching = asyncio.create_task(self.profiles.watch(self.client))
        try:
            await self.profiles.all_told()
            print(f"watching {len(self.profiles.revisions)} profiles")
            finished_rounds = 0
            while finished_rounds < rounds and (jobs := [job for job in self.jobs if job.samples_left > 0]):
                print(f"round {finished_rounds + 1}")
                await self.round(jobs, BEGIN + timedelta(seconds=finished_rounds * ROUND_SECONDS))
                finished_rounds += 1
            print(f"done: {finished_rounds} rounds, {self.decisions} decisions, {self.observations} observations")
        finally:
            watching.cancel()

    async def append_profiles(self) -> None:
        """What a short run on one node has shown of each job. The same request_id again changes nothing."""
        for job in self.jobs:
            content = ProfileContent(
                workload=Workload(model_name=job.name, parameter_bytes=job.parameter_bytes),
                network=Network(link_bytes_per_second=1.25e9),
                phase_timings=phase_timings(
                    configurations=ran_on(1, 1),
                    download_seconds=job.transfer_seconds,
                    compute_seconds=job.compute_seconds,
                    upload_seconds=job.transfer_seconds,
                    update_seconds=0.004,
                    compute_variation=0.06,
                ),
            )
            await self.client.append_profile(
                AppendProfileRequest(profile_id=job.profile_id, request_id="seed", content=content)
            )

    async def round(self, jobs: Sequence[Job], now: datetime) -> None:
        """Predict, schedule, apply, let the jobs run, and report."""
        await self.predict(jobs)
        await self.schedule(jobs, now)
        end = now + timedelta(seconds=ROUND_SECONDS)
        for job in jobs:
            if job.holds is None or job.runs is None:
                continue
            job.holds = replace(job.holds, age_seconds=job.holds.age_seconds + ROUND_SECONDS)
            job.samples_left = max(0.0, job.samples_left - ROUND_SECONDS * job.runs.samples_per_second)
            revision = await self.report(job, job.runs, end)
            await self.profiles.wait_for_revision(job.profile_id, revision)
            if job.samples_left == 0:
                job.holds = None
                print(f"  {job.name}: finished")

    async def predict(self, jobs: Sequence[Job]) -> None:
        """Ask about all jobs in one call, on every number of workers."""
        answer = await self.client.batch_predict(
            BatchPredictRequest(
                jobs=tuple(BatchJob(profile=self.source(job)) for job in jobs),
                ranges=(worker_range(1, self.devices, workers_per_node=DEVICES_PER_NODE),),
            )
        )
        for job, outcome in zip(jobs, answer, strict=True):
            best = outcome.recommended
            if best is not None:
                print(f"  {job.name}: best {best.workers} workers, {whole(best.samples_per_second or 0)} samples/s")
            else:
                print(f"  {job.name}: no prediction, {outcome.error.reason if outcome.error else 'NO_RECOMMENDATION'}")

    async def schedule(self, jobs: Sequence[Job], now: datetime) -> None:
        """Share the cluster, and apply what was decided."""
        nodes = self.devices // DEVICES_PER_NODE
        pool = node_pool("v100", "V100", nodes=nodes, devices_per_node=DEVICES_PER_NODE)
        reply = await self.client.schedule(
            ScheduleRequest(
                now=now,
                cluster=Cluster(pools=(pool,)),
                policy_state=self.policy_state,
                jobs=tuple(
                    ScheduleJob(
                        job_id=job.name,
                        profile=self.source(job),
                        remaining_samples=job.samples_left,
                        submit_time=BEGIN,
                        current_allocation=job.holds,
                    )
                    for job in jobs
                ),
            )
        )
        self.policy_state = reply.policy_state
        for job, allocation in zip(jobs, reply.allocations, strict=True):
            self.decisions += 1
            self.apply(job, allocation)

    def apply(self, job: Job, allocation: JobAllocation) -> None:
        """Let a job hold what it was given."""
        if allocation.action in {ScheduleAction.START, ScheduleAction.CHANGE}:
            job.holds = CurrentAllocation(pool=allocation.pool, placement=allocation.placement)
            job.runs = allocation
        elif allocation.action is ScheduleAction.KEEP:
            job.runs = allocation
        elif allocation.action is ScheduleAction.WAIT:
            job.holds = None
        name = allocation.action.name if allocation.action is not None else ""
        if job.holds is None or job.runs is None:
            print(f"  {job.name}: {name}")
        else:
            rate, left = whole(job.runs.samples_per_second), whole(job.samples_left)
            print(f"  {job.name}: {name} {job.runs.devices_count} devices, {rate} samples/s, {left} samples left")

    async def report(self, job: Job, runs: JobAllocation, end: datetime) -> int:
        """Tell what the job was measured to do, a little less than predicted; returns the profile's revision."""
        rate = 0.95 * runs.samples_per_second
        async with self.client.ingest(job.profile_id) as writer:
            await writer.observe(
                observations(
                    configurations=ran_on(runs.nodes_count, runs.devices_count),
                    steps_per_second=rate / BATCH_SAMPLES,
                    measured_at_unix_seconds=end.timestamp(),
                )
            )
            commit = await writer.commit()
        self.observations += 1
        print(f"  {job.name}: reported {whole(rate)} samples/s, revision {commit.revision}")
        return commit.revision

    def source(self, job: Job) -> ProfileSource:
        """Its profile, at least as new as the watch has told."""
        return profile_source(job.profile_id, minimum_revision=self.profiles.revisions.get(job.profile_id))


def ran_on(nodes: int, workers: int) -> Configurations:
    """Asynchronous training on V100."""
    return configurations(
        devices="V100", nodes=nodes, workers=workers, sync_modes="async", batch_per_worker_samples=BATCH_SAMPLES
    )


def whole(value: float) -> int:
    """The nearest whole number, halves upwards."""
    return floor(value + 0.5)


async def main(arguments: Sequence[str]) -> None:
    """Run as the command line asks."""
    target = arguments[0] if arguments else os.environ.get("NODEWISE_SERVER", "")
    devices = int(arguments[1]) if len(arguments) > 1 else 8
    rounds = int(arguments[2]) if len(arguments) > 2 else 4
    if devices < DEVICES_PER_NODE or devices % DEVICES_PER_NODE:
        raise SystemExit(f"DEVICES is {devices}; nodes have {DEVICES_PER_NODE} each: give a multiple of that")
    async with AsyncClient.from_environment(target) as client:
        await Scheduler(client, devices).run(rounds)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:]))
    except NodewiseError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
