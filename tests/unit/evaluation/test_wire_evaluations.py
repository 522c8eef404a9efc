"""Tables off the wire, with the path of whatever is wrong; scores onto it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from measurement_tables import Proportional, Row, registry_of, table_of

from nodewise.domain.configurations import SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.profile import UNKNOWN
from nodewise.domain.workload import Network, Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.evaluation.backtest import run_backtest
from nodewise.evaluation.results import BacktestResult
from nodewise.mapper.configurations import write_configurations
from nodewise.ports.limits import Limits
from nodewise.rpc.evaluations import read_estimators, read_table, write_result
from nodewise_protos.v1 import profile_pb2, workload_pb2
from nodewise_protos.v1beta1 import evaluation_service_pb2 as pb
from nodewise_values import Metrics

LIMITS = Limits()
ROWS = [
    Row(job="α / one", workers=1, steps_per_s=2.0, train=True, batch=8, phases_s=(0.1, 0.2, 0.3, 0.4)),
    Row(job="two", workers=2, steps_per_s=0.0, device="P100", sync=SyncMode.ASYNC, servers=1),
    Row(
        job="α / one",
        workers=4,
        steps_per_s=3.0,
        nodes=2,
        placement=(3, 1),
        exposed_sync_s=0.5,
        measured_at_s=9.0,
        steps=70,
        step_variation=0.25,
    ),
]


def message_of(table: MeasurementTable) -> pb.MeasurementTable:
    message = pb.MeasurementTable(
        job_names=table.jobs,
        job_indexes=table.job_index.tolist(),
        configurations=write_configurations(table.configurations),
        steps_per_second=table.steps_per_s.tolist(),
        train=table.train.tolist(),
    )
    if table.measured_at_s.any():
        message.measured_at_unix_seconds.extend(table.measured_at_s.tolist())
    if (table.exposed_sync_s >= 0).any():
        message.exposed_sync_seconds.extend(np.maximum(table.exposed_sync_s, 0.0).tolist())
        message.exposed_sync_known.extend((table.exposed_sync_s >= 0).tolist())
    if table.steps.any():
        message.steps_counts.extend(table.steps.tolist())
    if (table.step_variation >= 0).any():
        message.step_variation.extend(np.maximum(table.step_variation, 0.0).tolist())
        message.step_variation_known.extend((table.step_variation >= 0).tolist())
    if len(table.phase_rows):
        timings = table.phase_timings
        message.phase_rows.extend(table.phase_rows.tolist())
        message.phase_timings.CopyFrom(
            profile_pb2.PhaseTimings(
                download_seconds=timings.download_s.tolist(),
                compute_seconds=timings.compute_s.tolist(),
                upload_seconds=timings.upload_s.tolist(),
                update_seconds=timings.update_s.tolist(),
            )
        )
    return message


def valid() -> pb.MeasurementTable:
    return message_of(table_of(ROWS))


def test_a_table_comes_back_as_it_was_sent() -> None:
    sent = table_of(ROWS)
    message = valid()
    message.workloads.extend([workload_pb2.Workload(parameter_bytes=1000), workload_pb2.Workload()])
    message.networks.extend([workload_pb2.Network(), workload_pb2.Network(half_duplex=True)])
    found = read_table(message, "table", LIMITS)
    assert found.jobs == ("α / one", "two")
    assert found.workloads == (Workload(parameter_bytes=1000), Workload())
    assert found.networks == (Network(), Network(half_duplex=True))
    for name in (
        "job_index",
        "steps_per_s",
        "train",
        "measured_at_s",
        "exposed_sync_s",
        "step_variation",
        "steps",
        "phase_rows",
    ):
        np.testing.assert_array_equal(getattr(found, name), getattr(sent, name))
    for name in ("nodes", "workers", "parameter_servers", "sync_mode", "batch_per_worker"):
        np.testing.assert_array_equal(getattr(found.configurations, name), getattr(sent.configurations, name))
    assert found.configurations.device_names() == ["V100", "P100", "V100"]
    assert found.configurations.placement_of(2) == (3, 1)
    assert found.phase_timings.update_s.tolist() == [0.4]
    assert found.phase_timings.configurations.workers.tolist() == [1]


def test_what_is_not_sent_is_not_known() -> None:
    found = read_table(message_of(table_of([Row(), Row(workers=2)])), "table", LIMITS)
    assert found.measured_at_s.tolist() == [0.0, 0.0]
    assert found.exposed_sync_s.tolist() == [UNKNOWN, UNKNOWN]
    assert (len(found.phase_rows), len(found.phase_timings)) == (0, 0)
    assert (found.workloads, found.networks) == ((Workload(),), (Network(),))


def test_one_configuration_holds_for_all_rows() -> None:
    message = message_of(table_of([Row(), Row()]))
    message.configurations.CopyFrom(write_configurations(table_of([Row(workers=3)]).configurations))
    assert read_table(message, "table", LIMITS).configurations.workers.tolist() == [3, 3]


@pytest.mark.parametrize("name", ["a", "ResNet-15/K80/1ps", "größe 9 €", "  x", "x" * 256, "💡"])
def test_any_printable_text_names_a_job(name: str) -> None:
    message = valid()
    message.job_names[0] = name
    assert read_table(message, "table", LIMITS).jobs[0] == name


Change = Callable[[pb.MeasurementTable], object]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param(lambda m: m.Clear(), "table.job_indexes", id="empty"),
        pytest.param(lambda m: m.job_names.__setitem__(1, ""), "table.job_names[1]", id="no name"),
        pytest.param(lambda m: m.job_names.__setitem__(1, "a\tb"), "table.job_names[1]", id="tab in a name"),
        pytest.param(lambda m: m.job_names.__setitem__(1, "x" * 257), "table.job_names[1]", id="long name"),
        pytest.param(lambda m: m.job_names.__setitem__(1, m.job_names[0]), "table.job_names[1]", id="name twice"),
        pytest.param(lambda m: m.ClearField("job_names"), "table.job_names", id="no names"),
        pytest.param(lambda m: m.job_indexes.__setitem__(1, 2), "table.job_indexes[1]", id="job out of range"),
        pytest.param(lambda m: m.job_indexes.__setitem__(0, -1), "table.job_indexes[0]", id="negative job"),
        pytest.param(lambda m: m.ClearField("configurations"), "table.configurations", id="no configurations"),
        pytest.param(lambda m: m.job_indexes.append(0), "table.configurations", id="too few configurations"),
        pytest.param(
            lambda m: m.configurations.workers.__setitem__(0, 0), "table.configurations.workers", id="no workers"
        ),
        pytest.param(
            lambda m: m.configurations.ClearField("sync_modes"), "table.configurations.sync_modes", id="no mode"
        ),
        pytest.param(lambda m: m.ClearField("steps_per_second"), "table.steps_per_second", id="no rates"),
        pytest.param(lambda m: m.steps_per_second.pop(), "table.steps_per_second", id="too few rates"),
        *(
            pytest.param(
                lambda m, value=value: m.steps_per_second.__setitem__(2, value),
                "table.steps_per_second[2]",
                id=str(value),
            )
            for value in (math.nan, math.inf, -math.inf, -1.0, 1e10)
        ),
        pytest.param(lambda m: m.train.pop(), "table.train", id="train too short"),
        pytest.param(lambda m: m.ClearField("train"), "table.train", id="no train"),
        pytest.param(lambda m: m.measured_at_unix_seconds.pop(), "table.measured_at_unix_seconds", id="too few times"),
        pytest.param(
            lambda m: m.measured_at_unix_seconds.__setitem__(1, -1.0), "table.measured_at_unix_seconds[1]", id="old"
        ),
        pytest.param(
            lambda m: m.exposed_sync_seconds.__setitem__(1, math.nan), "table.exposed_sync_seconds[1]", id="exposed NaN"
        ),
        pytest.param(
            lambda m: m.exposed_sync_seconds.__setitem__(1, -1.0), "table.exposed_sync_seconds[1]", id="negative sync"
        ),
        pytest.param(
            lambda m: m.step_variation.__setitem__(0, -1.0), "table.step_variation[0]", id="negative variation"
        ),
        pytest.param(lambda m: m.phase_rows.__setitem__(0, 3), "table.phase_rows[0]", id="phase row out of range"),
        pytest.param(lambda m: m.phase_rows.__setitem__(0, -1), "table.phase_rows[0]", id="negative phase row"),
        pytest.param(lambda m: m.phase_rows.append(0), "table.phase_rows[1]", id="phase row twice"),
        pytest.param(lambda m: m.ClearField("phase_rows"), "table.phase_rows", id="phases of no row"),
        pytest.param(
            lambda m: m.ClearField("phase_timings"), "table.phase_timings.download_seconds", id="rows without phases"
        ),
        pytest.param(
            lambda m: m.phase_timings.compute_seconds.__setitem__(0, math.inf),
            "table.phase_timings.compute_seconds[0]",
            id="endless compute",
        ),
        pytest.param(
            lambda m: m.phase_timings.configurations.workers.append(1),
            "table.phase_timings.configurations",
            id="phases with configurations",
        ),
        pytest.param(lambda m: m.workloads.add(), "table.workloads", id="too few workloads"),
        pytest.param(
            lambda m: (m.networks.add(), m.networks.add(link_bytes_per_second=-1)),
            "table.networks[1].link_bytes_per_second",
            id="negative link",
        ),
    ],
)
def test_what_is_wrong_is_named(change: Change, field: str) -> None:
    message = valid()
    change(message)
    with pytest.raises(NodewiseError) as caught:
        read_table(message, "table", LIMITS)
    assert caught.value.reason == Reason.INVALID_FIELD
    assert field in [violation.field for violation in caught.value.violations]


def test_contradictions_are_told_apart() -> None:
    message = valid()
    message.phase_timings.hidden_seconds.append(5.0)
    with pytest.raises(NodewiseError) as caught:
        read_table(message, "calibration", LIMITS)
    assert caught.value.reason == Reason.CONTRADICTORY_FACTS
    assert caught.value.violations[0].field == "calibration.phase_timings.hidden_seconds[0]"


@pytest.mark.parametrize("column", ["job_indexes", "job_names", "phase_rows"])
def test_a_table_has_a_stated_cap(column: str) -> None:
    message = valid()
    getattr(message, column).extend(["x"] * 3 if column == "job_names" else [0] * 3)
    with pytest.raises(NodewiseError) as caught:
        read_table(message, "table", replace(LIMITS, backtest_rows=3))
    assert caught.value.reason == Reason.LIMIT_EXCEEDED
    assert caught.value.metadata["limit"] == "backtest_rows"
    assert read_table(valid(), "table", replace(LIMITS, backtest_rows=3)).jobs


def test_phases_are_capped_as_the_table_is() -> None:
    assert len(read_table(valid(), "table", replace(LIMITS, rows_per_batch=1)).phase_timings) == 1


def test_estimators_are_read_once_each() -> None:
    assert read_estimators(["auto", "b", "auto"]) == ("auto", "b")
    with pytest.raises(NodewiseError) as caught:
        read_estimators(["x" * 64])
    assert caught.value.violations[0].field == "estimators[0]"


def result_of(rows: list[Row], estimator: Proportional) -> BacktestResult:
    return run_backtest(Answers(registry_of(estimator)), table_of(rows), estimators=["all"])


def test_scores_are_written_with_absence_for_what_is_undefined() -> None:
    result = result_of(ROWS, Proportional(rate=1.0, most=3))
    (sent,) = result.evaluations
    message = write_result(result)
    (found,) = message.evaluations
    assert (found.estimator, found.estimator_version) == ("proportional", "1.2")
    assert [group.name for group in found.by_job] == ["α / one", "two"]
    assert [group.name for group in found.by_sync] == ["async", "allreduce"]
    assert found.overall.rows_count == 0
    assert found.overall.refused_count == 1
    assert found.overall.HasField("fit_seconds")
    assert not found.overall.HasField("mape")
    assert list(found.predictions.rows) == [1, 2]
    assert list(found.predictions.statuses) == [1, 2]
    assert list(found.predictions.refusal_indexes) == [0, 1]
    assert list(found.predictions.refusal_reasons) == ["", "UNSUPPORTED_CONFIGURATION: at most 3 workers"]
    assert list(found.predictions.steps_per_second) == sent.predictions.steps_per_s.tolist()
    assert message.prior == ""


def test_a_table_of_answers_alone_needs_no_reasons() -> None:
    found = write_result(result_of(ROWS, Proportional(rate=1.0))).evaluations[0].predictions
    assert (list(found.refusal_reasons), list(found.refusal_indexes)) == ([], [])


def test_every_metric_is_written() -> None:
    named = {field.name: float(number) for number, field in enumerate(fields(Metrics), start=1)}
    whole = {"rows_count": 1, "refused_count": 2, "groups_count": 3}
    result = result_of(ROWS, Proportional(rate=1.0))
    metrics = Metrics(**{**named, **whole})  # type: ignore[arg-type]  # whole numbers are among them
    evaluation = replace(result.evaluations[0], overall=metrics)
    found = write_result(replace(result, evaluations=(evaluation,))).evaluations[0].overall
    assert len(found.ListFields()) == len(asdict(metrics)) == len(pb.Metrics.DESCRIPTOR.fields)
    assert (found.rows_count, found.refused_count, found.groups_count) == (1, 2, 3)
    assert (found.mape, found.within5, found.fit_seconds) == (named["mape"], named["within5"], named["fit_seconds"])


def test_long_reasons_are_shortened() -> None:
    result = result_of([Row(device="x" * 5000)], Proportional(refuses="x" * 5000))
    _, reason = write_result(result).evaluations[0].predictions.refusal_reasons
    assert len(reason) == 300
    assert reason.endswith("...")


@pytest.mark.long
def test_five_thousand_rows_fit_one_reply() -> None:
    rows = [Row(job=f"job {number % 500:0200d}", workers=1 + number // 500, batch=64) for number in range(5000)]
    table = table_of(rows)
    message = message_of(table)
    read = read_table(message, "table", LIMITS)
    engine = Answers(registry_of(*(Proportional(name=name, rate=1.0) for name in "abcde")))
    reply = write_result(run_backtest(engine, read, estimators=["all", "auto"]))
    assert reply.ByteSize() < LIMITS.reply_bytes
