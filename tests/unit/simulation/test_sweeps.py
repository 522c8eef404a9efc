"""Units of sweeps, as they run in the processes of an engine."""

from __future__ import annotations

import pytest
from serving import one_worker_phases

from nodewise.domain.errors import NodewiseError
from nodewise.runtime.sweeps import SweepUnit, simulated_unit, with_given_curves
from nodewise_protos.v1.profile_pb2 import ProfileSource
from nodewise_protos.v1.schedule_pb2 import Cluster, NodePool
from nodewise_protos.v1beta1 import simulation_pb2 as pb
from nodewise_protos.v1beta1.simulation_service_pb2 import SimulateRequest


def asked(profile: ProfileSource) -> SimulateRequest:
    return SimulateRequest(
        cluster=Cluster(pools=[NodePool(name="p", device_name="V100", available_devices=[4, 4])]),
        jobs=pb.SimulationJobs(count=3, arrival_seconds=[0, 1, 2], work_samples=[1e3], curve_indexes=[0]),
        curves=[pb.SimulationCurve(profile=pb.SimulationProfileCurve(profile=profile))],
    )


def test_curves_are_predicted_once_and_units_say_what_differs() -> None:
    request = with_given_curves(asked(ProfileSource(content=one_worker_phases())))
    rows = request.curves[0].rows
    assert list(rows.devices_counts) == list(range(1, 9))
    unit = SweepUnit(policy="fifo", parameters={"backfill": 1.0}, label="fifo", load=2.0, seed=7)
    found = pb.SimulationResult.FromString(simulated_unit((request.SerializeToString(),), unit))
    [run] = found.runs
    assert (run.seed, run.finished_count, found.policy) == (7, 3, "fifo")
    assert run.makespan_seconds == pytest.approx(1e3 / rows.samples_per_second[0] + 1.0)


def test_a_sweep_has_no_store() -> None:
    with pytest.raises(NodewiseError, match=r"curves\[0\]\.profile\.profile: must hold content"):
        with_given_curves(asked(ProfileSource(profile_id="job")))
