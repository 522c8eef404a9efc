"""`nodewise simulate`: every kind of jobs, golden keys, files, and what is wrong said in one line."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from serving import one_worker_phases
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import AppendProfileRequest, Client, ProfileContent
from nodewise_values.wire import from_message

EXAMPLES = Path(__file__).parents[2] / "examples"
SIMULATION = EXAMPLES / "simulation"
KEYS = {
    "policy", "policy_version", "jobs", "finished", "average_jct_s", "median_jct_s", "p99_jct_s", "average_waiting_s",
    "average_slowdown", "p99_slowdown", "average_finish_time_fairness", "worst_finish_time_fairness", "makespan_s",
    "utilisation", "restarts_per_job", "busy_device_s", "restart_device_s", "lost_device_s", "deadlines",
    "deadlines_missed", "decisions", "decision_s", "longest_decision_s", "wall_s", "wasted_share", "complete",
    "repetitions",
}  # fmt: skip
TRACE = (
    "ResNet-18\tpython3 main.py\tdir\t--steps\t1\t1000\t1\t1\t-1.000000\t0\n"
    "ResNet-18\tpython3 main.py\tdir\t--steps\t1\t2000\t2\t2\t-1.000000\t100.5\n"
    "Unknown\tpython3 main.py\tdir\t--steps\t1\t2000\t1\t1\t-1.000000\t200\n"
)
SHORT_TRACE = "ResNet-18\tpython3 main.py\t--steps\t1\t1000\t3.5\t1\n"
RATES = {
    "v100": {"('ResNet-18', 1)": {"null": 10.0}, "('ResNet-18', 2)": {"null": 18.0}},
    "k80": {"('ResNet-18', 1)": {"null": 2.0}, "('ResNet-18', 2)": {"null": 0.0}},
}
WORKLOAD = "name,time,application,num_replicas,batch_size\ncifar10-0,107,cifar10,2,2048\nncf-1,60,ncf,1,32768\n"
PHILLY = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.0,4,2951.0,6214e9\n"
)


class Ran:
    """A command's end."""

    def __init__(self, *arguments: str | Path) -> None:
        result = CliRunner().invoke(app, ["simulate", *(str(argument) for argument in arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        assert self.status == 0, self.err
        assert self.out.count("\n") == 1
        document: dict[str, Any] = json.loads(self.out)
        return document


@pytest.fixture
def gavel(tmp_path: Path) -> list[str | Path]:
    (tmp_path / "jobs.trace").write_text(TRACE)
    (tmp_path / "rates.json").write_text(json.dumps(RATES))
    return [tmp_path / "jobs.trace", "--throughputs", tmp_path / "rates.json", "--cluster", "v100=2,k80=1"]


def test_a_trace_of_gavel_as_the_contract_writes_the_command(gavel: list[str | Path]) -> None:
    found = Ran(*gavel, "--policy", "fifo", "--round-s", "360", "--seed", "0", "--json").document
    assert set(found) == {*KEYS, "clock", "round_s", "load", "seed", "left_out", "policies"}
    assert (found["jobs"], found["finished"]) == (3, 2)  # one has no throughput anywhere
    assert (found["clock"], found["round_s"], found["policy"]) == ("drained-rounds", 360.0, "fifo")
    assert found["makespan_s"] > 0
    assert set(found["policies"]) == {"fifo"}
    assert set(found["policies"]["fifo"]) == {*KEYS, "confidence", "runs", "estimators"}
    again = Ran(*gavel, "--policy", "fifo", "--json").document
    wall = {"wall_s", "decision_s", "longest_decision_s", "policies"}
    assert {key: value for key, value in again.items() if key not in wall} == {
        key: value for key, value in found.items() if key not in wall
    }


def test_a_trace_of_seven_columns_and_a_clock_of_ones_own(tmp_path: Path, gavel: list[str | Path]) -> None:
    (tmp_path / "short.trace").write_text(SHORT_TRACE)
    found = Ran(tmp_path / "short.trace", *gavel[1:], "--policy", "fifo", "--clock", "events", "--json").document
    assert (found["clock"], found["average_jct_s"], found["makespan_s"]) == ("events", 100.0, 100.0)


def test_a_workload_of_pollux_over_measured_steps(tmp_path: Path) -> None:
    (tmp_path / "workload.csv").write_text(WORKLOAD)
    rows = ["job,device,nodes,workers,placement,batch_per_worker,steps_per_s,split"]
    rows += [
        f"cifar10/x,T4,1,{workers},{workers},{batch},{1000 / batch / (1 + 0.1 * workers):.6f},train"
        for workers in range(1, 5)
        for batch in (128, 1024)
    ]
    (tmp_path / "steps.csv").write_text("\n".join(rows) + "\n")
    arguments: list[str | Path] = [
        tmp_path / "workload.csv", "--throughputs", tmp_path / "steps.csv", "--cluster", "t4=1x4",
        "--policy", "equal-share",
    ]  # fmt: skip
    found = Ran(*arguments, "--applications", "cifar10", "--json").document
    assert (found["jobs"], found["finished"], found["clock"], found["round_s"]) == (1, 1, "fixed-rounds", 60.0)
    refused = Ran(*arguments)
    assert refused.status == 2
    assert "workload.csv:3:batch_size" in refused.err
    two = Ran(*[("t4=4,v100=4" if each == "t4=1x4" else each) for each in arguments], "--applications", "cifar10")
    assert "cluster: must have one pool" in two.err


def test_arrivals_of_philly_are_mapped_to_jobs(tmp_path: Path) -> None:
    (tmp_path / "philly.csv").write_text(PHILLY)
    found = Ran(tmp_path / "philly.csv", "--cluster", "gpu=1x4", "--policy", "fifo", "--json").document
    assert (found["jobs"], found["finished"]) == (2, 2)
    assert found["makespan_s"] == 2951.0 + 66.0  # together they want five devices, and come 2,932 s apart
    dealt = Ran(
        tmp_path / "philly.csv", "--cluster", "t4=1x4", "--throughputs", SIMULATION / "curves.csv",
        "--policy", "equal-share", "--json",
    ).document  # fmt: skip
    assert dealt["finished"] == 2


def test_the_examples_with_confidence_and_several_policies() -> None:
    found = Ran(SIMULATION / "simulate.json", "--repetitions", "3", "--json").document
    assert set(found["policies"]) == {"fifo", "equal-share", "efficiency-capped"}
    capped = found["policies"]["efficiency-capped"]
    interval = capped["confidence"]["average_jct_s"]
    assert interval["lower"] < interval["mean"] < interval["upper"]
    assert interval["mean"] == capped["average_jct_s"]
    assert [run["seed"] for run in capped["runs"]] == [0, 1, 2]
    assert found["average_jct_s"] == found["policies"]["fifo"]["average_jct_s"]
    shown = Ran(SIMULATION / "simulate.json", "--repetitions", "2")
    assert "efficiency-capped" in shown.out
    assert "12/12" in shown.out


def test_the_timeline_and_its_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    jobs: list[str | Path] = [
        SIMULATION / "jobs.csv", "--throughputs", SIMULATION / "curves.csv", "--cluster", "t4=4x4",
        "--policy", "equal-share",
    ]  # fmt: skip
    found = Ran(*jobs, "--timeline", tmp_path / "held.csv", "--gantt", tmp_path / "held.svg", "--json").document
    with (tmp_path / "held.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert set(rows[0]) == {"seed", "job", "pool", "devices", "begin_s", "end_s"}
    busy = sum(int(row["devices"]) * (float(row["end_s"]) - float(row["begin_s"])) for row in rows)
    assert busy == pytest.approx(found["busy_device_s"])
    svg = (tmp_path / "held.svg").read_text()
    assert "<svg" in svg
    assert {">waiting<", ">1 device<", ">16 devices<"} <= {f">{text}<" for text in re.findall(r">([^<>]+)</text>", svg)}
    Ran(*jobs, "--timeline", tmp_path / "held.json", "--gantt", tmp_path / "held.html", "--json")
    assert [held["job"] for held in json.loads((tmp_path / "held.json").read_text())] == [row["job"] for row in rows]
    assert (tmp_path / "held.html").read_text().startswith("<!doctype html>")
    Ran(*jobs, "--policy", "fifo", "--gantt", tmp_path / "both.svg", "--json")
    titles = re.findall(r">([a-z-]+): 12 of 12 jobs finished", (tmp_path / "both.svg").read_text())
    assert titles == ["equal-share", "fifo"]
    Ran(*jobs, "--gantt", tmp_path / "held.png", "--json")
    assert (tmp_path / "held.png").read_bytes().startswith(b"\x89PNG")


def test_a_specification_with_profiles_lists_and_laws(tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "jobs": [
            {"job": "b", "arrival_s": 5, "samples": 640, "curve": "a1", "requested_devices": 2},
            {"job": "a", "arrival_s": 0, "samples": 640, "curve": "both", "deadline_s": 60, "queue": "q"},
        ],
        "curves": {
            "a1": {"profile": {"table": str(EXAMPLES / "testbed.csv"), "job": "a1"}, "allowed_devices": [1, 2, 4]},
            "both": {
                "samples_per_s": {"p": {"1": 10, "2": 19}},
                "profile": {"table": str(EXAMPLES / "testbed.csv"), "job": "a1"},
                "allowed_devices": [1, 2],
            },
        },
        "cluster": [{"name": "p", "device": "emulated", "nodes": 8}],
        "policy": [{"name": "fifo", "parameters": {"backfill": 1}, "label": "backfill"}],
        "quotas": {"q": 4},
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    found = Ran(tmp_path / "spec.json", "--json").document
    assert found["finished"] == 2
    assert found["policies"]["backfill"]["estimators"] == ["queueing"]
    spec["curves"].pop("a1")
    spec["curves"]["both"].pop("profile")
    for law in (
        {"law": "poisson", "mean_gap_s": 10},
        {"law": "diurnal", "mean_gap_s": 10, "swing": 0.5},
        {"law": "bursty", "mean_gap_s": 10, "mean_burst": 3},
    ):
        size = {"law": "pareto", "least": 10, "shape": 1.5, "most": 1000}
        spec["jobs"] = {"generate": {"jobs": 20, "arrivals": law, "sizes": size, "requested": [1, 2]}}
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        assert Ran(tmp_path / "spec.json", "--json").document["finished"] == 20


def test_a_policy_knows_failures_that_a_pool_states(tmp_path: Path) -> None:
    path, pool = tmp_path / "spec.json", {"name": "t4", "nodes": 8}
    spec = {
        "jobs": [{"job": "a", "arrival_s": 0, "samples": 800, "curve": "c"}],
        "curves": {"c": {"samples_per_s": {"t4": {n: n for n in range(1, 9)}}}},
        "policy": "srpt",
    }

    def average_jct_s(**stated: float) -> float:
        path.write_text(json.dumps(spec | {"cluster": [pool | stated]}))
        found: float = Ran(path, "--json").document["average_jct_s"]
        return found

    assert average_jct_s() == average_jct_s(device_hours_between_failures=1e6) == 100.0
    assert average_jct_s(device_hours_between_failures=0.2, restart_s=600) > 100.0


def test_a_server_predicts_from_profiles_that_it_stores(tmp_path: Path) -> None:
    spec = {
        "jobs": [{"job": "a", "arrival_s": 0, "samples": 640, "curve": "stored", "requested_devices": 2}],
        "curves": {"stored": {"profile": {"profileId": "team/a1"}, "allowed_devices": [1, 2]}},
        "cluster": {"V100": 2},
        "policy": "fifo",
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    with EmbeddedServer() as server:
        unknown = Ran(tmp_path / "spec.json", "--server", server.target)
        assert unknown.status == 2
        assert "PROFILE_NOT_FOUND" in unknown.err
        with Client(server.target) as client:
            client.append_profile(
                AppendProfileRequest(profile_id="team/a1", content=from_message(one_worker_phases(), ProfileContent))
            )
        found = Ran(tmp_path / "spec.json", "--server", server.target, "--json").document
    assert found["finished"] == 1
    assert found["policies"]["fifo"]["estimators"] == ["queueing"]
    late = Ran(tmp_path / "spec.json", "--server", "127.0.0.1:1")
    assert late.status == 1
    assert "UNAVAILABLE" in late.err


GAPS = {"law": "poisson", "mean_gap_s": 1}
SIZES = {"law": "constant", "value": 1}
PREDICTED = {"profile": {"content": {"workload": {"parameterBytes": 1}}}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cluster": {"t4": "four"}}, "cluster: t4: must be a number of nodes"),
    ({"cluster": {}}, "cluster:"),
    ({"cluster": [{"name": "t4", "nodes": 0}]}, "cluster.0.nodes: "),
    ({"cluster": [{"name": "t4", "nodes": 1}, {"name": "t4", "nodes": 1}]}, "found 't4' twice"),
    ({"jobs": {"file": "nowhere.csv"}}, "nowhere.csv: no such file"),
    ({"jobs": {}}, "jobs: must be a list of jobs"),
    (
        {"jobs": {"file": "jobs.csv", "formt": "x"}},
        "jobs.formt: is unknown (did you mean format?); fields are: file, format",
    ),
    ({"rounds": 60}, "rounds: is unknown (did you mean round_s?); fields are: jobs, throughputs"),
    ({"round_s": 0}, "round_s: "),
    ({"clock": "rounds"}, "clock: "),
    ({"early_stops": {"probability": 1.5}}, "early_stops.probability: "),
    ({"early_stops": {}}, "early_stops.probability: must be given"),
    ({"failures": {"mean_repair_s": 3}}, "failures.mean_time_between_failures_s: must be given"),
    ({"load": -1}, "load: "),
    ({"seed": 1.5}, "seed: "),
    ({"policy": ["fifo", "fifo"]}, "policy: found 'fifo' twice"),
    ({"policy": "nobody"}, "POLICY_NOT_FOUND"),
    ({"policy": {"name": "fifo", "parameters": {"x": 1}}}, "policy_parameters['x']"),
    ({"loads": [1, 2]}, "loads: is unknown"),
    ({"throughputs": None}, "curves: must contain a curve"),
    ({"curves": {"x": {}}}, "curves.x: must have samples_per_s or a profile"),
    ({"curves": {"x": {"samples_per_s": {"v100": {"1": 2}}}}}, "curves.x.samples_per_s: must be one of t4"),
    ({"curves": {"x": {"samples_per_s": {"t4": {"1": -2}}}}}, "curves.x.samples_per_s.t4.1: "),
    ({"curves": {"x": {"profile": {"job": "a1"}}}}, "curves.x.profile"),
    ({"jobs": [{"job": "a", "arrival_s": 0, "samples": 1, "curve": "x"}]}, "jobs[0].curve: must be one of"),
    ({"jobs": [{"job": "a", "arrival_s": 0, "curve": "bert-384"}]}, "jobs.list.0.samples: must be given"),
    (
        {"jobs": {"generate": {"jobs": 2, "arrivals": {"law": "x"}, "sizes": {"law": "constant", "value": 1}}}},
        "jobs.generate.arrivals.law: must be one of bursty, diurnal, poisson",
    ),
    (
        {
            "jobs": {
                "generate": {
                    "jobs": 2,
                    "arrivals": {"law": "poisson", "mean_gap": 1},
                    "sizes": {"law": "constant", "value": 1},
                }
            }
        },
        "jobs.generate.arrivals: law 'poisson' got an unexpected keyword argument 'mean_gap'",
    ),
    ({"jobs": {"generate": {"jobs": 2, "arrivals": GAPS, "sizes": SIZES, "curves": ["x"]}}}, "jobs.generate.curves: "),
    (
        {"jobs": {"generate": {"jobs": 2, "arrivals": {"law": "poisson", "mean_gap_s": "x"}, "sizes": SIZES}}},
        "jobs.generate.arrivals.mean_gap_s: must be a number, found 'x'",
    ),
    (
        {"jobs": [{"job": "a", "arrival_s": 0, "samples": 1, "curve": "bert-384"}] * 2},
        "jobs[1].job: must be unique, found 'a' twice",
    ),
    (
        {"curves": {"x": {"predicted_samples_per_s": {"t4": {"1": 2}}, "profile": {"profileId": "a"}}}},
        "curves.x: must have either predicted_samples_per_s or a profile, not both",
    ),
    (
        {
            "throughputs": None,
            "curves": {"x": PREDICTED},
            "jobs": {"generate": {"jobs": 2, "arrivals": GAPS, "sizes": SIZES}},
        },
        "curves: must all state samples_per_s: sizes of generated jobs are in seconds at the rates of a curve",
    ),
]


@pytest.mark.parametrize(("changes", "said"), WRONG, ids=[said[:40] for _, said in WRONG])
def test_what_is_wrong_in_a_specification_is_said_in_one_line(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    for name in ("jobs.csv", "curves.csv"):
        (tmp_path / name).write_text((SIMULATION / name).read_text())
    spec = {**json.loads((SIMULATION / "simulate.json").read_text()), **changes}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    found = Ran(tmp_path / "spec.json", "--json")
    assert (found.status, found.out) == (2, "")
    assert said in found.err
    assert found.err.count("\n") == 1


def test_what_is_wrong_with_options_is_said_in_one_line(tmp_path: Path, gavel: list[str | Path]) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    for arguments, said in (
        ([gavel[0]], "--cluster: must state the pools"),
        ([gavel[0], "--cluster", "v100"], "--cluster: must be pools such as"),
        ([gavel[0], "--cluster", "v100=2"], "throughputs: must name the table"),
        ([tmp_path / "other.csv", "--cluster", "v100=2"], "is no list of jobs"),
        ([*gavel, "--format", "philly"], "is missing in the header row"),
        ([*gavel, "--timeline", "x.txt"], "--timeline: must end in"),
        ([*gavel, "--gantt", "x.pdf"], "--gantt: must end in"),
        (
            [*gavel, "--policy", "fifo", "--policy", "srpt", "--timeline", tmp_path / "x.csv"],
            "--timeline: needs exactly one policy",
        ),
        ([SIMULATION / "simulate.json", "--format", "gavel"], "--format, --applications: need a file of jobs"),
    ):
        found = Ran(*arguments)
        assert (found.status, found.out) == (2, ""), said
        assert said in found.err
        assert found.err.count("\n") == 1


def test_a_wrong_line_of_a_file_is_named_with_its_column(tmp_path: Path, gavel: list[str | Path]) -> None:
    (tmp_path / "jobs.trace").write_text(TRACE.replace("\t1000\t", "\tmany\t"))
    found = Ran(*gavel)
    assert found.status == 2
    assert "jobs.trace:1:total_steps: must be a number, found 'many'" in found.err
