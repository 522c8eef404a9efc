"""Completion over a real socket and from the command line: offers, risk, the one to take, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_cli.inputs.documents import read_value
from nodewise_client import (
    Client,
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    CompletionRow,
    CompletionSpeeds,
    DeadlineExceededError,
    EstimateCompletionRequest,
    ExponentialLifetimes,
    HybridQuestion,
    HybridRun,
    InvalidArgumentError,
    KnownRevocations,
    LeastCost,
    LeastTime,
    LifetimeDataSet,
    LifetimeLaw,
    ModelOptions,
    NodeReplacement,
    ObservedLifetimes,
    PredictOptions,
    PredictRequest,
    RefusedError,
    Work,
    configurations,
    objective,
)
from nodewise_protos.v1beta1 import completion_service_pb2 as pb
from nodewise_protos.v1beta1 import completion_service_pb2_grpc

SPEC = Path(__file__).parents[2] / "examples" / "spot.json"
HOUR_S = 3600.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=120) as found:
        yield found


def spot(nodes: int = 4, mean_h: float = 20.0, **others: Any) -> CompletionGroup:
    usual: dict[str, Any] = {
        "device_name": "K80",
        "tier": "spot",
        "region": "us-east1",
        "price_per_node_hour": 1.0,
        "lifetime": LifetimeLaw(exponential=ExponentialLifetimes(mean_seconds=mean_h * HOUR_S)),
        "replacement": NodeReplacement(delays_seconds=(120.0, 180.0)),
    }
    return CompletionGroup(nodes=nodes, **usual | others)


def offer(name: str = "spot", *groups: CompletionGroup, **others: Any) -> CompletionOffer:
    held = groups or (spot(),)
    nodes = sum(group.nodes for group in held)
    usual = {"speeds": CompletionSpeeds(samples_per_second=tuple(map(float, range(nodes + 1)))), "sync_mode": "async"}
    return CompletionOffer(name=name, groups=held, **usual | others)  # type: ignore[arg-type]  # fields of it


def asked(*offers: CompletionOffer, **others: Any) -> EstimateCompletionRequest:
    usual: dict[str, Any] = {
        "work": Work(samples=4 * 8 * HOUR_S),
        "objective": objective(LeastCost(deadline_seconds=9 * HOUR_S), confidence=0.95),
        "runs_count": 2000,
        "now": NOW,
    }
    return EstimateCompletionRequest(offers=offers, **usual | others)


def row(client: Client, *offers: CompletionOffer, **others: Any) -> CompletionRow:
    return client.estimate_completion(asked(*(offers or (offer(),)), **others)).rows[0]


def refusal(client: Client, asked_offer: CompletionOffer) -> Any:
    found = row(client, asked_offer)
    assert found.status == "refused"
    assert found.problem is not None
    return found.problem


# --- the example


@pytest.mark.wheel
def test_the_example_is_answered_and_drawn(target: str, tmp_path: Path) -> None:
    picture = tmp_path / "spot.svg"
    command = ["spot", str(SPEC), "--json", "--server", target, "--runs", "2000"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert {"offers", "choice", "no_choice_why", "estimator", "estimator_version", "on_demand", "hybrid"} <= set(found)
    assert found["estimator"] == "transient"
    assert [each["status"] for each in found["offers"]] == ["answered"] * 9
    chosen = found["offers"][found["choice"]["row"]]
    assert chosen["chosen"]
    assert chosen["name"] == found["choice"]["name"]
    assert chosen["deadline_probability"] >= 0.95
    assert "finish by 12 h" in found["choice"]["why"]
    cheaper = [each for each in found["offers"] if each["frontier"] and each["cost"]["mean"] < chosen["cost"]["mean"]]
    assert all(each["deadline_probability"] < 0.96 for each in cheaper)
    first = found["offers"][0]
    assert {"mean", "standard_error", "p50", "p90", "p99"} <= set(first["time_s"])
    assert sum(first["breakdown"].values()) == pytest.approx(first["time_s"]["mean"])
    assert first["lifetimes"][0]["data_set"].startswith("cm-dare/K80/us-west1")
    assert first["basis"]["estimator"]
    assert found["on_demand"]["rule"] == "planned"
    assert found["hybrid"]["chosen_fraction"] == 0.04
    again = CliRunner().invoke(app, command)
    assert again.stdout == result.stdout
    shown = CliRunner().invoke(app, [*command[:2], *command[3:], "--plot", str(picture)])
    assert shown.exit_code == 0, shown.stderr
    assert "Take '" in shown.stdout
    assert "When to use on demand" in shown.stdout
    assert picture.read_text().startswith("<?xml")


def test_the_speeds_are_those_of_predict(client: Client) -> None:
    request = read_value(SPEC, EstimateCompletionRequest)
    found = client.estimate_completion(replace(request, on_demand=None, hybrid=None, runs_count=100))
    for each, workers, device in ((found.rows[0], 4, "K80"), (found.rows[8], 6, "P100")):
        told = client.predict(
            PredictRequest(
                profile=request.profile,
                configurations=configurations(nodes=[workers], workers=[workers], devices=device, sync_modes="async"),
                options=PredictOptions(),
            )
        )
        assert each.samples_per_second == pytest.approx(told[0].samples_per_second)
        assert each.basis is not None
        assert each.basis.estimator == told.basis.estimator


# --- risk


def test_the_same_seed_gives_the_same_bytes(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        stub = completion_service_pb2_grpc.CompletionServiceStub(channel)
        request = pb.EstimateCompletionRequest(runs_count=500)
        request.work.samples = 1e5
        group = request.offers.add(name="spot", sync_mode="SYNC_MODE_ASYNC").groups.add(
            nodes=2, tier="CAPACITY_TIER_SPOT"
        )
        group.lifetime.exponential.mean_seconds = 20_000.0
        request.offers[0].speeds.samples_per_second.extend([0.0, 1.0, 2.0])
        first, second = (stub.EstimateCompletion(request).SerializeToString(deterministic=True) for _ in range(2))
        assert first == second
        request.options.seed = 1
        assert stub.EstimateCompletion(request).SerializeToString(deterministic=True) != first


def test_known_revocations_are_exact(client: Client) -> None:
    law = LifetimeLaw(revocations=KnownRevocations(times_seconds=(HOUR_S,)))
    found = row(client, offer("known", spot(lifetime=law, replacement=None)), work=Work(samples=4 * 2 * HOUR_S))
    assert found.time_seconds is not None
    assert found.time_seconds.mean == pytest.approx(HOUR_S + 4 * HOUR_S / 3)
    assert found.cost is not None
    assert found.cost.mean == pytest.approx(1.0 + 3 * (1 + 4 / 3))
    assert found.revocations_mean == 1.0


def test_later_deadlines_are_kept_more_likely_and_more_losses_less(client: Client) -> None:
    shares = [
        row(client, objective=objective(LeastCost(deadline_seconds=hours * HOUR_S))).deadline_probability
        for hours in (8.0, 8.02, 8.05, 8.2, 24.0)
    ]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    found = client.estimate_completion(
        asked(*(offer(str(mean), spot(mean_h=mean)) for mean in (5.0, 20.0, 1000.0)))
    ).rows
    times = [each.time_seconds.mean for each in found if each.time_seconds is not None]
    assert times == sorted(times, reverse=True)


def test_an_offer_alone_answers_as_among_others(client: Client) -> None:
    offers = [offer("a"), offer("b", spot(nodes=8)), offer("c", spot(mean_h=2.0))]
    together = client.estimate_completion(asked(*offers)).rows
    assert [row(client, each) for each in offers] == list(together)


def test_saves_are_chosen_for_what_is_asked(client: Client) -> None:
    waiting = offer(
        "waits",
        spot(nodes=4, mean_h=10.0, replacement=NodeReplacement(delays_seconds=(600.0,))),
        sync_mode="allreduce",
        restart_seconds=60.0,
        checkpoints=CompletionCheckpoints(seconds=30.0),
    )
    found = row(client, waiting).checkpoints
    assert found is not None
    assert found.chosen
    assert found.interval_seconds == pytest.approx(found.daly_interval_seconds, rel=0.5)
    stated = replace(waiting, checkpoints=CompletionCheckpoints(seconds=30.0, interval_seconds=300.0))
    saves = row(client, stated).checkpoints
    assert saves is not None
    assert (saves.chosen, saves.interval_seconds) == (False, 300.0)


def test_lost_nodes_go_on_elsewhere(client: Client) -> None:
    moving = spot(nodes=2, mean_h=2.0, replacement=NodeReplacement(delays_seconds=(60.0,), group_name="firm"))
    firm = CompletionGroup(name="firm", device_name="K80", tier="on_demand", price_per_node_hour=3.0)
    speeds = CompletionSpeeds(samples_per_second=(0.0, 1.0, 2.0, 1.0, 2.0, 0.0, 2.0, 0.0, 0.0))
    found = row(client, offer("moves", moving, firm, speeds=speeds), work=Work(samples=2 * 4 * HOUR_S))
    stays = row(client, offer("stays", replace(moving, replacement=None)), work=Work(samples=2 * 4 * HOUR_S))
    assert found.failure_probability == 0.0
    assert found.revocations_mean is not None
    assert 1.0 < found.revocations_mean < 2.0
    assert stays.failure_probability is not None
    assert stays.failure_probability > 0.1


def test_means_alone_are_told_without_runs(client: Client) -> None:
    found = row(client, method="deterministic")
    assert found.time_seconds is not None
    assert found.time_seconds.p90 is None
    assert found.failure_probability is None
    simulated = row(client).time_seconds
    assert simulated is not None
    assert found.time_seconds.mean == pytest.approx(simulated.mean, rel=0.005)


def test_speeds_that_are_predicted_bring_their_spread(client: Client) -> None:
    request = replace(read_value(SPEC, EstimateCompletionRequest), on_demand=None, hybrid=None, runs_count=1000)
    request = replace(request, offers=request.offers[4:5])
    unsure = client.estimate_completion(request).rows[0]
    certain = client.estimate_completion(replace(request, certain_speeds=True)).rows[0]
    assert unsure.speed_log_spread is not None
    assert certain.speed_log_spread is None
    assert unsure.time_seconds is not None
    assert certain.time_seconds is not None
    assert certain.time_seconds.p99 == pytest.approx(certain.time_seconds.p50)
    ratio = unsure.time_seconds.p99 / unsure.time_seconds.p50
    assert np.log(ratio) == pytest.approx(2.33 * unsure.speed_log_spread, rel=0.1)


def test_lifetimes_of_the_request_are_named_and_warned_about(client: Client) -> None:
    law = LifetimeLaw(observed=ObservedLifetimes(lives_seconds=tuple(1000.0 * n for n in range(1, 31))))
    found = row(
        client,
        offer("named", spot(lifetime=LifetimeLaw(data_set="ours"))),
        data_sets=[LifetimeDataSet(name="ours", law=law)],
    )
    assert found.lifetimes[0].machines_count == 30
    assert {"LIFETIMES_ELSEWHERE", "LIFETIMES_FEW"} <= {notice.reason for notice in found.warnings}


# --- choice


def test_the_choice_says_why_and_so_does_none(client: Client) -> None:
    offers = [offer("slow", spot(nodes=2)), offer("fast", spot(nodes=8, price_per_node_hour=2.0))]
    found = client.estimate_completion(asked(*offers))
    assert found.choice is not None
    assert (found.choice.row, found.choice.rule) == (1, "least_cost")
    assert "'fast'" in found.choice.why
    assert found.frontier_rows == (0, 1)
    nobody = client.estimate_completion(
        asked(*offers, objective=objective(LeastCost(deadline_seconds=60.0), confidence=0.9))
    )
    assert nobody.choice is None
    assert "none of 2 offers finishes by" in nobody.no_choice_why
    within = client.estimate_completion(asked(*offers, objective=objective(LeastTime(max_cost=40.0))))
    assert within.choice is not None
    assert (within.choice.row, within.choice.rule) == (0, "least_time")


# --- what is refused


def test_a_bad_offer_costs_the_others_nothing(client: Client) -> None:
    found = client.estimate_completion(asked(offer("bad", spot(nodes=-1)), offer("good")))
    assert [each.status for each in found.rows] == ["refused", "answered"]
    problem = found.rows[0].problem
    assert problem is not None
    assert problem.reason == "INVALID_FIELD"
    assert problem.violations[0].field.startswith("offers[0].groups[0].nodes")
    assert found.rows[1] == row(client, offer("good"))
    assert found.choice is not None
    assert found.choice.row == 1


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (offer("x", spot(lifetime=None)), "groups[0].lifetime"),
        (offer("x", spot(lifetime=LifetimeLaw())), "groups[0].lifetime"),
        (offer("x", spot(replacement=NodeReplacement())), "delays_seconds"),
        (offer("x", spot(replacement=NodeReplacement(delays_seconds=(1.0,), group_name="no"))), "group_name"),
        (offer("x", checkpoints=CompletionCheckpoints()), "checkpoints"),
        (offer("x", speeds=CompletionSpeeds(samples_per_second=(0.0, 1.0))), "speeds.samples_per_second"),
        (offer("x", speeds=CompletionSpeeds(samples_per_second=(0.0,) * 5)), "speeds.samples_per_second"),
        (offer("x", sync_mode=None), "reaction"),
        (offer("x", sync_mode="hybrid"), "sync_mode"),
        (
            offer("x", spot(lifetime=LifetimeLaw(revocations=KnownRevocations(times_seconds=(1.0,) * 5)))),
            "revocations.times_seconds",
        ),
        (
            offer("x", spot(lifetime=LifetimeLaw(revocations=KnownRevocations(times_seconds=(1.0,))))),
            "offers[0].groups[0].replacement",
        ),
        (offer("x", burst_probability=2.0), "burst_probability"),
        (CompletionOffer(name="x"), "groups"),
        (offer("x", spot(lifetime=LifetimeLaw(data_set="nobody's"))), "cm-dare/K80/us-central1"),
        (CompletionOffer(name="x", groups=(spot(),)), "profile"),
    ],
)
def test_every_wrong_input_names_its_field(client: Client, wrong: CompletionOffer, named: str) -> None:
    problem = refusal(client, wrong)
    told = [problem.message, *problem.missing_fields, *(violation.field for violation in problem.violations)]
    assert any(named in each for each in told), told


def test_a_tier_that_the_contract_lacks_is_refused(target: str) -> None:
    request = pb.EstimateCompletionRequest()
    request.work.samples = 1e5
    request.offers.add(name="x", sync_mode="SYNC_MODE_ASYNC").groups.add(nodes=1, tier=9)
    request.offers[0].speeds.samples_per_second.extend([0.0, 1.0])
    with grpc.insecure_channel(target) as channel:
        reply = completion_service_pb2_grpc.CompletionServiceStub(channel).EstimateCompletion(request)
    violation = reply.rows[0].problem.violations[0]
    assert violation.field == "offers[0].groups[0].tier"
    assert violation.description == "must be a whole number from 0 to 3, found 9"


def test_offers_of_one_name_are_told_apart_by_refusing_the_later(client: Client) -> None:
    found = client.estimate_completion(asked(offer("a"), offer("a"))).rows
    assert [each.status for each in found] == ["answered", "refused"]
    assert found[1].problem is not None
    assert found[1].problem.violations[0].field == "offers[1].name"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"offers": ()}, "offers"),
        ({"runs_count": 0}, "runs_count"),
        ({"common": CompletionOffer(name="x")}, "common"),
        ({"completion_estimator": "queueing"}, "completion_estimator"),
        ({"data_sets": [LifetimeDataSet(name="a")]}, "data_sets[0].law"),
    ],
)
def test_wrong_requests_are_refused_as_a_whole(client: Client, changes: dict[str, Any], named: str) -> None:
    request = replace(asked(offer()), **changes)
    with pytest.raises(InvalidArgumentError) as caught:
        client.estimate_completion(request)
    assert caught.value.violations[0].field == named


def test_calls_are_capped_and_end_in_time(client: Client) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        client.estimate_completion(asked(*(offer(str(n)) for n in range(11)), runs_count=1_000_000))
    assert "10000000" in caught.value.message
    forever = offer("forever", spot(nodes=32, mean_h=0.001), sync_mode="allreduce")
    with pytest.raises(DeadlineExceededError):
        client.estimate_completion(asked(forever, runs_count=100_000), timeout_s=1.0)
    assert row(client).status == "answered"


def test_no_work_is_no_answer(client: Client) -> None:
    found = row(client, work=None)
    assert found.problem is not None
    assert "work" in found.problem.missing_fields


def test_throughput_is_not_asked_of_it(client: Client) -> None:
    request = read_value(SPEC, EstimateCompletionRequest)
    rows = configurations(nodes=[4], workers=[4], devices="K80")
    options = PredictOptions(model=ModelOptions(estimator="transient"))
    with pytest.raises(RefusedError) as caught:
        client.predict(PredictRequest(profile=request.profile, configurations=rows, options=options))
    assert "EstimateCompletion" in caught.value.message
    assert "transient" in {each.plugin.name for each in client.list_estimators().estimators if each.plugin}
    auto = client.predict(PredictRequest(profile=request.profile, configurations=rows))
    assert "transient" not in {auto.basis.estimator, *(share.estimator for share in auto.basis.mixture)}


def test_a_refused_specification_ends_with_its_reason(target: str, tmp_path: Path) -> None:
    spec = tmp_path / "spot.json"
    spec.write_text(json.dumps({"work": {"samples": 1e6}, "offers": [{"name": "x", "groups": [{"nodes": 2}]}]}))
    result = CliRunner().invoke(app, ["spot", str(spec), "--server", target])
    assert result.exit_code == 3
    assert "no offer was answered" in result.stderr
    spec.write_text(json.dumps({"offers": [{"nodes": 3}]}))
    result = CliRunner().invoke(app, ["spot", str(spec), "--server", target])
    assert result.exit_code == 2


# --- hybrids


def test_hybrids_are_timed_from_the_profile_or_from_what_is_stated(client: Client) -> None:
    request = read_value(SPEC, EstimateCompletionRequest)
    stated = HybridQuestion(
        synchronous_seconds=1e4,
        asynchronous_seconds=1e3,
        fractions=(0.5,),
        runs=(HybridRun(fraction=0.5, accuracy=0.9),),
    )
    found = client.estimate_completion(EstimateCompletionRequest(hybrid=stated)).hybrid
    assert found is not None
    assert found.points[0].time_seconds == pytest.approx(5500.0)
    assert found.points[0].measured_accuracy == 0.9
    predicted = HybridQuestion(synchronous_seconds=1e5, nodes=CompletionGroup(device_name="K80", nodes=4))
    answer = client.estimate_completion(
        EstimateCompletionRequest(profile=request.profile, work=request.work, hybrid=predicted)
    ).hybrid
    assert answer is not None
    assert len(answer.bases) == 1
    assert answer.asynchronous_seconds == pytest.approx(327_680_000 / (37.3 * 128), rel=0.1)
    missing = client.estimate_completion(EstimateCompletionRequest(hybrid=HybridQuestion())).hybrid
    assert missing is not None
    assert missing.problem is not None
    assert "hybrid.synchronous_seconds" in missing.problem.missing_fields


def test_nodes_of_two_devices_work_together_where_their_phases_are_known(target: str, tmp_path: Path) -> None:
    header = "job,device,sync,nodes,workers,parameter_servers,batch_per_worker,compute_s,download_s,upload_s,update_s"
    rows = ("j,K80,async,1,1,1,32,0.4,0.01,0.01,0.005", "j,P100,async,1,1,1,32,0.1,0.01,0.01,0.005")
    (tmp_path / "phases.csv").write_text(
        "\n".join(
            (
                f"{header},steps_per_s,link_bytes_per_s",
                *(f"{row},{rate},1e9" for row, rate in zip(rows, (2.35, 8.0), strict=True)),
            )
        )
        + "\n"
    )
    moving = {
        "deviceName": "K80",
        "nodes": 2,
        "tier": "CAPACITY_TIER_SPOT",
        "lifetime": {"revocations": {"timesSeconds": [3600]}},
        "pricePerNodeHour": 1,
    }
    lost = {**moving, "lifetime": {"exponential": {"meanSeconds": 7200}}}
    after = {"replacement": {"delaysSeconds": [60], "groupName": "fast"}}
    fast = {"name": "fast", "deviceName": "P100", "pricePerNodeHour": 3}
    spec = {
        "profile": {"table": "phases.csv", "job": "j"},
        "work": {"samples": 1e6},
        "certainSpeeds": True,
        "runsCount": 500,
        "common": {"syncMode": "SYNC_MODE_ASYNC"},
        "offers": [
            {"name": "mixed", "groups": [{**moving, "lifetime": {"revocations": {}}}, {**fast, "nodes": 1}]},
            {"name": "moves", "groups": [{**lost, **after}, fast]},
            {"name": "stays", "groups": [lost]},
        ],
    }
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    result = CliRunner().invoke(app, ["spot", str(path), "--json", "--server", target])
    assert result.exit_code == 0, result.stderr
    mixed, moves, stays = json.loads(result.stdout)["offers"]
    assert [each["problem"] for each in (mixed, moves, stays)] == [None] * 3
    assert mixed["device_names"] == ["K80", "P100"]
    slow = stays["samples_per_s"]
    assert mixed["samples_per_s"] > 2.0 * slow
    # Whoever is lost comes back four times as fast.
    assert moves["time_s"]["mean"] < moves["ideal_s"] < stays["time_s"]["mean"]
    assert moves["breakdown"]["degraded_s"] < 0.0
    assert sum(moves["breakdown"].values()) == pytest.approx(moves["time_s"]["mean"])
