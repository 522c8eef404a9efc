"""Jobs of Schedule as messages."""

from __future__ import annotations

from nodewise.domain.profile import Profile
from nodewise.ports.limits import Limits
from nodewise.rpc.wire_schedules import read_job
from nodewise_protos.v1 import schedule_pb2


def test_statistical_efficiency_is_read_where_it_is_stated() -> None:
    message = schedule_pb2.ScheduleJob(
        job_id="a", restarts_count=3, gradient_noise_scale_samples=0.0, initial_batch_samples=128.0
    )
    job = read_job(message, Profile(), "jobs[0]", Limits())
    assert (job.restarts, job.gradient_noise_scale_samples, job.initial_batch_samples) == (3, 0.0, 128.0)


def test_what_is_not_stated_is_not_known() -> None:
    job = read_job(schedule_pb2.ScheduleJob(job_id="a"), Profile(), "jobs[0]", Limits())
    assert (job.restarts, job.gradient_noise_scale_samples, job.initial_batch_samples) == (0, None, None)
