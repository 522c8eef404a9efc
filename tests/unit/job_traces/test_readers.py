"""Readers of traces and tables, and generators."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest

from nodewise_job_traces import Curve, JobsFileError, LeftOut, generators
from nodewise_job_traces.gavel import read_gavel_table, read_gavel_trace
from nodewise_job_traces.logs import jobs_of_log
from nodewise_job_traces.philly import read_philly
from nodewise_job_traces.pollux import (
    APPLICATIONS,
    Application,
    pollux_curves,
    pollux_step_s,
    read_pollux_workload,
    read_step_times,
)
from nodewise_job_traces.table import read_curve_table, read_job_table

ONE = Curve.of({(0, 1): 1.0})

# --- Gavel

TABLE = read_gavel_table(
    io.StringIO(
        json.dumps(
            {
                "v100": {"('A', 1)": {"null": 4.0, "('B', 1)": [1, 2]}, "('B', 2)": {"null": 0.0}},
                "k80": {"('A', 1)": {"null": 1.0}, "('B', 2)": {"null": 3}},
            }
        )
    )
)
LONG = "A\tcmd\tdir\t--steps\t1\t100\t1\t2\t-1.0\t30\n"
SHORT = "B\tcmd\t--steps\t1\t50\t12.5\t2\n"


def test_both_widths_of_a_gavel_trace() -> None:
    second, first = read_gavel_trace(io.StringIO(LONG + SHORT), TABLE, ["v100", "k80"])[::-1]
    assert (first.job_id, first.arrival_s, first.samples, first.requested_devices) == ("000001", 12.5, 50, 2)
    assert first.rigid
    # 0 iterations/s = out of memory.
    assert first.curve.rates == {(1, 2): 3.0}
    assert (second.weight, second.curve.rates) == (2.0, {(0, 1): 4.0, (1, 1): 1.0})


def test_a_gavel_job_without_throughput_has_no_curve() -> None:
    (job,) = read_gavel_trace(io.StringIO(LONG.replace("A", "C")), TABLE, ["v100"])
    assert len(job.curve) == 0


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (LONG + "A\tcmd\n", "trace:2:2"),
        (LONG.replace("\t100\t", "\tmany\t"), "trace:1:total_steps"),
        (LONG.replace("\t100\t", "\t1.5\t"), "trace:1:total_steps"),
        (LONG.replace("\t30\n", "\t-3\n"), "trace:1:arrival_s"),
        (LONG.replace("\t30\n", "\tnan\n"), "trace:1:arrival_s"),
        (LONG.replace("\t2\t-1", "\t0\t-1"), "trace:1:priority"),
        (LONG.replace("A\t", "\t"), "trace:1:job_type"),
    ],
)
def test_what_is_wrong_in_a_gavel_trace(text: str, field: str) -> None:
    with pytest.raises(JobsFileError) as caught:
        read_gavel_trace(io.StringIO(text), TABLE, ["v100"])
    assert caught.value.field == field


@pytest.mark.parametrize(
    "document", ["[]", "{", '{"v100": {"A": {"null": 1}}}', '{"v100": {"(\'A\', 1)": {"null": -1}}}', '{"v100": 3}']
)
def test_what_is_no_gavel_table(document: str) -> None:
    with pytest.raises(JobsFileError):
        read_gavel_table(io.StringIO(document))


def test_pools_are_worker_types() -> None:
    with pytest.raises(JobsFileError, match="v100, k80"):
        read_gavel_trace(io.StringIO(LONG), TABLE, ["a100"])


# --- Pollux

MEASURED = """job,nodes,workers,placement,batch_per_worker,steps_per_s
a,1,1,1,4,2.0
a,1,1,,8,1.0
a,1,4,4,4,1.0
a,1,4,4,4,0.5
a,2,4,2+2,4,9.0
a,2,8,,4,0.25
a,1,2,2,4,
"""


def test_step_times_are_packed_means_interpolated() -> None:
    steps = read_step_times(io.StringIO(MEASURED))["a"]
    assert steps(1, 6) == pytest.approx(0.75)
    assert steps(1, 100) == 1.0
    assert steps(4, 4) == pytest.approx(1.5)
    assert steps(6, 4) == pytest.approx((1.5 + 4.0) / 2)
    with pytest.raises(ValueError, match="near 9"):
        steps(9, 4)


def test_gradients_accumulate_where_a_device_cannot_hold_its_part() -> None:
    application = Application(most_local=10, most_global=100)

    def step_time(devices: int, batch: int) -> float:
        return 1.0 + 0.1 * devices + 0.01 * batch

    # 60 samples: on 2 devices 30 each, in 3 parts of 10; on 6 devices one part of 10; alone at least two parts.
    assert pollux_step_s(step_time, application, 60, 2) == pytest.approx(1.3 + 2 * 1.2)
    assert pollux_step_s(step_time, application, 60, 6) == pytest.approx(1.7)
    assert pollux_step_s(step_time, application, 8, 1) == pytest.approx(2 * (1.0 + 0.1 + 0.04))


def test_a_pollux_workload() -> None:
    curves = pollux_curves({"ncf": lambda devices, batch: 0.01 * devices + 1e-6 * batch}, 8)
    text = "name,time,application,num_replicas,batch_size\nx,5,ncf,3,32768\ny,1,bert,1,384\n"
    (job,) = read_pollux_workload(io.StringIO(text), curves, only=["ncf"])
    assert (job.job_id, job.arrival_s, job.samples, job.requested_devices) == ("x", 5.0, 1552.0, 1)
    assert APPLICATIONS["ncf"].most_devices == len(job.curve) == 1


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("x,5,yolo,3,8", "workload:2:application"),
        ("x,5,ncf,3,8", "workload:2:batch_size"),
        ("x,,ncf,3,32768", "workload:2:time"),
        ("x,5,ncf,0,32768", "workload:2:num_replicas"),
        (",5,ncf,1,32768", "workload:2:name"),
    ],
)
def test_what_is_wrong_in_a_pollux_workload(line: str, field: str) -> None:
    curves = {("ncf", 32768): ONE}
    with pytest.raises(JobsFileError) as caught:
        read_pollux_workload(io.StringIO(f"name,time,application,num_replicas,batch_size\n{line}\n"), curves)
    assert caught.value.field == field


# --- Philly

PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,b
2017-10-09 07:00:55,100.0,4,400.0,a
"""


def test_philly_without_curves_is_rigid_and_takes_its_duration() -> None:
    first, second = jobs_of_log(read_philly(io.StringIO(PHILLY)), LeftOut(), pool_devices=[8, 4])
    assert (first.arrival_s, first.samples, first.requested_devices, first.queue) == (0.0, 100.0, 4, "a")
    assert first.curve.rates == {(0, 4): 1.0, (1, 4): 1.0}
    assert (second.arrival_s, second.job_id) == (60.0, "000002")


def test_philly_with_curves_does_the_work_that_takes_its_duration() -> None:
    curves = [Curve.of({(0, 1): 2.0, (0, 2): 3.0})]
    first, second = jobs_of_log(read_philly(io.StringIO(PHILLY)), LeftOut(), curves=curves, pool_devices=[8])
    assert len(first.curve) == 0
    assert second.samples == 132.0


# --- our own tables

CURVES = "curve,pool,devices,samples_per_s,predicted_samples_per_s\nc,p,1,1,2\nc,p,2,2,\nd,q,4,9,9\n"
JOBS = "job,arrival_s,samples,curve,requested_devices,rigid,stop_samples,queue\nb,9,10,d,4,1,,x\na,0,5,c,,,2,\n"


def test_tables_of_our_own() -> None:
    curves = read_curve_table(io.StringIO(CURVES), ["p", "q"])
    first, second = read_job_table(io.StringIO(JOBS), curves)
    assert (first.job_id, first.stop_samples, first.rigid, first.requested_devices) == ("a", 2.0, False, 1)
    assert first.predicted is not None
    assert first.predicted.rates == {(0, 1): 2.0}
    assert (second.rigid, second.queue, second.curve.rates) == (True, "x", {(1, 4): 9.0})


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("curve,pool,devices\n", "curves:1:samples_per_s"),
        (CURVES.replace("predicted_", "guessed_"), "curves:1:guessed_samples_per_s"),
        (CURVES.replace("d,q", "d,z"), "curves:4:pool"),
        (CURVES.replace("c,p,2", "c,p,1"), "curves:3:devices"),
        (CURVES.replace("c,p,2", "c,p,0"), "curves:3:devices"),
        (CURVES.replace("9,9", "9,9,9"), "curves:4:6"),
    ],
)
def test_what_is_wrong_in_a_table_of_curves(text: str, field: str) -> None:
    with pytest.raises(JobsFileError) as caught:
        read_curve_table(io.StringIO(text), ["p", "q"])
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("a,0", "b,0", "jobs:3:job"),
        (",c,", ",e,", "jobs:3:curve"),
        (",4,1,", ",4,2,", "jobs:2:rigid"),
        ("b,9", "b,", "jobs:2:arrival_s"),
    ],
)
def test_what_is_wrong_in_a_table_of_jobs(old: str, new: str, field: str) -> None:
    curves = read_curve_table(io.StringIO(CURVES), ["p", "q"])
    with pytest.raises(JobsFileError) as caught:
        read_job_table(io.StringIO(JOBS.replace(old, new)), curves)
    assert caught.value.field == field


# --- generators


@pytest.mark.parametrize(
    "arrivals",
    [generators.poisson(10.0), generators.diurnal(10.0, 0.9, 1_000.0), generators.bursty(10.0, 5.0)],
)
def test_arrivals_keep_their_mean_gap(arrivals: generators.Draw) -> None:
    times = list(itertools.islice(arrivals(np.random.default_rng(1)), 20_000))
    assert times == sorted(times)
    assert times[-1] / len(times) == pytest.approx(10.0, rel=0.05)


def test_days_and_bursts_vary_more_than_chance() -> None:
    def dispersion(arrivals: generators.Draw) -> float:
        times = np.array(list(itertools.islice(arrivals(np.random.default_rng(1)), 20_000)))
        counts = np.bincount((times // 100.0).astype(int))
        return float(counts.var() / counts.mean())

    assert dispersion(generators.poisson(10.0)) == pytest.approx(1.0, abs=0.1)
    assert dispersion(generators.diurnal(10.0, 0.9, 1_000.0)) > 2.0
    assert dispersion(generators.bursty(10.0, 5.0)) > 3.0


@pytest.mark.parametrize(
    ("sizes", "mean"),
    [
        (generators.constant(3.0), 3.0),
        (generators.exponential(3.0), 3.0),
        (generators.log_normal(3.0, 1.0), 3.0),
        (generators.pareto(1.0, 1.5), 3.0),
        (generators.pareto(1.0, 1.0, 10.0), np.log(10.0) / 0.9),
    ],
)
def test_sizes_have_their_mean(sizes: generators.Draw, mean: float) -> None:
    drawn = np.fromiter(itertools.islice(sizes(np.random.default_rng(2)), 200_000), dtype=float)
    assert drawn.min() > 0
    assert drawn.mean() == pytest.approx(mean, rel=0.1)


def test_generated_jobs() -> None:
    curves = [Curve.of({(0, count): float(count) for count in range(1, 5)}), Curve.of({(0, 2): 3.0})]
    jobs = list(
        generators.generate_jobs(
            generators.poisson(5.0), generators.constant(60.0), curves, jobs=50, requested=(1, 2), seed=4
        )
    )
    assert len(jobs) == 50
    assert {job.samples / job.curve.rates[0, job.requested_devices] for job in jobs} == {60.0}
    assert {(job.curve is curves[1], job.requested_devices) for job in jobs} == {(False, 1), (False, 2), (True, 2)}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: generators.poisson(0.0),
        lambda: generators.diurnal(1.0, 1.5),
        lambda: generators.bursty(1.0, 10.0, 2.0),
        lambda: generators.pareto(2.0, 1.0, 1.0),
        lambda: generators.generate_jobs(
            generators.poisson(1.0), generators.constant(1.0), [ONE], jobs=1, requested=(2,)
        ),
        lambda: generators.generate_jobs(generators.poisson(1.0), generators.constant(1.0), [], jobs=1),
    ],
)
def test_laws_that_cannot_be(wrong: object) -> None:
    with pytest.raises(JobsFileError):
        wrong()  # type: ignore[operator]


def test_curves_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="at least 1 device"):
        Curve.of({(0, 0): 1.0})
    with pytest.raises(ValueError, match="above 0"):
        Curve.of({(0, 1): -1.0})
