"""PredictionService: what a question says beyond its rows, and what an answer holds."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from questions import Asked
from serving import inline, one_worker_phases, workers

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.objective import BatchBounds
from nodewise.hosting.registry import load_registry
from nodewise.ports.limits import Limits
from nodewise_protos.v1 import configuration_pb2, objective_pb2, options_pb2, prediction_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

FASTEST = objective_pb2.Objective(highest_throughput=objective_pb2.HighestThroughput())
FEW = workers(1, 2, 4, 8)
CONTENT = ("step_seconds", "steps_per_second", "nodes", "workers", "extrapolation_ratios")
EURO = "EUR"
NEAR = objective_pb2.Offer(name="near", price_per_node_hour=1.0, currency=EURO)
FAR = objective_pb2.Offer(name="far", price_per_node_hour=0.5, currency=EURO, start_up_seconds=600.0)
WORK = objective_pb2.Work(samples=1e5)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def known_batch(*counts: int, **columns: Any) -> configuration_pb2.Configurations:
    """Workers of 32 samples each."""
    return configuration_pb2.Configurations(workers=counts, batch_per_worker_samples=[32], **columns)


def options(*columns: Any, **model: Any) -> options_pb2.PredictOptions:
    return options_pb2.PredictOptions(model=options_pb2.ModelOptions(**model), columns=columns)


def refused(asked: Asked, reason: Reason = Reason.INVALID_FIELD, **request: Any) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        asked.predict(**request)
    assert caught.value.reason == reason
    return caught.value


def fields(error: NodewiseError) -> list[str]:
    return [violation.field for violation in error.violations]


def held(predictions: prediction_pb2.Predictions) -> set[str]:
    return {descriptor.name for descriptor, _ in predictions.ListFields()}


# --- what is recommended where nothing is said


def test_a_question_that_says_nothing_gets_the_knee_recommended(asked: Asked) -> None:
    found = asked.predict(configurations=FEW).recommendation
    assert found.rule == objective_pb2.OBJECTIVE_RULE_KNEE
    assert (found.row, found.workers, found.keeps_current) == (1, 2, False)
    assert "steps/s each" in found.why
    assert not found.HasField("samples_per_second")
    assert asked.predict(configurations=FEW, objective=objective_pb2.Objective()).recommendation == found
    (of_batch,) = asked.batch(jobs=[pb.BatchJob(profile=inline())], configurations=FEW).outcomes
    assert of_batch.recommendation == found


def test_a_known_batch_is_told_with_the_recommendation(asked: Asked) -> None:
    answer = asked.predict(configurations=known_batch(1, 4), work=WORK)
    found = answer.recommendation
    assert found.samples_per_second == pytest.approx(answer.predictions.samples_per_second[1])
    assert found.finish_seconds == pytest.approx(1e5 / found.samples_per_second)
    assert not found.HasField("cost")


# --- columns


def test_columns_are_a_closed_set_unless_all_are_asked_for(asked: Asked) -> None:
    usual = held(asked.predict(configurations=known_batch(1, 2)).predictions)
    everything = held(
        asked.predict(configurations=known_batch(1, 2), options=options(options_pb2.PREDICTION_COLUMN_ALL)).predictions
    )
    core = held(
        asked.predict(
            configurations=known_batch(1, 2), options=options(options_pb2.PREDICTION_COLUMN_THROUGHPUT)
        ).predictions
    )
    assert core == {"rows_count", "samples_per_second", *CONTENT}
    assert usual - core >= {"lower_steps_per_second", "breakdown_seconds", "bottleneck_indexes", "utilization"}
    assert everything - usual == {"global_batch_samples", "batch_per_worker_samples", "accumulation_steps"}


def test_rows_that_are_not_answered_hold_zero(asked: Asked) -> None:
    mixed = configuration_pb2.Configurations(workers=[2, 2], zero_stages=[0, 3])
    predictions = asked.predict(configurations=mixed).predictions
    assert list(predictions.statuses) == [prediction_pb2.ROW_STATUS_ANSWERED, prediction_pb2.ROW_STATUS_REFUSED]
    assert predictions.bottleneck_indexes[1] == 0
    assert predictions.step_seconds[1] == 0.0
    (refusal,) = predictions.refusals
    assert list(refusal.rows) == [1]
    assert refusal.problem.reason == "UNSUPPORTED_CONFIGURATION"
    assert "zero_stage" in refusal.problem.message


# --- absence


@pytest.mark.parametrize(
    ("field", "request_parts"),
    [
        ("options.model.interval_coverage", {"options": options(interval_coverage=0.0)}),
        ("options.model.parameters['alpha']", {"options": options(parameters={"alpha": 1.0})}),
        ("options.simulated_steps_count", {"options": options_pb2.PredictOptions(simulated_steps_count=0)}),
        ("objective.confidence", {"objective": objective_pb2.Objective(confidence=0.0)}),
        ("objective.knee.share", {"objective": objective_pb2.Objective(knee=objective_pb2.Knee(share=0.0))}),
        ("work.samples", {"work": objective_pb2.Work(samples=0.0)}),
        ("work.samples", {"work": objective_pb2.Work(samples=1e300)}),
        ("offers[0].price_per_node_hour", {"offers": [objective_pb2.Offer(price_per_node_hour=1e300)]}),
        (
            "efficiency",
            {"batch_bounds": objective_pb2.BatchBounds(min_global_batch_samples=1, max_global_batch_samples=2)},
        ),
        ("current.row", {"current": objective_pb2.CurrentConfiguration(row=4)}),
        (
            "profile.minimum_revision",
            {"profile": profile_pb2.ProfileSource(content=one_worker_phases(), minimum_revision=1)},
        ),
    ],
)
def test_a_stated_value_that_is_none_is_refused_by_name(
    asked: Asked, field: str, request_parts: dict[str, Any]
) -> None:
    assert field in fields(refused(asked, **({"configurations": FEW} | request_parts)))


def test_whole_numbers_are_asked_of_batches(asked: Asked) -> None:
    half = configuration_pb2.Configurations(workers=[1, 2], batch_per_worker_samples=[32.0, 0.5])
    assert fields(refused(asked, configurations=half)) == ["configurations.batch_per_worker_samples[1]"]
    settings = configuration_pb2.ConfigurationSettings(global_batch_samples=2.5, zero_stage=0)
    part = configuration_pb2.ConfigurationRange(
        workers=configuration_pb2.CountRange(first=1, last=2, step=0), settings=settings
    )
    assert fields(refused(asked, ranges=[part])) == [
        "ranges[0].workers.step",
        "ranges[0].settings.global_batch_samples",
    ]


def test_settings_of_a_range_are_those_of_rows(asked: Asked) -> None:
    settings = configuration_pb2.ConfigurationSettings(
        batch_per_worker_samples=32, sync_mode=configuration_pb2.SYNC_MODE_ASYNC, parameter_servers=1
    )
    part = configuration_pb2.ConfigurationRange(
        workers=configuration_pb2.CountRange(first=1, last=4, powers_of_two=True), settings=settings
    )
    rows = known_batch(1, 2, 4, sync_modes=[configuration_pb2.SYNC_MODE_ASYNC], parameter_servers=[1])
    assert asked.predict(ranges=[part]).predictions == asked.predict(configurations=rows).predictions


def test_an_estimator_is_asked_for_by_version(asked: Asked) -> None:
    loaded = {each.plugin.name: each.plugin for each in estimators(asked)}
    version = loaded["queueing"].version
    answer = asked.predict(configurations=FEW, options=options(estimator="queueing", estimator_version=version))
    assert (answer.basis.estimator, answer.basis.estimator_version) == ("queueing", version)
    wrong = options(estimator="queueing", estimator_version="0.0")
    assert (
        refused(asked, Reason.ESTIMATOR_NOT_FOUND, configurations=FEW, options=wrong).metadata["available"] == version
    )


# --- offers


def test_rows_name_their_offers_and_pay_for_the_start(asked: Asked) -> None:
    rows = known_batch(2, 2, offer_names=["near", "far"], offer_indexes=[0, 1])
    answer = asked.predict(configurations=rows, offers=[NEAR, FAR], work=WORK)
    near_s, far_s = answer.predictions.finish_seconds
    assert far_s == pytest.approx(near_s + 600.0)
    held_nodes = 2 + 1  # the server's as well
    assert answer.predictions.costs == pytest.approx([near_s * held_nodes / 3600, far_s * held_nodes * 0.5 / 3600])
    cheapest = objective_pb2.Objective(least_cost=objective_pb2.LeastCost())
    found = asked.predict(configurations=rows, offers=[NEAR, FAR], work=WORK, objective=cheapest).recommendation
    assert (found.row, found.offer_name) == (1, "far")
    assert found.cost == pytest.approx(answer.predictions.costs[1])


def test_a_row_that_names_no_offer_has_that_of_its_device(asked: Asked) -> None:
    of_device = objective_pb2.Offer(name="v100", device_name="V100", price_per_node_hour=4.0, currency=EURO)
    rows = known_batch(2, 2, device_names=["V100", "K80"], device_indexes=[0, 1])
    answer = asked.predict(configurations=rows, offers=[of_device, NEAR], work=WORK)
    assert answer.predictions.costs[0] == pytest.approx(4.0 * answer.predictions.costs[1])
    assert answer.recommendation.offer_name == "v100"
    assert answer.recommendation.device_name == "V100"


@pytest.mark.parametrize(
    ("offers", "names", "field", "words"),
    [
        ([NEAR, FAR], (), "offers", "2 of them"),
        ([objective_pb2.Offer(device_name="T4")], (), "offers", "none is of device"),
        ([NEAR], ("nearer",), "configurations.offer_names[0]", "'nearer'"),
        ([NEAR, NEAR], (), "offers[1].name", "offers[0] has this name too"),
        ([NEAR, objective_pb2.Offer(name="x", currency="USD")], (), "offers.currency", "EUR, USD"),
        ([objective_pb2.Offer(price_per_node_hour=-1.0)], (), "offers[0].price_per_node_hour", "at least 0"),
    ],
)
def test_offers_that_do_not_fit_are_refused(
    asked: Asked, offers: list[objective_pb2.Offer], names: tuple[str, ...], field: str, words: str
) -> None:
    with pytest.raises(NodewiseError) as caught:
        asked.predict(configurations=known_batch(1, 2, offer_names=names), offers=offers, work=WORK)
    (violation,) = caught.value.violations
    assert violation.field == field
    assert words in violation.description


def test_jobs_of_a_batch_that_rest_on_the_same_share_a_basis(asked: Asked) -> None:
    jobs = [pb.BatchJob(profile=inline(), configurations=workers(*counts)) for counts in ((1, 2), (4,), (8, 16))]
    reply = asked.batch(jobs=jobs)
    assert len(reply.bases) == 1
    assert [outcome.basis_index for outcome in reply.outcomes] == [0, 0, 0]


def test_offers_of_a_batch_are_those_of_its_jobs(asked: Asked) -> None:
    named = known_batch(2, offer_names=["far"])
    jobs = [pb.BatchJob(profile=inline(), work=WORK), pb.BatchJob(profile=inline(), work=WORK, offers=[NEAR])]
    reply = asked.batch(jobs=jobs, configurations=named, offers=[NEAR, FAR])
    assert reply.outcomes[0].recommendation.offer_name == "far"
    assert reply.outcomes[1].problem.reason == "INVALID_FIELD"
    assert reply.outcomes[1].problem.violations[0].field == "jobs[1].configurations.offer_names[0]"
    assert not reply.outcomes[1].HasField("basis_index")


# --- the current configuration


def moved(
    asked: Asked, restart_s: float, payback_s: float | None = None, **request: Any
) -> objective_pb2.Recommendation:
    current = objective_pb2.CurrentConfiguration(row=0, restart_cost_seconds=restart_s, payback_seconds=payback_s)
    return asked.predict(configurations=known_batch(1, 4), current=current, **request).recommendation


@pytest.mark.parametrize("rule", ["highest_throughput", "knee"])
def test_a_move_pays_where_more_is_done_within_the_window(asked: Asked, rule: str) -> None:
    asks: dict[str, Any] = {rule: {}}
    objective = objective_pb2.Objective(**asks)
    slow, fast = asked.predict(configurations=known_batch(1, 4)).predictions.steps_per_second
    window_s = 1000.0
    even_s = window_s * (1.0 - slow / fast)
    assert moved(asked, 0.99 * even_s, window_s, objective=objective).row == 1
    stayed = moved(asked, 1.01 * even_s, window_s, objective=objective)
    assert (stayed.row, stayed.keeps_current) == (0, True)
    assert "1,000 s" in stayed.why


def test_without_a_window_the_work_that_is_left_is_one_and_else_an_hour(asked: Asked) -> None:
    slow, fast = asked.predict(configurations=known_batch(1, 4)).predictions.steps_per_second
    even_s = 3600.0 * (1.0 - slow / fast)
    assert [moved(asked, share * even_s).keeps_current for share in (0.99, 1.01)] == [False, True]
    left = objective_pb2.Work(samples=32e3)
    work_s = 1000.0 / slow
    even_s = work_s * (1.0 - slow / fast)
    assert [moved(asked, share * even_s, work=left).keeps_current for share in (0.99, 1.01)] == [False, True]


def test_rules_of_time_weigh_the_restart_as_time(asked: Asked) -> None:
    fastest = objective_pb2.Objective(least_time=objective_pb2.LeastTime())
    here_s, there_s = asked.predict(configurations=known_batch(1, 4), work=WORK).predictions.finish_seconds
    gain_s = here_s - there_s
    found = moved(asked, 0.99 * gain_s, work=WORK, objective=fastest)
    assert (found.row, found.keeps_current) == (1, False)
    assert found.finish_seconds == pytest.approx(there_s + 0.99 * gain_s)
    assert moved(asked, 1.01 * gain_s, work=WORK, objective=fastest).keeps_current


def test_a_job_moves_where_its_row_misses_the_deadline(asked: Asked) -> None:
    here_s, there_s = asked.predict(configurations=known_batch(1, 4), work=WORK).predictions.finish_seconds
    deadline = objective_pb2.FewestDevices(deadline_seconds=(here_s + there_s) / 2)
    found = moved(asked, 1.0, work=WORK, objective=objective_pb2.Objective(fewest_devices=deadline))
    assert (found.row, found.keeps_current) == (1, False)


# --- goodput


SCALE = objective_pb2.StatisticalEfficiency(gradient_noise_scale_samples=200.0, initial_batch_samples=32.0)
GOODPUT = options_pb2.PREDICTION_COLUMN_GOODPUT


def test_goodput_is_throughput_by_what_a_sample_is_worth_at_its_batch(asked: Asked) -> None:
    answer = asked.predict(
        configurations=known_batch(1, 2, 4), objective=FASTEST, efficiency=SCALE, options=options(GOODPUT)
    )
    found = answer.predictions
    assert list(found.global_batch_samples) == [32.0, 64.0, 128.0]
    worth = 232.0 / (200.0 + np.array(found.global_batch_samples))
    assert found.goodput_samples_per_second == pytest.approx(np.array(found.samples_per_second) * worth)
    assert "goodput" in answer.recommendation.why
    assert answer.recommendation.row == int(np.argmax(found.goodput_samples_per_second))


def test_the_batch_of_best_goodput_is_chosen_in_each_row(asked: Asked) -> None:
    mode: dict[str, Any] = {"sync_modes": [configuration_pb2.SYNC_MODE_SYNC], "parameter_servers": [1]}
    bounds = objective_pb2.BatchBounds(
        min_global_batch_samples=32, max_global_batch_samples=512, max_batch_per_worker_samples=64
    )
    rows = configuration_pb2.Configurations(workers=[1, 2, 4], global_batch_samples=[0, 96, 0], **mode)
    found = asked.predict(
        configurations=rows, efficiency=SCALE, batch_bounds=bounds, options=options(options_pb2.PREDICTION_COLUMN_ALL)
    ).predictions
    assert found.rows_count == 3
    assert found.global_batch_samples[1] == 96
    for row, count in ((0, 1), (2, 4)):
        batch = found.global_batch_samples[row]
        each, steps = found.batch_per_worker_samples[row], found.accumulation_steps[row]
        assert 32 <= batch <= 512
        assert each <= 64
        assert count * each * steps >= batch
        assert steps == ceil(batch / count / 64)
        series = BatchBounds(least=32, most=512).candidates
        stated = configuration_pb2.Configurations(
            workers=[count],
            global_batch_samples=series,
            accumulation_steps=[ceil(other / count / 64) for other in series],
            **mode,
        )
        beside = asked.predict(configurations=stated, efficiency=SCALE, options=options(GOODPUT)).predictions
        assert found.goodput_samples_per_second[row] == pytest.approx(max(beside.goodput_samples_per_second))


def test_batches_to_choose_from_are_whole_and_both_bounds_among_them() -> None:
    wide = BatchBounds(least=32, most=1 << 20).candidates
    assert (wide[0], wide[-1], len(wide)) == (32, 1 << 20, 32)
    assert BatchBounds(least=7, most=7).candidates == (7,)
    assert BatchBounds(least=3, most=6).candidates == (3, 4, 5, 6)


def test_rows_times_batches_count_against_the_cap() -> None:
    asked = Asked(limits=Limits(rows_per_call=64))
    bounds = objective_pb2.BatchBounds(min_global_batch_samples=8, max_global_batch_samples=1024)
    whole = {"efficiency": SCALE, "batch_bounds": bounds, "profile": inline()}
    error = refused(asked, Reason.LIMIT_EXCEEDED, configurations=workers(1, 2, 4), **whole)
    assert (error.metadata["limit"], error.metadata["found"]) == ("rows_per_call", "96")
    narrow = objective_pb2.BatchBounds(min_global_batch_samples=8, max_global_batch_samples=4)
    wrong = refused(asked, configurations=workers(1), efficiency=SCALE, batch_bounds=narrow)
    assert fields(wrong) == ["batch_bounds.max_global_batch_samples"]
    small = objective_pb2.BatchBounds(min_global_batch_samples=1, max_global_batch_samples=1)
    assert "replicas" in refused(asked, configurations=workers(2), efficiency=SCALE, batch_bounds=small).message


# --- digests


def test_an_answer_that_still_holds_is_not_given_again(asked: Asked) -> None:
    first = asked.predict(configurations=FEW)
    again = asked.predict(configurations=FEW, if_none_match=first.basis.digest)
    assert again.unchanged
    assert again.basis == first.basis
    assert not again.HasField("predictions")
    other = asked.predict(
        configurations=FEW, profile=inline(one_worker_phases(compute_s=1.0)), if_none_match=first.basis.digest
    )
    assert not other.unchanged
    assert other.predictions.rows_count == 4


def test_digests_tell_what_answers_rest_on_and_not_the_question(asked: Asked) -> None:
    def digest(**request: Any) -> str:
        return asked.predict(**({"configurations": FEW} | request)).basis.digest

    assert digest() == digest(configurations=workers(3)) == digest(work=WORK, configurations=known_batch(4))
    assert len({digest(), digest(options=options(seed=1)), digest(options=options(interval_coverage=0.5))}) == 3


def test_the_generation_tells_which_plugins_answered(asked: Asked) -> None:
    first = asked.predict(configurations=FEW).basis.generation
    assert first
    assert first == asked.predict(configurations=workers(3), options=options(seed=1)).basis.generation
    others = replace(load_registry(safe_mode=True), policies={})
    assert Asked(others).predict(configurations=FEW).basis.generation not in ("", first)


def test_a_job_of_a_batch_that_is_unchanged_has_no_rows(asked: Asked) -> None:
    digest = asked.predict(configurations=FEW).basis.digest
    jobs = [pb.BatchJob(profile=inline(), if_none_match=digest), pb.BatchJob(profile=inline(), if_none_match="other")]
    reply = asked.batch(jobs=jobs, configurations=FEW)
    assert [outcome.unchanged for outcome in reply.outcomes] == [True, False]
    assert list(reply.row_offsets) == [0, 0, 4]
    assert [outcome.basis_index for outcome in reply.outcomes] == [0, 0]
    assert reply.predictions.rows_count == 4


# --- streams


def test_a_stream_answers_each_question_under_its_id(asked: Asked) -> None:
    predict = pb.PredictRequest(profile=inline(), configurations=FEW)
    batch = pb.BatchPredictRequest(jobs=[pb.BatchJob(profile=inline())], configurations=FEW)
    replies = asked.stream(
        pb.StreamPredictRequest(question_id="a", predict=predict),
        pb.StreamPredictRequest(question_id="b", predict=pb.PredictRequest(configurations=FEW)),
        pb.StreamPredictRequest(question_id="c", batch=batch),
        pb.StreamPredictRequest(question_id="d"),
    )
    assert [reply.question_id for reply in replies] == ["a", "b", "c", "d"]
    assert replies[0].predict == asked.predict(configurations=FEW)
    assert replies[1].problem.reason == "INVALID_FIELD"
    assert replies[1].problem.violations[0].field == "profile"
    assert replies[2].batch.predictions == replies[0].predict.predictions
    assert replies[3].problem.violations[0].field == "question"


# --- lists


def estimators(asked: Asked, **request: Any) -> list[pb.Estimator]:
    return list(asked.listed("list_estimators", pb.ListEstimatorsRequest(**request)).estimators)


def test_auto_is_an_estimator_among_the_others(asked: Asked) -> None:
    names = [each.plugin.name for each in estimators(asked)]
    assert names == sorted(names)
    assert "auto" in names
    first = asked.listed("list_estimators", pb.ListEstimatorsRequest(page_size=1))
    rest = asked.listed("list_estimators", pb.ListEstimatorsRequest(page_token=first.next_page_token))
    assert [each.plugin.name for each in (*first.estimators, *rest.estimators)] == names
    assert not rest.next_page_token


def test_plugins_of_every_kind_are_listed_by_kind(asked: Asked) -> None:
    everything = asked.listed("list_plugins", pb.ListPluginsRequest()).plugins
    kinds = [each.kind for each in everything]
    assert kinds == sorted(kinds)
    assert set(kinds) == {1, 2, 3, 4, 5}
    policies = asked.listed("list_plugins", pb.ListPluginsRequest(kind=2)).plugins
    assert list(policies) == [each for each in everything if each.kind == 2]
    with_bounds = [parameter for each in policies for parameter in each.parameters]
    assert with_bounds
    unknown: Any = 9
    with pytest.raises(NodewiseError, match="kind"):
        asked.listed("list_plugins", pb.ListPluginsRequest(kind=unknown))
    with pytest.raises(NodewiseError, match="page_size"):
        asked.listed("list_plugins", pb.ListPluginsRequest(page_size=0))


def test_devices_are_listed_with_their_names_and_facts(asked: Asked) -> None:
    reply = asked.listed("list_devices", pb.ListDevicesRequest(page_size=1000))
    found = {device.name: device for device in reply.devices}
    assert list(found) == sorted(found)
    assert "Tesla V100" in found["V100"].aliases
    assert found["V100"].intra_node_link
    assert {fact.name: fact.value for fact in found["V100"].facts}["memory_bytes"] == 16e9
    assert reply.catalog_digest == asked.predict(configurations=FEW).basis.catalog_digest
