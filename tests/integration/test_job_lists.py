"""`nodewise simulate` on logs of clusters: each is known by its content, and jobs that cannot run are counted."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from measurements import data_path
from typer.testing import CliRunner

from nodewise_cli.app import app

PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2020-06-09 18:41:01,400.0,1,400.0,vcA
2020-06-09 18:41:27,249.0,4,996.0,vcB
2020-06-09 18:41:30,0.0,1,0.0,vcC
2020-06-09 18:41:31,600.0,0,0.0,vcC
2020-06-09 18:41:32,600.0,64,38400.0,vcC
2020-06-09 18:41:33,600.0,0.5,300.0,vcC
2020-06-09 18:41:34,,1,,vcC
None,600.0,1,600.0,vcC
2020-06-09 18:41:35,600.0,one,600.0,vcC
"""
HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,u1,vcA,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:47:41,400,0
8,u2,vcB,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
9,u3,vcC,0,8,1,COMPLETED,2020-06-09 18:41:30,2020-06-09 18:41:30,2020-06-09 18:41:30,0,0
10,u3,vcC,2,8,1,CANCELLED,2020-06-09 18:41:31,None,2020-06-09 18:50:00,0,509
"""
SACCT = """JobID|JobName|Submit|Start|End|Elapsed|NNodes|AllocTRES|State
57|train|2024-10-07T09:00:00|2024-10-07T09:10:00|2024-10-07T09:16:40|06:40|1|billing=64,cpu=9,gres/cpu=9,gres/gpu:a100_3g.20gb=1,gres/gpu=1,node=1|COMPLETED
57.batch|batch|2024-10-07T09:10:00|2024-10-07T09:10:00|2024-10-07T09:16:40|06:40|1|cpu=9,gres/gpu:a100_3g.20gb=1,gres/gpu=1|COMPLETED
57.extern|extern|2024-10-07T09:10:00|2024-10-07T09:10:00|2024-10-07T09:16:40|06:40|1|cpu=9,gres/gpu=1|COMPLETED
57.0|python|2024-10-07T09:10:00|2024-10-07T09:10:00|2024-10-07T09:16:40|06:40|1|cpu=9,gres/gpu=1|COMPLETED
58_3|"big|2024-10-07T09:00:26|2024-10-07T10:00:00|2024-10-07T10:04:09|00:04:09|2|cpu=32,gres/gpu:h100=4,node=2|CANCELLED by 1000
58_[4-9]|big|2024-10-07T09:00:26|Unknown|Unknown|00:00:00|2||PENDING
59|array|2024-10-07T09:06:00|Unknown|Unknown|00:00:00|1||CANCELLED by 1000
60|long|2024-10-07T09:06:00|2024-10-07T09:07:00|Unknown|2-01:00:00|1|gres/gpu=1|RUNNING
61|cpu|2024-10-07T09:06:00|2024-10-07T09:07:00|2024-10-07T09:08:00|00:01:00|1|cpu=4,mem=8G|COMPLETED
62|a|b|2024-10-07T09:06:00|2024-10-07T09:07:00|2024-10-07T09:08:00|00:01:00|1|gres/gpu=1|COMPLETED
"""  # noqa: E501  # as sacct prints them
PHILLY_LOG: list[dict[str, Any]] = [
    {
        "status": "Pass", "vc": "a", "jobid": "application_1", "submitted_time": "2017-10-09 07:00:00", "user": "u",
        "attempts": [
            {"start_time": "2017-10-09 07:05:00", "end_time": "2017-10-09 07:10:00", "detail": [
                {"ip": "m1", "gpus": ["gpu0"]}]},
            {"start_time": "2017-10-09 08:00:00", "end_time": "2017-10-09 08:01:40", "detail": [
                {"ip": "m2", "gpus": ["gpu0"]}]},
        ],
    },
    {
        "status": "Killed", "vc": "b", "jobid": "application_2", "submitted_time": "2017-10-09 07:00:26", "user": "u",
        "attempts": [
            {"start_time": "2017-10-09 07:05:00", "end_time": "2017-10-09 07:09:09", "detail": [
                {"ip": "m1", "gpus": ["gpu0", "gpu1", "gpu2"]}, {"ip": "m2", "gpus": ["gpu7"]}]},
        ],
    },
    {"status": "Killed", "vc": "b", "jobid": "3", "submitted_time": "2017-10-09 07:00:30", "user": "u", "attempts": []},
    {
        "status": "Failed", "vc": "b", "jobid": "4", "submitted_time": "2017-10-09 07:00:31", "user": "u",
        "attempts": [{"start_time": "2017-10-09 07:05:00", "end_time": None, "detail": [
            {"ip": "m1", "gpus": ["gpu0"]}]}],
    },
    {
        "status": "Pass", "vc": "b", "jobid": "5", "submitted_time": "2017-10-09 07:00:31", "user": "u",
        "attempts": [{"start_time": "2017-10-09 07:05:00", "end_time": "2017-10-09 07:06:00", "detail": []}],
    },
    {"jobid": "6", "submitted_time": "2017-10-09 07:00:31"},
]  # fmt: skip
TASKS = """j1,tensorflow,1.0,Terminated,1000.0,1400.0,600.0,29.3,100.0,MISC
j2,worker,2.0,Failed,1026.0,1270.0,600.0,29.3,100.0,V100
j2,ps,1.0,Terminated,1000.0,1900.0,600.0,29.3,,
j2,chief,1.0,Terminated,1026.0,1275.0,600.0,29.3,200.0,V100
j3,tensorflow,2.0,Terminated,1030.0,1400.0,600.0,29.3,50.0,T4
j4,tensorflow,1.0,Waiting,,,600.0,29.3,100.0,T4
j5,tensorflow,1.0,Running,1040.0,,600.0,29.3,100.0,T4
j6,tensorflow,1.0,Terminated,1040.0,1300.0,600.0,29.3,,
j7,tensorflow,1.0,Terminated,1040.0,1040.0,600.0,29.3,100.0,T4
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0001,6000,12288,1,1000,,LS,Running,427061,427471,427071
openb-pod-0002,6000,12288,4,1000,V100M16|V100M32,LS,Succeeded,427087,427349,427100
openb-pod-0003,6000,12288,1,460,,BE,Running,427061,427461,427061
openb-pod-0004,6000,12288,0,0,,LS,Succeeded,427061,427461,427061
openb-pod-0005,6000,12288,1,1000,,LS,Pending,427061,427461,
"""

LOGS: dict[str, tuple[str, dict[str, int]]] = {
    "philly": (
        PHILLY,
        {
            "zero_duration": 1, "no_gpus": 1, "larger_than_the_cluster": 1, "gpu_fraction": 1, "unknown_times": 2,
            "unreadable": 1,
        },
    ),
    "helios": (HELIOS, {"no_gpus": 1, "never_started": 1}),
    "sacct": (SACCT, {"never_started": 2, "unknown_times": 1, "no_gpus": 1, "unreadable": 1}),
    "philly-log": (
        json.dumps(PHILLY_LOG), {"never_started": 1, "unknown_times": 1, "no_gpus": 1, "unreadable": 1},
    ),
    "alibaba-2020": (
        TASKS, {"gpu_fraction": 1, "never_started": 1, "unknown_times": 1, "no_gpus": 1, "zero_duration": 1},
    ),
    "alibaba-2023": (PODS, {"gpu_fraction": 1, "no_gpus": 1, "never_started": 1}),
}  # fmt: skip
"""Each holds a job of 1 GPU for 400 s, one of 4 GPUs for 249 s that comes 26 s later, and some that cannot run."""


def ran(*arguments: str | Path) -> Any:
    """The command's end."""
    result = CliRunner().invoke(app, ["simulate", *map(str, arguments), "--policy", "fifo"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answered(*arguments: str | Path) -> dict[str, Any]:
    """What the command answers, as JSON."""
    result = ran(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_log_is_known_by_its_content_and_what_cannot_run_is_counted(tmp_path: Path, name: str, packed: bool) -> None:
    text, left_out = LOGS[name]
    path = tmp_path / "jobs.of.somebody"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = answered(path, "--cluster", "v100=1x4")
    assert found["left_out"] == left_out
    assert (found["jobs"], found["finished"]) == (2, 2)
    # The second asks for all four devices, and waits for the first.
    assert found["average_jct_s"] == pytest.approx((400 + 400 - 26 + 249) / 2)
    assert found["makespan_s"] == 649.0
    said = ran(path, "--cluster", "v100=1x4").stdout
    assert "left out" in said
    assert all(f"{count} " in said for count in left_out.values())


@pytest.mark.parametrize("name", LOGS)
def test_a_format_may_be_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "jobs").write_text(LOGS[name][0])
    form = name.removesuffix("-log")
    assert answered(tmp_path / "jobs", "--cluster", "v100=1x4", "--format", form)["makespan_s"] == 649.0


def test_a_json_list_is_a_log_and_a_json_object_a_specification_whatever_the_file_is_called(tmp_path: Path) -> None:
    (tmp_path / "cluster_job_log.json").write_text(json.dumps(PHILLY_LOG))
    assert answered(tmp_path / "cluster_job_log.json", "--cluster", "v100=1x4")["makespan_s"] == 649.0
    (tmp_path / "spec.txt").write_text(json.dumps({"jobs": {"file": "cluster_job_log.json"}, "cluster": "v100=1x4"}))
    assert answered(tmp_path / "spec.txt")["makespan_s"] == 649.0


def test_an_archive_of_one_file_is_unpacked_and_a_torn_one_refused(tmp_path: Path) -> None:
    for count in (1, 2):
        with tarfile.open(tmp_path / f"{count}.tar.gz", "w:gz") as archive:
            for number in range(count):
                member = tarfile.TarInfo(f"pai_task_table{number}.csv")
                member.size = len(TASKS)
                archive.addfile(member, io.BytesIO(TASKS.encode()))
    assert answered(tmp_path / "1.tar.gz", "--cluster", "v100=1x4")["makespan_s"] == 649.0
    assert "must be an archive of one file, found 2" in ran(tmp_path / "2.tar.gz", "--cluster", "v100=4").stderr
    (tmp_path / "torn.gz").write_bytes(gzip.compress(TASKS.encode())[:-20])
    torn = ran(tmp_path / "torn.gz", "--cluster", "v100=4")
    assert (torn.exit_code, torn.stdout) == (2, "")
    assert "torn.gz: the compressed file is damaged or ends early" in torn.stderr


@pytest.mark.parametrize(
    ("header", "cells", "jct_s"),
    [
        ("State|Elapsed|AllocTRES|Submit|JobID", "COMPLETED|1-02:00:00|gres/gpu=1|2024-10-07T09:00:00|7", 93600.0),
        ("JobIDRaw|ReqTRES|ElapsedRaw|Elapsed|Start", "7|cpu=2,gres/gpu=1|75|00:01:15|2024-10-07T09:00:00", 75.0),
        (
            "JobID|Submit|Start|End|AllocTRES|ReqTRES",
            "7|2024-10-07T09:00:00|2024-10-07T09:00:05|2024-10-07T09:01:00||gres/gpu=1",
            55.0,
        ),
        ("JobID|Submit|Elapsed|AllocTRES|State|", "7|1728291600|10:30|gres/gpu:a100=1|TIMEOUT|", 630.0),
        ("jobid|submit|elapsed|alloctres", "7+0|2024-10-07T09:00:00|02:00:00|gres/gpu=1", 7200.0),
    ],
)  # fmt: skip
def test_columns_of_sacct_may_be_any_in_any_order(tmp_path: Path, header: str, cells: str, jct_s: float) -> None:
    (tmp_path / "jobs").write_text(f"{header}\n{cells}\n")
    found = answered(tmp_path / "jobs", "--cluster", "v100=1x8")
    assert (found["jobs"], found["average_jct_s"], found["left_out"]) == (1, jct_s, {})


def test_components_of_a_heterogeneous_job_run_together(tmp_path: Path) -> None:
    rows = "".join(f"9+{part}|2024-10-07T09:00:00|00:01:00|gres/gpu=4|COMPLETED\n" for part in (0, 1))
    (tmp_path / "jobs").write_text(f"JobID|Submit|Elapsed|AllocTRES|State\n{rows}")
    assert answered(tmp_path / "jobs", "--cluster", "v100=1x8")["busy_device_s"] == 480.0
    assert "1 larger than every pool" in ran(tmp_path / "jobs", "--cluster", "v100=1x4,k80=1x4").stderr


def test_runs_of_a_job_that_was_requeued_are_jobs(tmp_path: Path) -> None:
    rows = "".join(f"9|2024-10-07T09:0{minute}:00|00:01:00|gres/gpu=4|COMPLETED\n" for minute in (0, 5))
    (tmp_path / "jobs").write_text(f"JobID|Submit|Elapsed|AllocTRES|State\n{rows}")
    assert answered(tmp_path / "jobs", "--cluster", "v100=1x8")["finished"] == 2


def test_a_column_that_sacct_was_not_asked_for_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("JobID|Submit|Elapsed|State\n7|2024-10-07T09:00:00|00:01:00|COMPLETED\n")
    refused = ran(tmp_path / "jobs", "--cluster", "v100=8")
    assert refused.exit_code == 2
    assert "jobs:1:AllocTRES or ReqTRES: is missing in the header row; print it by sacct -P -o JobID" in refused.stderr


def test_tables_that_name_no_gpus_and_logs_without_a_job_that_can_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("4b3f,8cb3,5854,Terminated,4550879.0,4551416.0\n")
    assert "use its pai_task_table" in ran(tmp_path / "jobs", "--cluster", "v100=8").stderr
    (tmp_path / "jobs").write_text("\n".join(PHILLY.splitlines()[:1] + PHILLY.splitlines()[3:5]))
    refused = ran(tmp_path / "jobs", "--cluster", "v100=8")
    assert refused.exit_code == 2
    assert "found none that can be simulated; left out: 1 with a duration of 0 or no work, 1 without" in refused.stderr


def test_the_first_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(PHILLY)
    found = answered(tmp_path / "jobs", "--cluster", "v100=1x4")
    assert found["first_unreadable"] == f"{tmp_path / 'jobs'}:10:num_gpus: must be a number, found 'one'"
    assert "jobs:10:num_gpus" in ran(tmp_path / "jobs", "--cluster", "v100=1x4").stdout


def test_a_row_of_every_other_format_does_not_cost_the_file(tmp_path: Path) -> None:
    (tmp_path / "curves.csv").write_text(
        "curve,pool,devices,samples_per_s\nunit,v100,1,1\nunit,v100,4,4\nlarge,v100,64,64\n"
    )
    (tmp_path / "jobs.csv").write_text(
        "job,arrival_s,samples,curve,requested_devices,rigid\n"
        "0,0,164,unit,1,1\n1,30,0,unit,1,1\n2,40,10,unit,0,1\n3,50,10,large,64,1\n4,50,10,unit,64,1\n5,60,10,unit,4,0\n"
    )
    found = answered(tmp_path / "jobs.csv", "--throughputs", tmp_path / "curves.csv", "--cluster", "v100=4")
    assert found["left_out"] == {"zero_duration": 1, "no_gpus": 1, "larger_than_the_cluster": 2}
    assert (found["jobs"], found["finished"]) == (2, 2)  # two that fit
    (tmp_path / "rates.json").write_text(json.dumps({"v100": {"('A', 1)": {"null": 10.0}, "('A', 8)": {"null": 10.0}}}))
    row = "A\tmain.py\tdir\t--steps\t1\t{}\t{}\t1\t-1\t0\n"
    (tmp_path / "jobs.trace").write_text(
        row.format(1000, 1) + row.format(0, 1) + row.format(1000, 0) + row.format(1000, 8)
    )
    found = answered(tmp_path / "jobs.trace", "--throughputs", tmp_path / "rates.json", "--cluster", "v100=4")
    assert found["left_out"] == {"zero_duration": 1, "no_gpus": 1, "larger_than_the_cluster": 1}
    assert (found["jobs"], found["finished"]) == (1, 1)


@pytest.mark.long
def test_a_sweep_says_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(PHILLY)
    arguments = ["sweep", str(tmp_path / "jobs"), "--cluster", "v100=1x4", "--policy", "fifo", "--processes", "1"]
    found = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(found.stdout)["left_out"]["gpu_fraction"] == 1
    # Where a line ends depends on the length of the file's path.
    assert "1 on a fraction of a GPU" in " ".join(CliRunner().invoke(app, arguments).stdout.split())


# DATA
@pytest.mark.data
class TestCases:
    """Cases after public lists of jobs."""

    @pytest.mark.parametrize("jobs", ["tiresias60_as_philly.csv", "tiresias60_as_table.csv"])
    @pytest.mark.parametrize(("cluster", "jct_s", "makespan_s"), [("1x8", 1556.483, 5747.0), ("2x8", 200.817, 3335.0)])
    def test_sixty_jobs(self, jobs: str, cluster: str, jct_s: float, makespan_s: float) -> None:
        curves = data_path("cases", "jobs", "unit_curves.csv")
        found = answered(data_path("cases", "jobs", jobs), "--throughputs", curves, "--cluster", f"v100={cluster}")
        assert found["average_jct_s"] == pytest.approx(jct_s, abs=1e-3)
        assert (found["makespan_s"], found["left_out"]) == (makespan_s, {})

    @pytest.mark.parametrize(
        ("name", "jobs", "left_out"),
        [
            ("edge_as_philly.csv", 2, {"zero_duration": 1, "no_gpus": 1, "larger_than_the_cluster": 1}),
            ("zero_gpu.csv", 1, {"no_gpus": 1}),
            ("helios_cluster_log.csv", 3, {"no_gpus": 1}),
            ("sacct.txt", 1, {"larger_than_the_cluster": 1, "never_started": 1}),
        ],
    )
    def test_lists_with_jobs_that_cannot_run(self, name: str, jobs: int, left_out: dict[str, int]) -> None:
        found = answered(data_path("cases", "jobs", name), "--cluster", "v100=8")
        assert (found["jobs"], found["finished"], found["left_out"]) == (jobs, jobs, left_out)

    def test_two_elastic_jobs(self) -> None:
        questions = data_path("cases", "questions")
        found = answered(
            questions / "c15_jobs.csv", "--throughputs", questions / "c15_curves.csv", "--cluster", "cpu=1x20"
        )
        assert (found["jobs"], found["left_out"]) == (2, {})
