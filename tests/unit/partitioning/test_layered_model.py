"""Layered networks asked about as a job's configurations: answers, memory, refusals, and what is said beside them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import (
    Catalogue,
    Configurations,
    Layer,
    Network,
    Options,
    Predictions,
    Profile,
    Query,
    Reason,
    Recomputation,
    RowStatus,
    SyncMode,
    Workload,
    as_ints,
)
from nodewise_client import layers_from_csv
from nodewise_partitioning.layered.model import EXPECTED_LOG_ERROR, LayeredModel, assess_layers
from nodewise_partitioning.layered.times import LOG_SPREAD

EXAMPLES = Path(__file__).parents[3] / "examples" / "layers"
CATALOGUE = load_catalogue()
PROCESSOR, ACCELERATOR = "Xeon-E5-2450L", "V100"


def profile(name: str = "mlp", *, link: float | None = 1.25e9, **facts: Any) -> Profile:
    layers = tuple(Layer(**dataclasses.asdict(layer)) for layer in layers_from_csv(EXAMPLES / f"{name}.csv"))
    network = {key: facts.pop(key) for key in ("half_duplex", "per_message_s", "round_trip_s") if key in facts}
    return Profile(workload=Workload(layers=layers, **facts), network=Network(link_bytes_per_s=link, **network))


def asked(workers: list[int], *, device: str = PROCESSOR, batch: int = 64, **columns: Any) -> Configurations:
    given = {"sync_mode": SyncMode.SYNC, "parameter_servers": 2, "nodes": workers} | columns
    plain = {name: given.pop(name) for name in ("sync_mode", "parameter_servers", "nodes")}
    rows = Configurations.of(len(workers), workers=workers, device=device, batch_per_worker=batch, **plain)
    return rows.replaced(**{name: as_ints([value] * len(workers)) for name, value in given.items()})


def predicted(of: Profile, rows: Configurations, catalogue: Catalogue = CATALOGUE) -> Predictions:
    return LayeredModel(of, catalogue).predict(rows, Options())


def samples_per_s(of: Profile, rows: Configurations) -> np.ndarray:
    answer = predicted(of, rows)
    return rows.cycles_per_step() * rows.samples_per_step() / answer.step_s


@pytest.mark.parametrize("mode", [SyncMode.SYNC, SyncMode.ASYNC, SyncMode.ALLREDUCE])
@pytest.mark.parametrize("name", ["mlp", "vgg16", "resnet50"])
@pytest.mark.parametrize("device", [PROCESSOR, ACCELERATOR])
def test_parts_add_up_to_the_step(mode: SyncMode, name: str, device: str) -> None:
    answer = predicted(profile(name), asked([1, 2, 8, 64], device=device, sync_mode=mode, batch=16))
    assert answer.all_answered
    assert sum(answer.breakdown_s.values()) == pytest.approx(answer.step_s)
    assert all(np.all(part >= 0.0) for part in answer.breakdown_s.values())
    assert np.all(answer.log_spread >= LOG_SPREAD)
    assert answer.memory_bytes is not None
    assert np.all(answer.memory_bytes > 0.0)


def test_asynchronous_throughput_rises_to_the_servers_capacity() -> None:
    rows = asked([1, 2, 4, 8, 16, 32, 64, 128], sync_mode=SyncMode.ASYNC)
    found = samples_per_s(profile(), rows)
    parameters = sum(layer.parameter_bytes for layer in profile().workload.layers or ())
    assert found[1] == pytest.approx(2 * found[0])
    assert np.all(np.diff(found) >= -1e-9)
    assert found[-1] == pytest.approx(64 * 2 * 1.25e9 / parameters)
    shared = samples_per_s(profile(half_duplex=True), rows)
    assert shared[-1] == pytest.approx(found[-1] / 2)
    more = samples_per_s(profile(), asked([128], sync_mode=SyncMode.ASYNC, parameter_servers=4))
    assert more[0] == pytest.approx(2 * found[-1])


def test_more_servers_never_make_a_step_longer() -> None:
    for mode in (SyncMode.SYNC, SyncMode.ASYNC):
        steps = [
            predicted(profile("vgg16"), asked([32], sync_mode=mode, parameter_servers=s)).step_s[0] for s in range(1, 9)
        ]
        assert np.all(np.diff(steps) <= 1e-12)


def test_partitions_whose_weights_fit_the_cache_gain_more_than_their_number() -> None:
    """48 MB of weights in 20 MB of cache: one machine goes by its memory bus, four together do not."""
    alone, split = (
        predicted(profile(), asked([4], sync_mode=SyncMode.ASYNC, tensor_parallel=parts)) for parts in (1, 4)
    )
    assert split.extra["replica_samples_per_s"][0] > 4 * alone.extra["replica_samples_per_s"][0]
    assert alone.extra["replicas"][0] == 4.0
    assert split.extra["replicas"][0] == 1.0


def test_stages_of_a_pipeline_work_on_samples_of_their_own() -> None:
    one, two = (predicted(profile("vgg16"), asked([2], pipeline_parallel=stages)) for stages in (1, 2))
    rates = [each.extra["replica_samples_per_s"][0] for each in (one, two)]
    assert 1.5 * rates[0] < rates[1] <= 2.0 * rates[0]


def test_an_all_reduce_across_nodes_hides_behind_the_backward_pass() -> None:
    inside = predicted(profile("resnet50"), asked([4], device=ACCELERATOR, nodes=[1], sync_mode=SyncMode.ALLREDUCE))
    rows = asked([8, 32], device=ACCELERATOR, nodes=[2, 8], sync_mode=SyncMode.ALLREDUCE)
    fast, slow = (predicted(profile("resnet50", link=link), rows) for link in (12.5e9, 1.25e8))
    assert inside.breakdown_s["exchange"][0] < fast.breakdown_s["exchange"][0] < 0.05 * fast.step_s[0]
    # 102 MB over 1 Gbit/s: 2 (k - 1) / k S / B at least, less a backward pass of 0.13 s.
    assert slow.breakdown_s["exchange"][1] > 2 * 7 / 8 * 102e6 / 1.25e8 - 0.2
    assert slow.bottlenecks[slow.bottleneck_index[1]] == "exchange"


def test_accumulation_exchanges_less_often() -> None:
    once = predicted(profile(), asked([8], sync_mode=SyncMode.SYNC))
    twice = predicted(profile(), asked([8], sync_mode=SyncMode.SYNC, accumulation=2))
    assert twice.breakdown_s["exchange"][0] == pytest.approx(once.breakdown_s["exchange"][0])
    assert twice.breakdown_s["compute"][0] == pytest.approx(2 * once.breakdown_s["compute"][0])


def test_what_does_not_fit_says_by_how_much() -> None:
    answer = predicted(profile("vgg16"), asked([4], device=ACCELERATOR, batch=512, sync_mode=SyncMode.ALLREDUCE))
    assert answer.status.tolist() == [RowStatus.INFEASIBLE_MEMORY]
    assert answer.memory_bytes is not None
    assert answer.excess_memory_bytes is not None
    assert answer.excess_memory_bytes[0] == pytest.approx(answer.memory_bytes[0] - 16e9)
    assert answer.step_s[0] == 0.0
    split = asked([4], device=ACCELERATOR, batch=256, tensor_parallel=4)
    assert predicted(profile("vgg16"), split).all_answered


def test_memory_limits_the_threads() -> None:
    facts = dict(CATALOGUE.devices["xeone52450l"]) | {"memory_bytes": 2e9}
    small = Catalogue(devices={"small": facts})
    answer = predicted(profile("vgg16"), asked([1], device="small"), small)
    assert 1.0 <= answer.extra["threads_per_worker"][0] < 8.0
    assert answer.memory_bytes is not None
    assert answer.memory_bytes[0] <= 2e9


def test_fewer_samples_than_threads_leave_threads_idle() -> None:
    answer = predicted(profile("vgg16"), asked([1], batch=3))
    assert answer.extra["threads_per_worker"].tolist() == [3.0]


def test_what_is_taken_for_granted_is_said() -> None:
    reasons = {notice.reason for notice in predicted(profile(), asked([1])).notices}
    assert reasons == {"FACTS_ALONE", "MESSAGE_TIME_ASSUMED", "PRECISION_ASSUMED"}
    told = predicted(profile(precision="fp32", round_trip_s=1e-4), asked([1]))
    assert [notice.reason for notice in told.notices] == ["FACTS_ALONE"]


@pytest.mark.parametrize(
    ("of", "rows", "reason", "expected"),
    [
        (profile(), asked([4], sync_mode=SyncMode.HYBRID), Reason.UNSUPPORTED_CONFIGURATION, "not HYBRID"),
        (profile(), asked([4], expert_parallel=2), Reason.UNSUPPORTED_CONFIGURATION, "expert_parallel must be left"),
        (profile(), asked([4], zero_stage=1), Reason.UNSUPPORTED_CONFIGURATION, "zero_stage must be left"),
        (
            profile(),
            asked([4], recomputation=Recomputation.FULL),
            Reason.UNSUPPORTED_CONFIGURATION,
            "recomputation must be left",
        ),
        (
            profile(),
            asked([4], sync_mode=SyncMode.ALLREDUCE, tensor_parallel=2),
            Reason.UNSUPPORTED_CONFIGURATION,
            "a layered network is one device",
        ),
        (
            profile(),
            asked([8], pipeline_parallel=7),
            Reason.UNSUPPORTED_CONFIGURATION,
            "pipeline_parallel must be at most 6",
        ),
        (profile(), asked([1], tensor_parallel=2), Reason.UNSUPPORTED_CONFIGURATION, "must be a multiple of"),
        (profile(), asked([4], device=""), Reason.EVIDENCE_MISSING, "the device must be stated"),
        (profile(), asked([4], batch=0), Reason.EVIDENCE_MISSING, "the batch must be stated"),
        (profile(link=None), asked([4]), Reason.EVIDENCE_MISSING, "the link between nodes must be stated"),
        (profile(), asked([4], device="abacus"), Reason.EVIDENCE_MISSING, "no device 'abacus'"),
        (profile(precision="fp8"), asked([4]), Reason.EVIDENCE_MISSING, "no peak of device"),
        (
            profile(link=None),
            asked([4], nodes=[1], sync_mode=SyncMode.ALLREDUCE),
            Reason.EVIDENCE_MISSING,
            "no link between devices",
        ),
    ],
)
def test_rows_that_are_refused(of: Profile, rows: Configurations, reason: Reason, expected: str) -> None:
    answer = predicted(of, rows)
    assert answer.status.tolist() == [RowStatus.REFUSED]
    assert answer.refusals[0].refusal.reason == reason
    assert expected in answer.refusals[0].refusal.message
    assert answer.bottleneck_index.tolist() == [-1]


def test_facts_alone_are_said_to_be_weak() -> None:
    found = assess_layers(profile(), Query(configurations=asked([4]), catalogue=CATALOGUE))
    assert (found.refusal, found.strength, found.expected_log_error) == (None, 0.0, EXPECTED_LOG_ERROR)
    assert "6 layers" in found.evidence[0]
    for nothing in (Profile(), dataclasses.replace(profile(), workload=Workload())):
        refusal = assess_layers(nothing, Query(configurations=asked([4]), catalogue=CATALOGUE)).refusal
        assert refusal is not None
        assert refusal.missing_fields == ("workload.layers",)
    refusal = assess_layers(profile(), Query(configurations=asked([4], device=""), catalogue=CATALOGUE)).refusal
    assert refusal is not None
    assert "device" in refusal.message
    refusal = assess_layers(profile(), Query(configurations=asked([4], device="abacus"), catalogue=CATALOGUE)).refusal
    assert refusal is not None
    assert "no device 'abacus'" in refusal.message
    refusal = assess_layers(profile(), Query(configurations=asked([]), catalogue=CATALOGUE)).refusal
    assert refusal is not None


def test_the_same_question_has_the_same_answer() -> None:
    model, rows = LayeredModel(profile("vgg16"), CATALOGUE), asked([1, 8, 64], tensor_parallel=1)
    first, second = model.predict(rows, Options()), model.predict(rows, Options())
    assert first.step_s.tobytes() == second.step_s.tobytes()


def test_servers_that_are_enough() -> None:
    for mode in (SyncMode.SYNC, SyncMode.ASYNC):
        rows = asked([1, 8, 64], sync_mode=mode, parameter_servers=1)
        enough = predicted(profile("vgg16"), rows).extra["sufficient_servers"].astype(int).tolist()
        assert enough == sorted(enough)
        for workers, servers in zip((1, 8, 64), enough, strict=True):
            steps = [
                predicted(profile("vgg16"), asked([workers], sync_mode=mode, parameter_servers=count)).step_s[0]
                for count in (servers - 1, servers, servers + 10)
                if count
            ]
            assert steps[-1] == pytest.approx(steps[-2])
            assert len(steps) == 2 or steps[0] > steps[1]


def test_how_a_replica_is_laid_out_is_said() -> None:
    answer = predicted(profile(), asked([4], tensor_parallel=2, pipeline_parallel=2))
    (layout,) = [notice.message for notice in answer.notices if notice.reason == "LAYOUT"]
    assert layout == "a replica of 4 workers: fc1 to fc2 in 2 parts; then fc3 to fc6 in 2 parts"
