"""Manners of the service: health, reflection, streams, drain, one port per server, several workers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from patience import PATIENCE_S
from serving import ServerProcess, Stubs, failure_of, inline, observed, one_worker_phases, stored, workers

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_protos.v1 import configuration_pb2 as configurations
from nodewise_protos.v1 import objective_pb2 as objectives
from nodewise_protos.v1 import options_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1 import schedule_service_pb2 as schedules

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    with EmbeddedServer() as server, Stubs(server.target) as found:
        yield found


def test_health_has_an_entry_per_service_and_estimator(stubs: Stubs) -> None:
    health = health_pb2_grpc.HealthStub(stubs.channel)
    for name in ("", "nodewise.v1.PredictionService", "nodewise.v1.ScheduleService", "estimator/queueing"):
        reply = health.Check(health_pb2.HealthCheckRequest(service=name))
        assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_reflection_lists_the_services(stubs: Stubs) -> None:
    reflection = reflection_pb2_grpc.ServerReflectionStub(stubs.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    (reply,) = reflection.ServerReflectionInfo(iter([request]))
    names = {service.name for service in reply.list_services_response.service}
    assert {"nodewise.v1.PredictionService", "nodewise.v1.ProfileService", "grpc.health.v1.Health"} <= names


def test_an_answer_carries_its_basis_and_repeats_itself(stubs: Stubs) -> None:
    request = predictions.PredictRequest(
        profile=inline(),
        ranges=[configurations.ConfigurationRange(workers=configurations.CountRange(first=1, last=12))],
        objective=objectives.Objective(knee=objectives.Knee()),
    )
    first, second = stubs.prediction.Predict(request), stubs.prediction.Predict(request)
    assert first == second
    rows = first.predictions
    assert list(rows.workers) == list(range(1, 13))
    assert list(rows.steps_per_second) == sorted(rows.steps_per_second)
    parts = [sum(values) for values in zip(*(column.values for column in rows.breakdown_seconds))]
    assert parts == pytest.approx(list(rows.step_seconds))
    pairs = zip(rows.lower_steps_per_second, rows.steps_per_second, rows.upper_steps_per_second)
    assert all(lower < point < upper for lower, point, upper in pairs)
    assert first.basis.estimator == "queueing"
    assert first.basis.profile_digest
    assert first.basis.evidence
    assert first.recommendation.rule == objectives.OBJECTIVE_RULE_KNEE
    assert first.recommendation.why
    # Without a batch there are no samples per second, and no NaN in their place.
    assert not rows.samples_per_second


def test_columns_can_be_left_out(stubs: Stubs) -> None:
    options = options_pb2.PredictOptions(columns=[options_pb2.PREDICTION_COLUMN_THROUGHPUT])
    reply = stubs.prediction.Predict(
        predictions.PredictRequest(profile=inline(), configurations=workers(1, 2), options=options)
    )
    assert len(reply.predictions.steps_per_second) == 2
    assert not reply.predictions.breakdown_seconds
    assert not reply.predictions.lower_steps_per_second


def test_a_stream_answers_in_order_and_survives_an_error(stubs: Stubs) -> None:
    def questions() -> Iterator[predictions.StreamPredictRequest]:
        single = predictions.PredictRequest(profile=inline(), configurations=workers(1))
        yield predictions.StreamPredictRequest(question_id="a", predict=single)
        unknown = predictions.PredictRequest(profile=stored("nobody"), configurations=workers(1))
        yield predictions.StreamPredictRequest(question_id="b", predict=unknown)
        batch = predictions.BatchPredictRequest(
            jobs=[predictions.BatchJob(profile=inline())], configurations=workers(1)
        )
        yield predictions.StreamPredictRequest(question_id="c", batch=batch)
        yield predictions.StreamPredictRequest(question_id="d")

    replies = list(stubs.prediction.StreamPredict(questions()))
    assert [reply.question_id for reply in replies] == ["a", "b", "c", "d"]
    assert [reply.WhichOneof("answer") for reply in replies] == ["predict", "problem", "batch", "problem"]


def test_a_thousand_jobs_in_one_call_equal_one_by_one(stubs: Stubs) -> None:
    contents = [one_worker_phases(compute_s=0.1 + number / 1000) for number in range(1000)]
    jobs = [predictions.BatchJob(profile=inline(content)) for content in contents]
    reply = stubs.prediction.BatchPredict(
        predictions.BatchPredictRequest(jobs=jobs, configurations=workers(1, 4, 8, 16)),
        timeout=PATIENCE_S,
    )
    assert len(reply.outcomes) == 1000
    assert reply.row_offsets[-1] == 4000
    for number in (0, 499, 999):
        alone = stubs.prediction.Predict(
            predictions.PredictRequest(profile=inline(contents[number]), configurations=workers(1, 4, 8, 16))
        )
        assert list(reply.predictions.steps_per_second[4 * number : 4 * number + 4]) == list(
            alone.predictions.steps_per_second
        )


def test_profiles_have_a_life(stubs: Stubs) -> None:
    content = one_worker_phases()
    content.observations.CopyFrom(observed([2, 4], [3.1, 4.3]))
    first = stubs.profile.AppendProfile(
        profiles.AppendProfileRequest(profile_id="life/a1", request_id="1", content=content)
    ).profile
    again = stubs.profile.AppendProfile(
        profiles.AppendProfileRequest(profile_id="life/a1", request_id="1", content=content)
    ).profile
    assert again == first
    assert (first.revision, first.observations_count) == (1, 2)
    stubs.profile.RetractEvidence(
        profiles.RetractEvidenceRequest(
            profile_id="life/a1", request_id="2", observation_numbers=[1], reason="disturbed"
        )
    )
    profile = stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="life/a1")).profile
    assert profile.revision == 2
    assert list(profile.content.observations.numbers) == [2]
    assert list(profile.content.observations.steps_per_second) == [4.3]
    for name in ("life/a0", "life/b"):
        stubs.profile.AppendProfile(profiles.AppendProfileRequest(profile_id=name, request_id="1", content=content))
    page = stubs.profile.ListProfiles(profiles.ListProfilesRequest(name_prefix="life/", page_size=2))
    rest = stubs.profile.ListProfiles(
        profiles.ListProfilesRequest(name_prefix="life/", page_size=2, page_token=page.next_page_token)
    )
    assert [one.profile_id for one in [*page.profiles, *rest.profiles]] == ["life/a0", "life/a1", "life/b"]
    assert not rest.next_page_token
    stubs.profile.DeleteProfile(profiles.DeleteProfileRequest(profile_id="life/a1", etag=profile.etag))
    assert failure_of(stubs.profile.GetProfile, profiles.GetProfileRequest(profile_id="life/a1")).code is (
        grpc.StatusCode.NOT_FOUND
    )


def test_a_named_profile_answers_from_its_newest_revision(stubs: Stubs) -> None:
    request = predictions.PredictRequest(profile=stored("moving"), configurations=workers(1))
    rates = []
    for number, compute_s in enumerate((0.2, 0.4)):
        stubs.profile.AppendProfile(
            profiles.AppendProfileRequest(
                profile_id="moving", request_id=str(number), content=one_worker_phases(compute_s=compute_s)
            )
        )
        reply = stubs.prediction.Predict(request)
        assert reply.basis.profile_revision == number + 1
        rates.append(reply.predictions.steps_per_second[0])
    assert rates[1] < rates[0]


def test_listings(stubs: Stubs) -> None:
    estimators = stubs.prediction.ListEstimators(predictions.ListEstimatorsRequest())
    assert {"auto", "queueing"} <= {estimator.plugin.name for estimator in estimators.estimators}
    assert not stubs.prediction.ListPlugins(predictions.ListPluginsRequest()).problems
    assert stubs.prediction.ListDevices(predictions.ListDevicesRequest()).devices
    policies = stubs.schedule.ListPolicies(schedules.ListPoliciesRequest())
    assert {"fifo", "equal-share", "efficiency-srpt", "efficiency-srpt-fill"} <= {
        policy.name for policy in policies.policies
    }


def test_devices_come_in_pages_under_the_digest_that_answers_rest_on(stubs: Stubs) -> None:
    whole = stubs.prediction.ListDevices(predictions.ListDevicesRequest())
    names = [device.name for device in whole.devices]
    assert names == sorted(names)
    assert not whole.next_page_token
    found, token, pages = [], "", 0
    while token or not pages:
        page = stubs.prediction.ListDevices(predictions.ListDevicesRequest(page_size=4, page_token=token))
        assert 0 < len(page.devices) <= 4
        assert page.catalog_digest == whole.catalog_digest
        found += page.devices
        token, pages = page.next_page_token, pages + 1
    assert found == list(whole.devices)
    assert pages == -(-len(names) // 4) > 2
    (v100,) = [device for device in whole.devices if device.name == "V100"]
    facts = {fact.name: fact.value for fact in v100.facts}
    assert (facts["fp16_flops_per_s"], facts["memory_bytes"]) == (125e12, 16e9)
    assert "Tesla V100" in v100.aliases
    assert v100.intra_node_link
    assert v100.source
    for wrong in ({"page_size": 0}, {"page_size": 1001}, {"page_token": "of nobody"}):
        failure = failure_of(stubs.prediction.ListDevices, predictions.ListDevicesRequest(**wrong))
        assert list(failure.fields) == list(wrong)
    # A job that is carried over from one device to another by the catalogue's facts names that catalogue.
    counts = [1, 2, 4]
    runs = profile_pb2.Observations(
        configurations=configurations.Configurations(
            nodes=counts,
            workers=counts,
            batch_per_worker_samples=[8],
            device_names=["T4"],
            device_indexes=[0],
            sync_modes=[configurations.SYNC_MODE_ALLREDUCE],
        ),
        steps_per_second=[1.5, 1.4, 1.3],
    )
    asked = configurations.Configurations(
        nodes=[4], batch_per_worker_samples=[8], device_names=["Tesla V100"], device_indexes=[0]
    )
    reply = stubs.prediction.Predict(
        predictions.PredictRequest(
            profile=inline(profile_pb2.ProfileContent(observations=runs)),
            configurations=asked,
            options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator="scaling")),
        )
    )
    assert reply.basis.catalog_digest == whole.catalog_digest


def test_sigterm_drains_and_exits_0(tmp_path: Path) -> None:
    with ServerProcess("--store", f"sqlite:{tmp_path}/store.db") as server:
        with Stubs(server.target) as stubs:
            stubs.profile.AppendProfile(
                profiles.AppendProfileRequest(profile_id="kept", request_id="1", content=one_worker_phases())
            )
        status, log = server.terminate()
    assert status == 0
    events = [json.loads(line) for line in log.splitlines()]
    assert [event["event"] for event in events if event["event"] in ("starting", "draining", "stopped")] == [
        "starting",
        "draining",
        "stopped",
    ]
    with ServerProcess("--store", f"sqlite:{tmp_path}/store.db") as server, Stubs(server.target) as stubs:
        assert stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="kept")).profile.revision == 1


def test_a_port_in_use_stops_the_start(tmp_path: Path) -> None:
    with (
        ServerProcess("--store", "memory:") as server,
        pytest.raises(RuntimeError, match=r"cannot listen on .*: the port is in use"),
    ):
        ServerProcess("--store", "memory:", listen=server.target)


def test_workers_share_a_port_and_a_store(tmp_path: Path) -> None:
    with ServerProcess("--workers", "2", "--store", f"sqlite:{tmp_path}/store.db") as server:
        for number in range(8):
            # A channel of its own each: the kernel spreads connections, not calls.
            with Stubs(server.target) as stubs:
                content = one_worker_phases(compute_s=0.1 + number)
                stubs.profile.AppendProfile(
                    profiles.AppendProfileRequest(profile_id="shared", request_id=str(number), content=content)
                )
            with Stubs(server.target) as stubs:
                reply = stubs.prediction.Predict(
                    predictions.PredictRequest(profile=stored("shared"), configurations=workers(1))
                )
                assert reply.basis.profile_revision == number + 1
        status, _ = server.terminate()
    assert status == 0


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    with ServerProcess("--workers", "2", "--store", f"sqlite:{tmp_path}/store.db") as server:
        with Stubs(server.target) as stubs:
            before = stubs.prediction.ListEstimators(predictions.ListEstimatorsRequest())
        os.kill(server.workers()[0], signal.SIGKILL)
        server.log_until("worker_died")
        with Stubs(server.target) as stubs:
            after = stubs.prediction.ListEstimators(
                predictions.ListEstimatorsRequest(), wait_for_ready=True, timeout=PATIENCE_S
            )
        assert after == before
        status, _ = server.terminate()
    assert status == 0


def test_profile_content_of_every_kind_comes_back(stubs: Stubs) -> None:
    content = one_worker_phases()
    content.workload.parameter_bytes = 4_000_000
    content.workload.transformer.layers_count = 2
    content.workload.transformer.hidden_size = 8
    content.workload.transformer.attention_heads_count = 2
    content.workload.transformer.sequence_length_tokens = 16
    content.workload.transformer.vocabulary_size = 100
    content.workload.shard_bytes.extend([3_000_000, 1_000_000])
    content.workload.shard_tensors_counts.extend([1, 1])
    content.workload.layers.add(name="fc", kind="dense", forward_flops_per_sample=1e6, parameter_bytes=4096)
    content.network.link_bytes_per_second = 25e6
    content.network.half_duplex = False
    content.network.worker_link_bytes_per_second = 1e6
    content.network.per_message_seconds = 1e-4
    content.network.round_trip_seconds = 2e-4
    content.phase_timings.hidden_seconds.append(0.05)
    content.phase_timings.transfer_variation.append(0.25)
    content.phase_timings.steps_counts.append(100)
    content.observations.CopyFrom(
        profile_pb2.Observations(
            configurations=configurations.Configurations(
                nodes=[2, 2],
                workers=[3, 4],
                device_names=["V100", "P100"],
                device_indexes=[0, 1],
                sync_modes=[configurations.SYNC_MODE_ALLREDUCE],
                placement_offsets=[0, 2, 2],
                placement_workers=[2, 1],
                precisions=["fp16"],
                zero_stages=[1],
            ),
            steps_per_second=[1.5, 1.25],
            exposed_sync_seconds=[0.1, 0],
            exposed_sync_known=[True, False],
            steps_counts=[10, 20],
            step_variation=[0.5, 0],
            step_variation_known=[True, False],
        )
    )
    stubs.profile.AppendProfile(profiles.AppendProfileRequest(profile_id="everything", request_id="1", content=content))
    found = stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="everything")).profile.content
    assert found.workload == content.workload
    assert found.network == content.network
    assert list(found.observations.configurations.placement_workers) == [2, 1]
    assert list(found.observations.configurations.device_names) == ["V100", "P100"]
    assert list(found.observations.exposed_sync_seconds) == [0.1, 0]
    assert list(found.observations.exposed_sync_known) == [True, False]
    assert list(found.observations.steps_counts) == [10, 20]
    assert list(found.observations.step_variation) == [0.5, 0]
    assert list(found.observations.step_variation_known) == [True, False]
    assert list(found.phase_timings.compute_seconds) == [0.29659]
    assert list(found.phase_timings.hidden_seconds) == [0.05]
    assert list(found.phase_timings.transfer_variation) == [0.25]
    assert list(found.phase_timings.steps_counts) == [100]


def test_shards_are_those_of_the_whole(stubs: Stubs) -> None:
    facts = profile_pb2.ProfileContent(workload={"parameter_bytes": 10, "tensors_count": 4})
    stubs.profile.AppendProfile(profiles.AppendProfileRequest(profile_id="sharded", request_id="1", content=facts))
    shards = profile_pb2.ProfileContent(workload={"shard_bytes": [6, 3], "shard_tensors_counts": [3, 2, 0]})
    failure = failure_of(
        stubs.profile.AppendProfile,
        profiles.AppendProfileRequest(profile_id="sharded", request_id="2", content=shards),
    )
    assert failure.reason == "CONTRADICTORY_FACTS"
    assert failure.fields["content.workload.shard_tensors_counts"].startswith("must have one entry per server")
    shards.workload.shard_tensors_counts.pop()
    failure = failure_of(
        stubs.profile.AppendProfile,
        profiles.AppendProfileRequest(profile_id="sharded", request_id="2", content=shards),
    )
    told = {field.rsplit(".", 1)[-1]: text for field, text in failure.fields.items()}
    assert told == {
        "shard_bytes": "must add up to parameter_bytes (10), but add up to 9",
        "shard_tensors_counts": "must add up to tensors_count (4), but add up to 5",
    }
    shards = profile_pb2.ProfileContent(workload={"shard_bytes": [6, 4], "shard_tensors_counts": [3, 1]})
    stubs.profile.AppendProfile(profiles.AppendProfileRequest(profile_id="sharded", request_id="3", content=shards))
    kept = stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="sharded")).profile.content.workload
    assert (list(kept.shard_bytes), list(kept.shard_tensors_counts)) == ([6, 4], [3, 1])


def test_a_placement_alone_says_how_many_nodes_and_workers(stubs: Stubs) -> None:
    placed = configurations.Configurations(placement_offsets=[0, 2, 5], placement_workers=[2, 1, 1, 1, 1])
    reply = stubs.prediction.Predict(predictions.PredictRequest(profile=inline(), configurations=placed))
    assert list(reply.predictions.nodes) == [2, 3]
    assert list(reply.predictions.workers) == [3, 3]
