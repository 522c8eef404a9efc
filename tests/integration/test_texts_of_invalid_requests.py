"""Invalid requests of every kind over a real socket: the text that names the field, and says what it must hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from serving import Failure, Stubs, inline, one_worker_phases

from nodewise.ports.limits import Limits
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import prediction_service_pb2, profile_service_pb2, schedule_service_pb2
from nodewise_protos.v1beta1 import (
    completion_service_pb2,
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_service_pb2,
)

pytestmark = pytest.mark.wheel

Json = dict[str, Any]

INLINE: Json = json.loads(json_format.MessageToJson(inline()))
FACTS: Json = {"content": {"phaseTimings": None, "workload": {"parameterBytes": 1}}}
EMPTY: Json = {"content": {"phaseTimings": None}}
TRANSFORMER: Json = {
    "content": {
        "phaseTimings": None,
        "workload": {
            "transformer": {
                "layersCount": 2,
                "hiddenSize": 64,
                "attentionHeadsCount": 2,
                "sequenceLengthTokens": 16,
                "vocabularySize": 128,
            }
        },
    }
}
STORED: Json = {"profileId": "stored"}
SPOT: Json = {
    "deviceName": "K80",
    "nodes": 2,
    "tier": "CAPACITY_TIER_SPOT",
    "lifetime": {"exponential": {"meanSeconds": 7200}},
}
RECORD: Json = {"sinceSeconds": [0, 10], "nodesCounts": [1, 0], "lengthSeconds": 20}
ON: Json = {
    "workSeconds": 3600,
    "deadlineSeconds": 7200,
    "spotPricePerHour": 1,
    "onDemandPricePerHour": 3,
    "law": {"availableMeanSeconds": 600, "unavailableMeanSeconds": 600},
}
CURVE: Json = {"rows": {"devicesCounts": [1, 2], "samplesPerSecond": [1, 2]}}
POOL: Json = {"deviceName": "A100", "nodes": {"values": [1, 2]}, "workersPerNode": 8}
A: Json = {"flopsPerSample": [1e9, 2e9]}
CHANGE: Json = {"kind": "REPLAY_CHANGE_KIND_SCALE", "value": 0.5}
CLUSTER: Json = {"pools": [{"name": "all", "availableDevices": [2]}]}


def law(**fields: Any) -> Json:
    return {"offers": [{"groups": [{**SPOT, "lifetime": fields}]}]}


def group(**fields: Any) -> Json:
    return {"offers": [{"groups": [{**SPOT, **fields}]}]}


def offer(**fields: Any) -> Json:
    return {"offers": [{"groups": [SPOT], **fields}]}


def on(**fields: Any) -> Json:
    return {"offers": [], "onDemand": {**ON, **fields}}


def jobs(**fields: Any) -> Json:
    return {"jobs": fields}


def pairs(**fields: Any) -> Json:
    usual = {"firstCurveIndexes": [0], "secondCurveIndexes": [0], "firstShares": [0.5], "secondShares": [0.5]}
    return {"sharedPairs": {**usual, **fields}}


def cons(**fields: Any) -> Json:
    return {"constraints": fields}


def table(**fields: Any) -> Json:
    return {"table": fields}


def change(**fields: Any) -> Json:
    return {"changes": [{**CHANGE, **fields}]}


VALID: dict[str, Json] = {
    "EstimateCompletion": {
        "profile": INLINE,
        "work": {"samples": 1000},
        "common": {"batchPerWorkerSamples": 32},
        "offers": [{"groups": [SPOT]}],
    },
    "Simulate": {
        "cluster": CLUSTER,
        "jobs": {"count": 2, "arrivalSeconds": [0, 1], "workSamples": [5], "curveIndexes": [0]},
        "curves": [CURVE],
        "policy": "fifo",
    },
    "PredictSharing": {
        "device": {"deviceName": "A100"},
        "jobs": [{"name": "a"}, {"name": "b"}],
        "mode": "SHARING_MODE_MPS",
    },
    "Plan": {"profile": INLINE, "constraints": {"pools": [POOL], "globalBatchSamples": {"values": [64]}}},
    "Backtest": {
        "table": {
            "jobNames": ["a"],
            "jobIndexes": [0, 0],
            "configurations": {"workers": [1, 2], "nodes": [1, 2], "syncModes": ["SYNC_MODE_ALLREDUCE"]},
            "stepsPerSecond": [1, 2],
            "train": [True, False],
        }
    },
    "Replay": {"profile": STORED},
    "ReportSteps": {
        "profileId": "stored",
        "worldSize": 2,
        "windows": {"firstSteps": [0], "stepsCounts": [1], "beginUnixSeconds": [1], "stepSeconds": [1]},
    },
    "Diagnose": {"profile": STORED, "sinceSeconds": 60},
    "AppendProfile": {"profileId": "stored", "requestId": "b", "content": INLINE["content"]},
    "RetractEvidence": {"profileId": "stored", "requestId": "c", "observationNumbers": [1]},
    "GetProfile": {"profileId": "stored"},
    "DeleteProfile": {"profileId": "none", "etag": "*"},
    "Schedule": {
        "now": "2026-01-01T00:00:00Z",
        "cluster": CLUSTER,
        "policy": "fifo",
        "jobs": [{"jobId": "a", "profile": INLINE, "remainingSamples": 1}],
    },
    "IngestProfile": {"open": {"profileId": "stored", "sessionId": "s"}},
    "BatchPredict": {"jobs": [{"profile": INLINE}], "configurations": {"workers": [1, 2]}},
    "Predict": {"profile": INLINE, "configurations": {"workers": [1, 2]}},
}
"""A request of each method that is well formed; what a test states replaces fields of it, and None removes them."""

INVALID: dict[str, list[tuple[Json, dict[str, str]]]] = {
    "EstimateCompletion": [
        (
            {"common": {"batchPerWorkerSamples": None}},
            {"EVIDENCE_MISSING": "the samples of a step are not known; state the batch"},
        ),
        (
            offer(groups=[{**SPOT, "nodes": 500, "name": str(number)} for number in range(8)]),
            {"LIMIT_EXCEEDED": "sets of nodes can be alive, at most"},
        ),
        (
            law(exponential={"meanSeconds": 1}, family=9),
            {"offers[0].groups[0].lifetime.family": "must be one of the values of the contract, found 9"},
        ),
        ({"offers": []}, {"offers": "must hold at least one offer unless on_demand or hybrid is given"}),
        ({"common": {"name": "all"}}, {"common": "must have no name and no groups: each offer has its own"}),
        (
            {"objective": {"knee": {}}},
            {"objective": "must be least_cost, least_time or fewest_devices: others ignore revocations"},
        ),
        (
            {"dataSets": [{"law": {"exponential": {"meanSeconds": 1}}}]},
            {"data_sets[0].name": "must be given, since offers refer to the lifetimes by name"},
        ),
        (
            {"dataSets": [{"name": "a", "law": {"exponential": {"meanSeconds": 1}}}] * 2},
            {"data_sets[1].name": "must be unique, found 'a' twice"},
        ),
        (
            {"dataSets": [{"name": "a", "law": {"dataSet": "b"}}]},
            {"data_sets[0].law": "must state a law, observations or a record, not another data set"},
        ),
        (
            {"dataSets": [{"name": "a", "law": {"exponential": {"meanSeconds": 1}}}] * 257},
            {"data_sets": "must hold at most 256 data sets, found 257"},
        ),
        (
            law(),
            {
                "offers[0].groups[0].lifetime": (
                    "must state a law: a data set, observations, Weibull, exponential, or a record"
                ),
            },
        ),
        (
            law(availability={"sinceSeconds": [1], "nodesCounts": [1], "lengthSeconds": 2}),
            {"offers[0].groups[0].lifetime.availability.since_seconds": "must start at 0 and ascend"},
        ),
        (
            law(availability={**RECORD, "lengthSeconds": 5}),
            {"offers[0].groups[0].lifetime.availability.length_seconds": "must not end before the last change, at 10"},
        ),
        (
            law(availability={**RECORD, "nodesCounts": [1]}),
            {
                "offers[0].groups[0].lifetime.availability.nodes_counts": (
                    "must have as many entries as since_seconds (2), found 1"
                ),
            },
        ),
        (law(empirical={}), {"offers[0].groups[0].lifetime.empirical.ages_seconds": "must hold at least one age"}),
        (
            law(empirical={"agesSeconds": [2, 1], "revokedShares": [0.5, 0.6]}),
            {"offers[0].groups[0].lifetime.empirical.ages_seconds": "must ascend"},
        ),
        (
            law(empirical={"agesSeconds": [1, 2], "revokedShares": [0.5, 0.4]}),
            {"offers[0].groups[0].lifetime.empirical.revoked_shares": "must not descend: revoked nodes stay revoked"},
        ),
        (law(observed={}), {"offers[0].groups[0].lifetime.observed.lives_seconds": "must hold at least one life"}),
        (
            law(observed={"livesSeconds": [1, 2], "revoked": [True]}),
            {
                "offers[0].groups[0].lifetime.observed.revoked": (
                    "must have as many entries as lives_seconds (2), found 1"
                ),
            },
        ),
        (law(fleet={}), {"offers[0].groups[0].lifetime.fleet.times_seconds": "must hold at least one event"}),
        (
            law(fleet={"timesSeconds": [2, 1], "added": [True, True], "nodes": ["a", "b"]}),
            {"offers[0].groups[0].lifetime.fleet.times_seconds": "must not descend"},
        ),
        (
            {"offers": [{"name": "a", "groups": [SPOT]}] * 2},
            {"offers[1].name": "must be unique; offers[0] is named 'a' too"},
        ),
        (
            offer(groups=[]),
            {
                "offers[0].groups": "must hold 1 to 8 groups, found 0",
                "offers[0].groups.nodes": "must have a sum of 1 to 4096, found 0",
            },
        ),
        (
            offer(syncMode="SYNC_MODE_HYBRID"),
            {"offers[0].sync_mode": "must be ASYNC, SYNC or ALLREDUCE: a hybrid has two reactions to a loss"},
        ),
        (
            group(lifetime=None),
            {
                "offers[0].groups[0].lifetime": (
                    "must be given for nodes on spot: a law, observations, a record, or a data set"
                ),
            },
        ),
        (
            offer(checkpoints={"intervalSeconds": 5}),
            {"offers[0].checkpoints": "must have seconds or saved, for the duration of a save"},
        ),
        (
            group(prices={"sinceSeconds": [1], "pricesPerNodeHour": [1]}),
            {"offers[0].groups[0].prices.since_seconds": "must start at 0 and ascend"},
        ),
        (
            group(prices={"sinceSeconds": [0], "pricesPerNodeHour": [1, 2]}),
            {
                "offers[0].groups[0].prices.prices_per_node_hour": (
                    "must have as many entries as since_seconds (1), found 2"
                ),
            },
        ),
        (group(replacement={}), {"offers[0].groups[0].replacement.delays_seconds": "must hold at least one delay"}),
        (
            offer(checkpoints={"saved": {"weightsBytes": 1, "measuredSeconds": [1], "measuredWeightsBytes": [1]}}),
            {"offers[0].checkpoints.saved.measured_seconds": "must hold at least two saves, found 1"},
        ),
        (
            offer(
                checkpoints={"saved": {"weightsBytes": 1, "measuredSeconds": [1, 2], "measuredWeightsBytes": [1, 1]}}
            ),
            {"offers[0].checkpoints.saved.measured_weights_bytes": "must differ: a fit needs saves of different sizes"},
        ),
        (
            offer(groups=[{**SPOT, "name": "a"}] * 2),
            {"offers[0].groups.name": "must be unique in the offer, found 'a' twice"},
        ),
        (
            law(revocations={"timesSeconds": [1, 2, 3]}),
            {
                "offers[0].groups[0].lifetime.revocations.times_seconds": (
                    "must hold at most one time for each of 2 nodes"
                ),
            },
        ),
        (
            group(lifetime={"revocations": {"timesSeconds": [1]}}, replacement={"delaysSeconds": [1]}),
            {
                "offers[0].groups[0].replacement": (
                    "must be absent with a record of availability or revocations, which includes replacements"
                ),
            },
        ),
        (
            group(replacement={"delaysSeconds": [1], "groupName": "b"}),
            {
                "offers[0].groups[0].replacement.group_name": (
                    "must name a group of the offer (none has a name), found 'b'"
                ),
            },
        ),
        (group(nodes=0), {"offers[0].groups.nodes": "must have a sum of 1 to 4096, found 0"}),
        (
            offer(groups=[{**SPOT, "nodes": 0}, SPOT], chiefLoss="CHIEF_LOSS_FAIL"),
            {
                "offers[0].groups[0].nodes": (
                    "must be at least 1 with chief_loss: the chief is the first node of the first group"
                ),
            },
        ),
        (
            {"offers": [], "onDemand": {k: v for k, v in ON.items() if k != "law"}},
            {"on_demand": "must state availability, which is a record, or a law"},
        ),
        (on(learnedFrom=[RECORD] * 65), {"on_demand.learned_from": "must hold at most 64 records"}),
        (
            on(deadlineSeconds=60),
            {"on_demand.deadline_seconds": "must be at least work_seconds + switch_seconds (3600), found 60"},
        ),
        (
            on(spotPricePerHour=4),
            {"on_demand.spot_price_per_hour": "must be at most on_demand_price_per_hour (3), found 4"},
        ),
        (
            {"offers": [], "hybrid": {"slowdownRatios": [1]}},
            {"hybrid.slowdown_ratios": "must hold one ratio for each worker, at least two"},
        ),
        ({"offers": [], "hybrid": {"nodes": {"deviceName": "K80"}}}, {"hybrid.nodes.nodes": "must be at least 1"}),
        (
            {"offers": [{"groups": [SPOT]}] * 1001},
            {"LIMIT_EXCEEDED": "1001 offers exceed the 1000 of a call; send several calls"},
        ),
        (
            {"offers": [{"groups": [SPOT]}] * 11, "runsCount": 1000000},
            {
                "LIMIT_EXCEEDED": (
                    "11 offers of 1000000 runs exceed the 10000000 runs of a call; state a smaller runs_count"
                ),
            },
        ),
    ],
    "Simulate": [
        (
            {"curves": [{"profile": {"profile": {"content": {"workload": {"parameterBytes": 1}}}}}]},
            {"EVIDENCE_MISSING": "curves[0]"},
        ),
        ({"curves": []}, {"curves": "must hold at least one curve"}),
        ({"curves": [{}]}, {"curves[0]": "must hold rows, or a profile to predict them from"}),
        (
            {"curves": [{"rows": {"samplesPerSecond": [1]}}]},
            {"curves[0].rows.devices_counts": "must be given with pool_indexes or samples_per_second"},
        ),
        (
            {"curves": [{"rows": {"devicesCounts": [1, 1], "samplesPerSecond": [1, 2]}}]},
            {"curves[0].rows.devices_counts[1]": "must hold each number once per pool, found 1 twice for pool 0"},
        ),
        (jobs(count=0), {"jobs.count": "must be 1 or more, found 0"}),
        (
            jobs(arrivalSeconds=[5, 1]),
            {
                "jobs.arrival_seconds[1]": (
                    "must be at least 5, when the previous job arrives, found 1; sort jobs by arrival"
                ),
            },
        ),
        (jobs(rigid=[True] * 3), {"jobs.rigid": "must be empty, have one entry or one for each of 2 jobs"}),
        (
            jobs(minDevices=[2, 2], maxDevices=[1, 1]),
            {"jobs.min_devices[0]": "must be at most max_devices (1), found 2"},
        ),
        (jobs(jobIds=["a"]), {"jobs.job_ids": "must be empty or name each of 2 jobs, found 1"}),
        (jobs(jobIds=["a", ""]), {"jobs.job_ids[1]": "must have 1 to 256 characters, found 0"}),
        (jobs(jobIds=["a", "a"]), {"jobs.job_ids[1]": "must be unique; job 0 is 'a' too"}),
        (jobs(workSamples=[1, 2, 3]), {"jobs.work_samples": "must have one entry, or one for each of 2 rows; found 3"}),
        (
            {"settings": {"earlyStops": {"probability": 0.5, "progressShares": [0.5, 0.1]}}},
            {"settings.early_stops.progress_shares": "must be two or more ascending quantiles from 0 to 1, or empty"},
        ),
        (
            {"settings": {"seed": 2147483647}, "repetitionsCount": 2},
            {"settings.seed": "must be at most 2147483647 for the last repetition, found 2147483648"},
        ),
        (
            {"settings": {"clock": 9}},
            {
                "settings.clock": (
                    "must be one of SIMULATION_CLOCK_DRAINED_ROUNDS, SIMULATION_CLOCK_EVENTS, "
                    "SIMULATION_CLOCK_FIXED_ROUNDS, found 9"
                ),
            },
        ),
        (
            {"jobs": {"count": 2}, "repetitionsCount": 40, "includeJobs": True},
            {"repetitions_count": "must be at most 64 times jobs with columns in the reply, found 40 times 2"},
        ),
        (
            pairs(firstCurveIndexes=None),
            {"shared_pairs.first_curve_indexes": "must have one entry for each pair, and at least one"},
        ),
        (
            pairs(secondCurveIndexes=[0, 0]),
            {"shared_pairs.second_curve_indexes": "must have one entry for each of 1 rows, found 2"},
        ),
        (
            pairs(predictedFirstShares=[0.5]),
            {"shared_pairs.predicted_second_shares": "must be given if and only if predicted_first_shares is given"},
        ),
        (
            pairs(firstShares=[0.5, 0.5]),
            {"shared_pairs.first_shares": "must have one entry for each of 1 rows, found 2"},
        ),
        (
            {
                "curves": [CURVE] * 2,
                **pairs(
                    firstCurveIndexes=[0, 0], secondCurveIndexes=[1, 1], firstShares=[0.5, 0.6], secondShares=[0.5, 0.5]
                ),
            },
            {"shared_pairs.first_curve_indexes[1]": "must agree with an earlier row about curves 0 and 1"},
        ),
        ({"curves": [CURVE] * 65}, {"curves": "must hold at most 64 entries"}),
        (jobs(count=65), {"LIMIT_EXCEEDED": "65 jobs exceed simulated_jobs_per_call = 64"}),
        (
            {"curves": [{"rows": {"devicesCounts": [1] * 65, "samplesPerSecond": [1] * 65}}]},
            {"LIMIT_EXCEEDED": "65 rows of curves exceed simulation_rows_per_call = 64"},
        ),
    ],
    "PredictSharing": [
        ({"jobs": []}, {"jobs": "must hold at least one job"}),
        ({"jobs": [{}, {"name": "b"}]}, {"jobs[0].name": "must be given, since sets and runs refer to jobs by name"}),
        ({"jobs": [{"name": "a"}] * 2}, {"jobs[1].name": "must be unique; jobs[0] has this name too"}),
        ({"jobs": [{"name": "a"}]}, {"sets": "must be given for a single job, which has no pairs"}),
        (
            {"jobs": [{"name": "a", "sliceRatio": 0.5}, {"name": "b"}]},
            {"jobs[0].slice_ratio": "must be absent unless mode is SHARING_MODE_MIG"},
        ),
        (
            {"jobs": [{"name": "a", "stepsElsewhere": [{"stepSeconds": 1, "speedRatio": 1}]}, {"name": "b"}]},
            {"jobs[0].steps_elsewhere[0].device_name": "must be given and unique, found ''"},
        ),
        (
            {"jobs": [{"name": "a", "stepsElsewhere": [{"deviceName": "Q", "stepSeconds": 1}]}, {"name": "b"}]},
            {
                "jobs[0].steps_elsewhere[0].speed_ratio": (
                    "must be given: the catalog does not know the peak of both 'Q' and 'A100'"
                ),
            },
        ),
        (
            {"runs": [{"firstJob": "a", "secondJob": "c", "firstShare": 0.5, "secondShare": 0.5}]},
            {"runs[0].second_job": "must name one of the jobs, found 'c'"},
        ),
        ({"sets": [{"jobNames": []}]}, {"sets[0].job_names": "must name 1 to 16 jobs, found 0"}),
        ({"sets": [{"jobNames": ["a", "c"]}]}, {"sets[0].job_names[1]": "must name one of the jobs, found 'c'"}),
        (
            {"jobs": [{"name": str(n)} for n in range(64)]},
            {"LIMIT_EXCEEDED": "2016 sets (every pair if none is stated) exceed sharing_sets_per_call = 100"},
        ),
    ],
    "Plan": [
        (
            {"objective": {"leastCost": {}}, "profile": TRANSFORMER},
            {"offers": "must be given: the rule of the objective compares costs"},
        ),
        (
            {"options": {"allowFallback": True}},
            {"options.allow_fallback": "must be false: a plan has the space of one estimator"},
        ),
        (
            cons(globalBatchSamples=None),
            {
                "constraints.global_batch_samples": (
                    "must hold at least one value unless micro_batch_samples, the batch of each replica, does"
                ),
            },
        ),
        (cons(pools=[]), {"constraints.pools": "must hold at least one pool"}),
        (
            cons(pools=[{**POOL, "workersPerNode": n + 1} for n in range(65)]),
            {"constraints.pools": "must hold at most 64 pools"},
        ),
        (cons(pools=[{**POOL, "deviceName": ""}]), {"constraints.pools[0].device_name": "must name an accelerator"}),
        (cons(pools=[{**POOL, "nodes": {}}]), {"constraints.pools[0].nodes": "must hold at least one number of nodes"}),
        (
            cons(pools=[{**POOL, "workersPerNode": 1024, "nodes": {"values": [4096]}}]),
            {"constraints.pools[0].nodes": "must give at most 131072 workers, found 4194304"},
        ),
        (cons(pools=[POOL, POOL]), {"constraints.pools[1]": "must be unique, found A100 with 8 devices a node twice"}),
        (
            cons(globalBatchSamples={"ranges": [{"first": 1, "last": 5000}]}),
            {"constraints.global_batch_samples": "must hold at most 4096 values, found 4097"},
        ),
        (
            cons(
                pools=[
                    {**POOL, "workersPerNode": 1, "nodes": {"ranges": [{"first": 1, "last": 3000}]}},
                    {**POOL, "workersPerNode": 2, "nodes": {"ranges": [{"first": 1, "last": 3000}]}},
                ]
            ),
            {"constraints.pools": "must hold at most 4096 numbers of nodes together, found 6000"},
        ),
        (
            cons(syncModes=["SYNC_MODE_HYBRID"]),
            {"constraints.sync_modes[0]": "must be one of SYNC_MODE_ASYNC, SYNC_MODE_SYNC, SYNC_MODE_ALLREDUCE"},
        ),
        (
            cons(tensorParallelDegrees={"ranges": [{"first": 3, "last": 3, "powersOfTwo": True}]}),
            {"constraints.tensor_parallel_degrees.ranges[0]": "must contain a power of two, found 3 to 3"},
        ),
        (
            cons(tensorParallelDegrees={"ranges": [{"first": 1, "last": 4, "powersOfTwo": True, "step": 1}]}),
            {"constraints.tensor_parallel_degrees.ranges[0].step": "must be absent with powers_of_two"},
        ),
    ],
    "Backtest": [
        (table(jobIndexes=[]), {"table.job_indexes": "must have one entry per row, and at least one"}),
        (table(train=[True]), {"table.train": "must have one entry for each of 2 rows, found 1"}),
        (table(jobNames=[]), {"table.job_names": "must have at least one entry"}),
        (table(jobNames=["a", "a"]), {"table.job_names[1]": "must be unique; entry 0 is 'a' too"}),
        (table(jobNames=["\n"]), {"table.job_names[0]": "must be 1 to 256 printable characters, found '\\n'"}),
        (
            table(configurations={"workers": [1, 2, 3]}),
            {
                "table.configurations.nodes": "must be given: evidence says what really ran",
                "table.configurations": "must have one row for each of 2 rows of the table, found 3",
            },
        ),
        (table(phaseTimings={"computeSeconds": [1]}), {"table.phase_rows": "must list the rows of the phase timings"}),
        (
            table(phaseRows=[0], phaseTimings={"computeSeconds": [1], "configurations": {"workers": [1]}}),
            {
                "table.phase_timings.configurations": "must be empty: phase_rows lists the configurations",
                "table.phase_timings.download_seconds": "must be given",
                "table.phase_timings.upload_seconds": "must be given",
                "table.phase_timings.update_seconds": "must be given",
            },
        ),
        (
            table(phaseRows=[0, 0], phaseTimings={"computeSeconds": [1, 1]}),
            {
                "table.phase_rows[1]": "must be unique, found row 0 twice",
                "table.phase_timings.download_seconds": "must be given",
                "table.phase_timings.upload_seconds": "must be given",
                "table.phase_timings.update_seconds": "must be given",
            },
        ),
        (table(workloads=[{}, {}]), {"table.workloads": "must have one entry for each of 1 job_names, found 2"}),
        ({"jobSources": ["a", "b"]}, {"job_sources": "must have one entry for each of 1 jobs, found 2"}),
        ({"evidenceRowsCount": -1}, {"evidence_rows_count": "must be at least 0, found -1"}),
        ({"estimators": ["x" * 64]}, {"estimators[0]": "must be at most 63 characters, found 64"}),
        (
            table(jobIndexes=[0] * 65),
            {"LIMIT_EXCEEDED": "table: 65 rows exceed backtest_rows = 64; split the table by jobs"},
        ),
    ],
    "Replay": [
        (change(kind=0), {"changes[0].kind": "must be given"}),
        (
            change(kind="REPLAY_CHANGE_KIND_WORLD_SIZE", value=1.5),
            {"changes[0].value": "must be a whole number of ranks, found 1.5"},
        ),
        (
            change(eventKinds=["x"]),
            {"changes[0].event_kinds[0]": "must be one of operator, call, kernel, copy, fill, gap, collective"},
        ),
        (change(namePattern="a" * 300), {"changes[0].name_pattern": "must be at most 256 characters, found 300"}),
        (change(namePattern="(a)\\1"), {"changes[0].name_pattern": "must have no backreferences"}),
        (
            change(namePattern="(a*)*"),
            {"changes[0].name_pattern": "must have no repeated groups, and no groups other than (...) and (?:...)"},
        ),
        (
            change(namePattern="["),
            {"changes[0].name_pattern": "must be a regular expression (unterminated character set at position 0)"},
        ),
        (
            change(namePattern="a*a*a*a*a*a*a*a*a*"),
            {"changes[0].name_pattern": "must have at most 2 of * + and {n,m}, found 9"},
        ),
        ({"changes": [CHANGE] * 200}, {"changes": "must hold at most 64, found 200"}),
        ({"fitSteps": [0]}, {"fit_steps[0]": "must be a whole number from 1 to 1000000, found 0"}),
    ],
    "ReportSteps": [
        ({"windows": None}, {"windows.first_steps": "must hold at least one window"}),
        (
            {"windows": {"firstSteps": [3], "stepsCounts": [2]}},
            {"windows.first_steps[0]": "must be a multiple of steps_counts[0] = 2"},
        ),
        (
            {"windows": {"firstSteps": [0] * 5000}},
            {"LIMIT_EXCEEDED": "windows: must hold at most 1000, found 5000; send several reports"},
        ),
    ],
    "Diagnose": [
        ({"profile": {"profileId": None}}, {"profile.profile_id": "must name a stored profile with since_seconds"}),
        ({"steps": [1]}, {"steps": "must be empty with since_seconds, which reads no traces"}),
        ({"sinceSeconds": -1}, {"since_seconds": "must be a finite number above 0 and at most 1e+07, found -1.0"}),
    ],
    "AppendProfile": [
        (
            {"content": {"traces": [{"format": "a"}]}},
            {"content.traces": "must be empty: traces come by IngestProfile or IngestBatch"},
        ),
        ({"content": None}, {"content": "must hold facts, phase timings, observations or shared runs"}),
        ({"labels": {"a b": "c"}}, {"labels": "must have keys of 1 to 63 letters, digits and - . _ /; found 'a b'"}),
        ({"labels": {"a": "c" * 300}}, {"labels": "must have values of at most 128 characters, found 300 at 'a'"}),
        (
            {"requestId": "a b"},
            {
                "request_id": (
                    "must be 1 to 128 characters: letters, digits and - . _ ~ /, the first and the last a "
                    "letter or digit, no //, /./ or /../; found 'a b'"
                ),
            },
        ),
    ],
    "RetractEvidence": [
        (
            {"observationNumbers": None},
            {"observation_numbers": "must name an observation unless another field names evidence"},
        ),
        (
            {"factPaths": ["a.b"]},
            {"fact_paths[0]": "must be the path of a fact, such as workload.parameter_bytes; found 'a.b'"},
        ),
        ({"traceSha256s": ["x"]}, {"trace_sha256s[0]": "must be 64 hexadecimal digits in lower case"}),
    ],
    "GetProfile": [
        ({"view": 9}, {"view": "must be a value of ProfileView, found 9"}),
        ({"pageSize": -1}, {"page_size": "must be from 1 to 20000, found -1"}),
        ({"pageToken": "x"}, {"page_token": "must be empty or the next_page_token of an earlier reply"}),
    ],
    "DeleteProfile": [
        ({"etag": None}, {"etag": 'must be the etag of the profile, or "*" for any'}),
    ],
    "Schedule": [
        ({"now": None}, {"now": "must be given: submit times and deadlines are relative to it"}),
        (
            {"policy": "best"},
            {"POLICY_NOT_FOUND": "policy 'best' is not loaded; loaded are: deadline-aware, efficiency-capped, "},
        ),
        (
            {"jobs": [{"jobId": "a", "remainingSamples": 1, "settings": {"deviceName": "A100", "offerName": "a"}}]},
            {
                "jobs[0].settings.device_name": "must be empty: the policy chooses the device",
                "jobs[0].settings.offer_name": "must be empty: pools of the cluster state their prices",
            },
        ),
        ({"jobs": [{"jobId": "a"}] * 5}, {"jobs": "must hold at most 4 entries"}),
    ],
    "IngestProfile": [
        ({"open": None}, {"SESSION_NOT_OPEN": "the first message of a stream must open a session"}),
        (
            {"open": {"profileId": "a b"}},
            {
                "open.profile_id": (
                    "must be 1 to 128 characters: letters, digits and - . _ ~ /, the first and the last a "
                    "letter or digit, no //, /./ or /../; found 'a b'"
                ),
            },
        ),
    ],
    "BatchPredict": [
        ({"jobs": []}, {"jobs": "must hold at least one job unless architectures is given"}),
        (
            {"profile": {"profileId": "a"}},
            {"profile": "must be absent without architectures: each job has its own profile"},
        ),
        (
            {"jobs": [], "architectures": {}},
            {"architectures": "must hold at least one entry in a column of numbers, or in family_indexes"},
        ),
        ({"architectures": A}, {"jobs": "must be absent with architectures"}),
        (
            {"jobs": [], "objective": {"knee": {}}, "architectures": A},
            {"objective": "must be absent with architectures"},
        ),
        (
            {"jobs": [], "architectures": {"flopsPerSample": [1, 2], "tensorsCounts": [1, 2, 3]}},
            {"architectures.flops_per_sample": "must be empty, have one entry, or one for each of 3 rows; found 2"},
        ),
        (
            {"jobs": [], "architectures": {"flopsPerSample": [-1, 1.0]}, "profile": INLINE},
            {
                "INVALID_FIELD": (
                    "architectures.flops_per_sample: must be a finite number above 0, or 0 where it is not known"
                ),
            },
        ),
        (
            {"jobs": [], "architectures": {"flopsPerSample": [1.0] * 33}, "profile": INLINE},
            {
                "LIMIT_EXCEEDED": (
                    "66 rows of all architectures together exceed rows_per_call = 64; send the parts over StreamPredict"
                ),
            },
        ),
        (
            {"jobs": [], "architectures": {"flopsPerSample": [1.0] * 65}, "profile": INLINE},
            {"LIMIT_EXCEEDED": "65 architectures exceed rows_per_call = 64; send the parts over StreamPredict"},
        ),
        ({"jobs": [{"profile": INLINE}] * 5}, {"jobs": "must hold at most 4 entries"}),
        (
            {"jobs": [{"profile": INLINE}] * 4, "configurations": {"workers": list(range(1, 33))}},
            {
                "LIMIT_EXCEEDED": (
                    "96 rows of all jobs together exceed rows_per_call = 64; send the parts over StreamPredict"
                ),
            },
        ),
    ],
    "Predict": [
        (
            {
                "profile": {
                    "content": {
                        "observations": {
                            "configurations": {"nodes": [1] * 9, "workers": [1] * 9, "syncModes": ["SYNC_MODE_SYNC"]},
                            "stepsPerSecond": [1.0] * 9,
                        }
                    }
                }
            },
            {"LIMIT_EXCEEDED": "9 rows, one message takes rows_per_batch = 8; send them as several batches over "},
        ),
        (
            {
                "profile": {
                    "content": {
                        "workload": {
                            "encoder": {
                                "layersCount": 1,
                                "hiddenSize": 8,
                                "attentionHeadsCount": 1,
                                "tokensPerSample": 4,
                                "attendedTokensCount": 5,
                            }
                        }
                    }
                }
            },
            {"profile.content.workload.encoder.attended_tokens_count": "must be at most tokens_per_sample (4)"},
        ),
        (
            {"configurations": {"groupOffsets": [0, 1, 1], "groupWorkers": [1], "groupDeviceIndexes": [0]}},
            {"configurations.group_device_indexes": "must be empty without device_names"},
        ),
        (
            {
                "configurations": {
                    "groupOffsets": [0, 1, 1],
                    "groupWorkers": [1],
                    "groupDeviceIndexes": [0, 0],
                    "deviceNames": ["A100"],
                }
            },
            {
                "configurations.group_device_indexes": "must be empty, or have one entry for each of 1 group_workers; "
                "found 2"
            },
        ),
        (
            {"configurations": {"precisions": ["fp16", "fp16", "fp16"], "workers": [1, 2]}},
            {"configurations.workers": "must have one entry, or one for each of 3 rows; found 2"},
        ),
        (
            {"configurations": {"precisions": ["fp16", "fp16"], "workers": [1, 2, 4]}},
            {"configurations.precisions": "must have one entry, or one for each of 3 rows; found 2"},
        ),
        (
            {"configurations": {"placementOffsets": [0, 1, 2], "placementWorkers": [1, 0], "workers": None}},
            {"configurations.placement_workers": "must be at least 1 on every node"},
        ),
        (
            {"configurations": {"globalBatchSamples": [9], "batchPerWorkerSamples": [2], "accumulationSteps": [2]}},
            {"configurations.global_batch_samples[0]": "is 9, but 1 replicas x 2 samples x 2 accumulation steps are 4"},
        ),
        (
            {"profile": {"content": {"phaseTimings": {"configurations": {"offerNames": ["a"]}}}}},
            {"profile.content.phase_timings.configurations.offer_names": "must be empty: evidence says what ran"},
        ),
        (
            {"profile": {"content": {"workload": {"shardBytes": [1.0] * 65537}}}},
            {"profile.content.workload.shard_bytes": "must have at most 65536 entries, one per server"},
        ),
        (
            {"profile": {"content": {"workload": {"parameterBytes": 9.0, "shardBytes": [1.0, 2.0]}}}},
            {"profile.content.workload.shard_bytes": "must add up to parameter_bytes (9), but add up to 3"},
        ),
        (
            {"profile": {"content": {"workload": {"shardBytes": [1.0, 2.0], "shardTensorsCounts": [1]}}}},
            {"profile.content.workload.shard_tensors_counts": "must have one entry per server as shard_bytes"},
        ),
        (
            {
                "profile": {
                    "content": {
                        "phaseTimings": {
                            "downloadSeconds": [0],
                            "computeSeconds": [0],
                            "uploadSeconds": [0],
                            "updateSeconds": [0],
                        }
                    }
                }
            },
            {"profile.content.phase_timings.compute_seconds[0]": "all four phases are 0: nothing was timed"},
        ),
        (
            {"profile": FACTS, "configurations": None},
            {"ranges": "must state nodes or workers, because no measured run of this job suggests a range"},
        ),
        (
            {"profile": FACTS, "configurations": None, "ranges": [{}]},
            {"ranges[0]": "must state nodes or workers, because no measured run of this job suggests a range"},
        ),
        (
            {"configurations": None, "ranges": [{"workers": {"first": 3, "last": 3, "powersOfTwo": True}}]},
            {"ranges[0].workers": "must contain a power of two, found 3 to 3"},
        ),
        (
            {"configurations": None, "ranges": [{"workers": {"first": 3, "last": 1}}]},
            {"ranges[0].workers.last": "must be at least first (3), found 1"},
        ),
        (
            {"configurations": None, "ranges": [{"workers": {"first": 1, "last": 4, "step": 1, "powersOfTwo": True}}]},
            {"ranges[0].workers.step": "must be absent with powers_of_two"},
        ),
        (
            {"configurations": None, "ranges": [{"workers": {"first": 1, "last": 100}}]},
            {
                "LIMIT_EXCEEDED": (
                    "ranges[0].workers: 100 or more rows exceed rows_per_call = 64; split the question, or "
                    "send the parts over StreamPredict"
                ),
            },
        ),
        (
            {"configurations": {"batchPerWorkerSamples": [1], "workers": []}},
            {"configurations.workers[0]": "must be given unless nodes, a placement or groups are"},
        ),
        (
            {"options": {"fidelity": "FIDELITY_UNSPECIFIED", "simulatedStepsCount": 5}},
            {"options.simulated_steps_count": "must be absent unless fidelity is FIDELITY_SIMULATE"},
        ),
        (
            {
                "options": {"fidelity": "FIDELITY_SIMULATE", "simulatedStepsCount": 1000000},
                "configurations": {"workers": list(range(1, 65))},
            },
            {
                "LIMIT_EXCEEDED": (
                    "options.simulated_steps_count: 64 rows of 1000000 simulated steps are 64000000, which "
                    "exceeds simulated_steps_per_call = 10000000; ask for fewer steps or rows, or send the "
                    "parts over StreamPredict"
                ),
            },
        ),
        ({"options": {"columns": [99]}}, {"options.columns": "must name columns of PredictionColumn, found 99"}),
        (
            {"options": {"model": {"estimator": "auto", "parameters": {"a": 1}}}},
            {"options.model.parameters['a']": "must be left out: estimator 'auto' has no parameters"},
        ),
        (
            {"options": {"model": {"estimator": "queueing", "parameters": {"nope": 1}}}},
            {"options.model.parameters['nope']": "must be left out: estimator 'queueing' has no parameters"},
        ),
        (
            {"options": {"model": {"estimator": "queueing", "estimatorVersion": "0.0"}}},
            {"ESTIMATOR_NOT_FOUND": "the loaded version of estimator 'queueing' is '2.1', not '0.0'"},
        ),
        (
            {"options": {"model": {"estimatorVersion": "0.0"}}},
            {"ESTIMATOR_NOT_FOUND": "the loaded version of estimator 'auto' is 'batch-line "},
        ),
        (
            {"options": {"model": {"freshness": 9}}},
            {"options.model.freshness": "must be a whole number from 0 to 3, found 9"},
        ),
        (
            {"offers": [{"name": "a", "deviceName": "A100", "pricePerNodeHour": 1}] * 2},
            {"offers[1].name": "must be unique; offers[0] has this name too"},
        ),
        (
            {
                "offers": [
                    {"name": "a", "currency": "EUR", "pricePerNodeHour": 1},
                    {"name": "b", "currency": "USD", "pricePerNodeHour": 1},
                ]
            },
            {"offers.currency": "must be the same in all offers, found EUR, USD"},
        ),
        (
            {
                "offers": [{"name": "a", "pricePerNodeHour": 1}],
                "configurations": {"offerNames": ["b"], "offerIndexes": [0]},
            },
            {"configurations.offer_names[0]": "must name one of the offers (a), found 'b'"},
        ),
        (
            {"configurations": {"offerNames": ["b"], "offerIndexes": [0]}},
            {"configurations.offer_names[0]": "must name one of the offers (none has a name), found 'b'"},
        ),
        ({"current": {"row": 7}}, {"current.row": "must be a row of the question, 0 to 1"}),
        (
            {
                "batchBounds": {"minGlobalBatchSamples": 8, "maxGlobalBatchSamples": 4},
                "efficiency": {"gradientNoiseScaleSamples": 1, "initialBatchSamples": 1},
            },
            {"batch_bounds.max_global_batch_samples": "must be at least min_global_batch_samples (8), found 4"},
        ),
        (
            {"batchBounds": {"minGlobalBatchSamples": 4, "maxGlobalBatchSamples": 8}},
            {"efficiency": "must be given with batch_bounds: it determines the value of other batches"},
        ),
        ({"objective": {"leastCost": {}}}, {"offers": "must be given: the rule compares costs"}),
        (
            {"objective": {"knee": {}, "confidence": 2}},
            {"objective.confidence": "must be a finite number above 0.5 and at most 0.9999, found 2.0"},
        ),
        ({"profile": {"content": None}}, {"profile": "must have profile_id, the name of a stored profile, or content"}),
        (
            {"profile": EMPTY},
            {"EVIDENCE_MISSING": "the profile is empty: it needs phase timings, observations or facts of the workload"},
        ),
        (
            {"profile": {"minimumRevision": 1}},
            {"profile.minimum_revision": "must be absent unless profile_id names a stored profile"},
        ),
        ({"profile": {"revision": 1}}, {"profile.revision": "must be absent unless profile_id names a stored profile"}),
        (
            {"profile": {"content": None, "profileId": "stored", "minimumRevision": 1, "revision": 1}},
            {"profile.minimum_revision": "must be absent if revision is given"},
        ),
        (
            {"profile": {"content": None, "profileId": "stored", "minimumRevision": 99}},
            {"REVISION_NOT_REACHED": "profile 'stored' is at revision 1, below minimum_revision 99"},
        ),
    ],
}
"""What makes a request of a method invalid, and the text, or its beginning, by field or by the reason of the call."""

MODULES = (
    prediction_service_pb2,
    profile_service_pb2,
    schedule_service_pb2,
    completion_service_pb2,
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_service_pb2,
)


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    limits = Limits(
        rows_per_call=64,
        jobs_per_call=4,
        rows_per_batch=8,
        backtest_rows=64,
        simulated_jobs_per_call=64,
        simulation_rows_per_call=64,
        sharing_sets_per_call=100,
    )
    with EmbeddedServer(Settings(store="memory:", limits=limits)) as server, Stubs(server.target) as found:
        content = one_worker_phases()
        found.profile.AppendProfile(
            profile_service_pb2.AppendProfileRequest(profile_id="stored", request_id="a", content=content)
        )
        yield found


def with_changes(valid: Any, changes: Any) -> Any:
    """A request with fields replaced by those of the changes."""
    if not isinstance(valid, dict) or not isinstance(changes, dict):
        return changes
    merged = valid | {name: with_changes(valid.get(name), value) for name, value in changes.items()}
    return {name: value for name, value in merged.items() if value is not None}


def texts_in(message: Message, texts: dict[str, str]) -> dict[str, str]:
    """Texts of the problems in a reply, by field or by reason."""
    if message.DESCRIPTOR.name == "FieldViolation":
        texts[message.field] = message.description  # type: ignore[attr-defined]
    if message.DESCRIPTOR.name == "Problem" and not message.violations:  # type: ignore[attr-defined]
        texts[message.reason] = message.message  # type: ignore[attr-defined]
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for each in value if field.is_repeated else [value]:
                texts_in(each, texts)
    return texts


def texts_of(stubs: Stubs, method: str, fields: Json) -> dict[str, str]:
    """What a call says is wrong: its failure, or problems within the reply."""
    call = next(getattr(service, method) for service in vars(stubs).values() if hasattr(service, method))
    kind = next(getattr(module, f"{method}Request") for module in MODULES if hasattr(module, f"{method}Request"))
    request = json_format.ParseDict(fields, kind())
    try:
        reply = call(iter([request]) if method == "IngestProfile" else request)
        replies = list(reply) if isinstance(reply, Iterator) else [reply]
    except grpc.RpcError as error:
        failure = Failure(error)
        return failure.fields or {failure.reason: failure.message}
    texts: dict[str, str] = {}
    for each in replies:
        texts_in(each, texts)
    return texts


@pytest.mark.parametrize(
    ("method", "changes", "texts"),
    [(method, changes, texts) for method, cases in INVALID.items() for changes, texts in cases],
)
def test_the_text_says_what_the_field_must_hold(
    stubs: Stubs, method: str, changes: Json, texts: dict[str, str]
) -> None:
    said = texts_of(stubs, method, with_changes(VALID[method], changes))
    assert {field: text for field, text in texts.items() if text not in said.get(field, "")} == {}, said
