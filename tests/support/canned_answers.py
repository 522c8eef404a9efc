"""Answers and tables of a made-up service, for tests of clients."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from nodewise_client import Network, Workload, configurations, measurement_table, phase_timings
from nodewise_protos.v1 import prediction_pb2


def two_rows() -> prediction_pb2.Predictions:
    return prediction_pb2.Predictions(
        rows_count=2,
        statuses=[prediction_pb2.ROW_STATUS_ANSWERED, prediction_pb2.ROW_STATUS_REFUSED],
        refusals=[
            {
                "rows": [1],
                "problem": {"reason": "EVIDENCE_MISSING", "message": "no link", "missing_fields": ["network"]},
            }
        ],
        step_seconds=[0.5, 0.0],
        steps_per_second=[8.0, 0.0],
        samples_per_second=[256.0, 0.0],
        lower_steps_per_second=[7.0, 0.0],
        upper_steps_per_second=[10.0, 0.0],
        interval_coverage=0.9,
        interval_basis=prediction_pb2.INTERVAL_BASIS_CONFORMAL,
        breakdown_seconds=[{"name": "compute", "values": [0.4, 0.0]}, {"name": "upload", "values": [0.1, 0.0]}],
        bottleneck_names=["compute"],
        bottleneck_indexes=[0, 0],
        utilization=[{"name": "link", "values": [0.7, 0.0]}],
        staleness_mean_steps=[3.0, 0.0],
        extrapolation_ratios=[2.0, 0.0],
        finish_seconds=[100.0, 0.0],
        costs=[1.5, 0.0],
        memory_bytes=[1e9, 0.0],
        excess_memory_bytes=[0.0, 0.0],
        warnings=[{"reason": "EXTRAPOLATES", "message": "twice the scale", "rows": [0]}],
        nodes=[4, 8],
        workers=[4, 8],
        finish_seconds_quantiles=[{"probability": 0.5, "values": [95.0, 0.0]}],
        revocations_means=[0.0, 0.0],
        global_batch_samples=[128.0, 0.0],
        goodput_samples_per_second=[200.0, 0.0],
    )


BASIS = prediction_pb2.Basis(
    estimator="queueing",
    estimator_version="1.0",
    choice="the only one",
    mixture=[{"estimator": "queueing", "weight": 1.0, "expected_log_error": 0.1}],
    profile_revision=3,
    profile_digest="d",
    fit_time=Timestamp(seconds=60),
    evidence=["phase timings of 1 run"],
)


TABLE = measurement_table(
    jobs=["a", "a", "b"],
    configurations=configurations(nodes=[1, 2, 1], devices="V100"),
    steps_per_second=[1.0, None, 2.0],
    train=[True, False, True],
    exposed_sync_seconds=[None, 0.1, None],
    measured_at_unix_seconds=1e9,
    phase_timings=phase_timings(compute_seconds=[0.1]),
    phase_rows=[0],
    workloads={"b": Workload(parameter_bytes=5)},
    networks={"a": Network(link_bytes_per_second=1.0)},
)
