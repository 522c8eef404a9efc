"""Commands in this process, most with an embedded server: exit statuses, JSON, files."""

from __future__ import annotations

import csv
import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_cli.commands.ingest import BATCH_ROWS, _session
from nodewise_cli.inputs.table_content import profile_content, timings_of
from nodewise_cli.inputs.tables import read_table
from nodewise_client import Client

QUIET = ("--log-level", "error")
EXAMPLES = Path(__file__).parents[2] / "examples"
TESTBED = str(EXAMPLES / "testbed.csv")
RESNET = str(EXAMPLES / "cmdare_resnet.csv")
METRICS = {
    "n", "refused", "mape", "median_ape", "p90_ape", "max_ape", "step_mape", "mean_abs_ln", "bias", "macro_abs_ln",
    "kendall", "coverage90", "worst_job_coverage90", "width90", "interval_score90", "fit_s", "predict_s", "groups",
    "regret", "hit", "within5", "memory_mape", "false_fits", "false_refusals",
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with EmbeddedServer() as embedded:
        yield embedded.target


class Ran:
    """A command's end."""

    def __init__(self, *arguments: str | Path) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status = result.exit_code
        self.out = result.stdout
        self.err = result.stderr

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        assert self.out.count("\n") == 1
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document

    @property
    def error(self) -> dict[str, Any]:
        """The one JSON object on standard error; nothing was printed."""
        assert self.out == ""
        assert self.err.count("\n") == 1
        error = json.loads(self.err)["error"]
        assert set(error) == {"code", "reason", "message", "violations"}
        return error  # type: ignore[no-any-return]

    @property
    def complaint(self) -> str:
        """The one line on standard error; nothing was printed."""
        assert self.out == ""
        assert self.err.startswith("nodewise: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("nodewise: ").strip()


def test_predict_as_json() -> None:
    ran = Ran("predict", TESTBED, "--job", "a1", "--nodes", "1-16", "--json")
    assert (ran.status, ran.err) == (0, "")
    found = ran.document
    assert {"predictions", "recommended", "estimator", "estimator_version", "revision", "warnings"} <= found.keys()
    assert [row["nodes"] for row in found["predictions"]] == list(range(1, 17))
    row = found["predictions"][3]
    assert {
        "nodes", "workers", "samples_per_s", "steps_per_s", "step_s", "lower_samples_per_s", "upper_samples_per_s",
        "coverage", "breakdown", "bottleneck", "extrapolation", "status",
    } <= row.keys()  # fmt: skip
    # The table does not say the batch: samples are not known, steps are.
    assert row["samples_per_s"] is None
    assert row["steps_per_s"] == pytest.approx(4.33, rel=0.1)
    assert row["lower_steps_per_s"] < row["steps_per_s"] < row["upper_steps_per_s"]
    assert sum(row["breakdown"].values()) == pytest.approx(row["step_s"])
    assert row["status"] == "answered"
    assert {"nodes", "workers", "rule", "why"} <= found["recommended"].keys()
    assert found["recommended"]["rule"] == "knee"
    assert found["estimator"] == "queueing"


def test_predict_knows_samples_where_the_batch_is_stated() -> None:
    ran = Ran("predict", TESTBED, "--job", "a1", "--workers", "pow2:1-8", "--batch-per-worker", "32", "--json")
    rows = ran.document["predictions"]
    assert [row["workers"] for row in rows] == [1, 2, 4, 8]
    for row in rows:
        assert row["samples_per_s"] == pytest.approx(32 * row["steps_per_s"])
        assert row["lower_samples_per_s"] == pytest.approx(32 * row["lower_steps_per_s"])


def test_predict_a_profile_answers_as_its_table() -> None:
    of_table = Ran("predict", TESTBED, "--job", "a1", "--nodes", "1,2,4-8:2", "--json").document
    of_profile = Ran("predict", EXAMPLES / "profile.json", "--nodes", "1,2,4-8:2", "--json").document
    assert of_profile["predictions"] == of_table["predictions"]
    assert of_profile["revision"] == of_table["revision"]


def test_predict_for_people_sets_the_measured_beside() -> None:
    ran = Ran("predict", TESTBED, "--job", "a1", "--nodes", "1-4")
    assert ran.status == 0
    assert "measured" in ran.out
    assert "4.332" in ran.out
    assert "Recommended (knee): " in ran.out


def test_least_cost_with_a_price() -> None:
    ran = Ran(
        "predict", TESTBED, "--job", "a1", "--nodes", "1-8", "--batch-per-worker", "1", "--objective", "least-cost",
        "--price", "emulated=3.6", "--currency", "USD", "--samples", "1000", "--json",
    )  # fmt: skip
    found = ran.document
    costs = [row["cost"] for row in found["predictions"]]
    assert costs[found["recommended"]["row"]] == min(costs)
    first = found["predictions"][0]
    # One node and one for its server, at 0.001 a second each.
    assert first["cost"] == pytest.approx(0.002 * 1000 / first["samples_per_s"])


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_predict_draws(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is an extra")
    path = tmp_path / f"curve{suffix}"
    ran = Ran("predict", TESTBED, "--job", "a1", "--workers", "1-16", "--plot", path)
    assert (ran.status, ran.err) == (0, "")
    begin = b"\x89PNG\r\n\x1a\n" if suffix == ".png" else b"<?xml"
    assert path.read_bytes().startswith(begin)
    assert path.stat().st_size > 10_000
    if suffix == ".svg":
        texts = set(re.findall(r">([^<>]+)</text>", path.read_text()))
        assert {"predicted", "predicted, extrapolated", "measured, learned from", "linear scaling"} <= texts


def test_a_picture_of_powers_of_two_has_their_numbers_in_full(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is an extra")
    table, path = tmp_path / "own.csv", tmp_path / "curve.svg"
    rows = "".join(f"x,A100,{nodes},{8 * nodes},{rate},256\n" for nodes, rate in ((1, 19800), (2, 38100), (4, 72400)))
    table.write_text("job,device,nodes,workers,samples_per_s,batch_per_worker\n" + rows)
    assert Ran("predict", table, "--nodes", "pow2:1-64", "--plot", path).status == 0
    texts = set(re.findall(r">([^<>]+)</text>", path.read_text()))
    assert {"1", "2", "4", "8", "16", "32", "64", "100,000", "1,000,000"} <= texts


def test_refused_by_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job,device,nodes,workers,steps_per_s,split\na,K80,1,1,,test\n")
    ran = Ran("predict", path, "--nodes", "1-4", "--sync", "async", "--json")
    assert ran.status == 3
    assert (ran.error["code"], ran.error["reason"]) == ("FAILED_PRECONDITION", "EVIDENCE_MISSING")
    assert Ran("predict", path, "--nodes", "1-4", "--sync", "async").complaint.startswith("EVIDENCE_MISSING: ")


def test_a_row_that_is_too_large_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "job,device,sync,nodes,workers,steps_per_s,split\na,K80,async,1,1,5,train\na,K80,async,1,1000000,9,test\n"
    )
    ran = Ran("backtest", path, "--json")
    assert ran.status == 2
    error = ran.error
    assert error["message"].startswith(f"{path}:3: column workers: must be")
    assert (error["code"], error["reason"]) == ("INVALID_ARGUMENT", "INVALID_FIELD")
    assert [each["field"] for each in error["violations"]] == [f"{path}:3: workers"]
    assert Ran("backtest", path).complaint.startswith(f"{path}:3: column workers: must be")


@pytest.mark.parametrize("arguments", [["--help"], ["profiles", "--help"]])
def test_summaries_of_commands_are_whole(arguments: list[str]) -> None:
    commands = re.findall(r"^  [a-z]+  .*", Ran(*arguments).out, re.MULTILINE)
    assert len(commands) > 4
    assert not [line for line in commands if line.rstrip().endswith("...")]


@pytest.mark.parametrize(
    ("arguments", "status", "reason", "said"),
    [
        (["predict", "none.csv", "--nodes", "1"], 2, "BAD_INPUT", "none.csv: no such file"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "1-4", "--colour"], 2, "BAD_USAGE", "--colour"),
        (["backtest", TESTBED, "--estimator", "nobody"], 2, "ESTIMATOR_NOT_FOUND", "nobody"),
        (["health", "--server", "127.0.0.1:1"], 1, "", ""),
    ],
)
def test_errors_are_json_where_answers_are(arguments: list[str | Path], status: int, reason: str, said: str) -> None:
    ran = Ran(*arguments, "--json")
    assert (ran.status, ran.error["reason"]) == (status, reason)
    assert said in ran.error["message"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["predict", TESTBED, "--nodes", "4"], "--job: must be a job of"),
        (["predict", TESTBED, "--job", "b", "--nodes", "4"], "found 'b'"),
        (["predict", EXAMPLES / "mlp.json", "--device", "K80"], "--nodes: must be given, such as --nodes 1-16"),
        (["predict", TESTBED, "--job", "a1", "--within-evidence", "-1"], "--within-evidence: must be a finite number"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--workers", "4"], "--workers: must be left out"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "0"], "--nodes: must start at 1"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "1000000"], "INVALID_FIELD: ranges[0].nodes"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--link", "0"], "--link: must be a finite number of"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--estimator", "none"], "ESTIMATOR_NOT_FOUND"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--coverage", "1.5"], "--coverage: must be a finite"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--plot", "curve.txt"], "--plot: must end in"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--plot", "none/x.png"], "--plot: must be a file"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--timeout-s", "0"], "--timeout-s: must be above 0"),
        (["predict", TESTBED, "--profile", "a1", "--nodes", "4"], "--profile: must be given alone"),
        (["predict", "--profile", "a1", "--nodes", "4"], "--server: must name the server"),
        (["predict", "--nodes", "4"], "TABLE.csv: must be given"),
        (["predict", EXAMPLES / "profile.json", "--job", "a1", "--nodes", "4"], "--job: must be left out"),
        (["predict", TESTBED, "--job", "a1", "--nodes", "4", "--server", "nowhere"], "--server: must be HOST:PORT"),
        (["schedule", EXAMPLES / "schedule.json", "--policy", "none"], "POLICY_NOT_FOUND"),
        (["schedule", EXAMPLES / "none.json"], "no such file"),
        (["backtest", EXAMPLES], "is a directory"),
        (["backtest", TESTBED, "--estimator", "none"], "ESTIMATOR_NOT_FOUND"),
        (["backtest", TESTBED, "--also-train", "workers"], "--also-train: must be conditions joined by commas"),
        (["backtest", TESTBED, "--predictions", "none/out.csv"], "--predictions: must be a file in a directory"),
        (["ingest", TESTBED], "--server: must name the server"),
        (["ingest", EXAMPLES / "profile.json", "--server", "127.0.0.1:1"], "must be a trace, but contains no events"),
        (["serve", "--workers", "0"], "setting workers: "),
        (["serve", "--listen", "nowhere"], "setting listen: must be HOST:PORT"),
        (["serve", "--config", "none.toml"], "none.toml: cannot be read"),
        (["serve", "--config", TESTBED], "is not valid TOML"),
        (["serve", "--workers", "2", "--store", "memory:"], "setting store: memory: belongs to one process"),
        (["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:", *QUIET], "store: must be "),
        (["serve", "--listen", "127.0.0.1:0", "--traces", "ftp://x", "--store", "memory:", *QUIET], "or s3"),
        (["tokens", "list", "--store", "memory:"], "--store: memory: ends with its server"),
        (["tokens", "purge", "--store", "none.db", "--ended-days", "-1"], "--ended-days: must be 0 or more"),
        (["backup", "none.bak", "--store", "memory:"], "setting store: memory: ends with its process"),
        (["backup", "none.bak", "--store", "sqlite:none.db"], "store sqlite:none.db: no such file"),
        (["verify", "none.bak", "--store", "sqlite:none.db"], "--store, --traces: must be left out when a BACKUP"),
        (["plugins", "install"], "NAME: must be given, or a file of distributions by --requirement"),
        (["plugins", "install", "--requirement", "none.txt"], "--requirement: none.txt cannot be read"),
        (["ingest", TESTBED, "--profile", "a", "--server", "127.0.0.1:1"], "--profile: needs traces; the "),
        (
            ["predict", TESTBED, "--job", "a1", "--nodes", "4", "--simulated-steps", "9"],
            "--simulated-steps: must come with --fidelity simulate",
        ),
        (
            ["predict", TESTBED, "--job", "a1", "--nodes", "4", "--sequence-length", "9"],
            "--sequence-length: needs the config.json of a model, but",
        ),
        (
            ["predict", TESTBED, "--job", "a1", "--nodes", "4", "--objective", "fewest-devices", "--samples", "1"],
            "--deadline-s: must be given with --objective fewest-devices",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exits_2(arguments: list[str | Path], expected: str) -> None:
    ran = Ran(*arguments)
    assert ran.status == 2
    assert expected in ran.complaint


@pytest.mark.parametrize(
    "arguments", [["predict", TESTBED, "--objective", "best"], ["predict", "--bogus"], ["nothing"], ["schedule"]]
)
def test_usage_errors_exit_2(arguments: list[str]) -> None:
    ran = Ran(*arguments)
    assert ran.status == 2
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", TESTBED, "--job", "a1", "--nodes", "4"],
        ["schedule", EXAMPLES / "schedule.json"],
        ["backtest", TESTBED],
        ["plugins"],
        ["health"],
        ["ingest", TESTBED],
    ],
)
def test_a_server_that_is_not_there(arguments: list[str | Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        ran = Ran(*arguments, "--server", f"127.0.0.1:{taken.getsockname()[1]}", "--timeout-s", "20")
    assert ran.status == 1
    assert ran.complaint.startswith("UNAVAILABLE: ")


def test_a_port_in_use(server: str) -> None:
    ran = Ran("serve", "--listen", server, "--store", "memory:", "--log-level", "error")
    assert ran.status == 1
    assert f"cannot listen on {server}" in ran.err.splitlines()[-1]


@pytest.mark.parametrize(("store", "status"), [("foo:bar", 2), ("sqlite:{file}", 1)])
def test_a_store_that_is_none(tmp_path: Path, store: str, status: int) -> None:
    file = tmp_path / "file.db"
    file.write_bytes(b"no database" * 1000)
    url = store.format(file=file)
    ran = Ran("serve", "--listen", "127.0.0.1:0", "--store", url, "--log-level", "error")
    assert ran.status == status
    assert "store" in ran.complaint


def test_settings_of_the_environment_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEWISE_THREADS", "many")
    ran = Ran("plugins")
    assert ran.status == 2
    assert ran.complaint.startswith("setting threads: ")


def test_plugins() -> None:
    found = Ran("plugins", "--json").document["plugins"]
    assert {"name", "version", "kind", "distribution", "mode", "status"} <= found[0].keys()
    loaded = {(entry["kind"], entry["name"]) for entry in found if entry["status"] == "loaded"}
    assert ("estimator", "queueing") in loaded
    assert {("policy", name) for name in ("fifo", "equal-share", "efficiency-srpt", "efficiency-srpt-fill")} <= loaded
    ran = Ran("plugins")
    assert "queueing" in ran.out


def test_health(server: str) -> None:
    ran = Ran("health", "--server", server, "--json")
    assert (ran.status, ran.document) == (0, {"status": "SERVING"})
    assert Ran("health", "--server", server).out == "SERVING\n"
    unknown = Ran("health", "--server", server, "--service", "none")
    assert unknown.status == 1
    assert "has no service 'none'" in unknown.complaint


def test_schedule() -> None:
    ran = Ran("schedule", EXAMPLES / "schedule.json", "--json")
    assert ran.status == 0
    found = ran.document
    assert {"allocations", "policy", "decision_s", "complete"} <= found.keys()
    assert found["policy"] == "efficiency-capped"  # the default: the example names none
    assert len(found["allocations"]) == 5
    used = 0
    for allocation in found["allocations"]:
        assert {"job", "action", "devices", "nodes", "placement", "why"} <= allocation.keys()
        assert allocation["action"] in {"START", "WAIT", "NO_ANSWER"}
        assert sum(part["devices"] for part in allocation["placement"]) == allocation["devices"]
        used += allocation["devices"]
    assert 0 < used <= 16
    people = Ran("schedule", EXAMPLES / "schedule.json", "--policy", "equal-share", "--estimator", "queueing")
    assert "Decided by equal-share" in people.out


def test_schedule_with_failures(tmp_path: Path) -> None:
    example = json.loads((EXAMPLES / "schedule.json").read_text())
    example["cluster"]["pools"][0]["device_hours_between_failures"] = 1e6
    for each in example["jobs"]:
        each["profile"]["table"] = str(EXAMPLES / each["profile"]["table"])
    path = tmp_path / "request.json"
    path.write_text(json.dumps(example))
    options = ("--device-hours-between-failures", "10", "--restart-s", "60", "--policy", "equal-share")
    ran = Ran("schedule", path, "--json", *options)
    shares = {each["pool"]: each["useful"] for each in ran.document["allocations"] if each["devices"]}
    # Options do not replace what a pool states.
    assert 0.999 < shares["k80"] < 1.0
    assert shares["p100"] == pytest.approx(1 / (1 + 60 / 36_000))
    for each in ran.document["allocations"]:
        assert each["goodput_samples_per_s"] == pytest.approx(each["samples_per_s"] * each["useful"])
    assert "with failures" in Ran("schedule", path, *options).out
    for wrong in (("--restart-s", "60"), ("--device-hours-between-failures", "0")):
        ran = Ran("schedule", path, *wrong)
        assert ran.status == 2
        assert "--device-hours-between-failures" in ran.err


def test_schedule_by_deadlines_weights_and_quotas() -> None:
    found = Ran("schedule", EXAMPLES / "schedule_deadlines.json", "--json").document
    assert found["policy"] == "deadline-aware"
    allocations = {allocation["job"]: allocation for allocation in found["allocations"]}
    assert 0 < allocations["resnet-15-k80"]["finish_s"] <= 3600
    assert 0 < allocations["resnet-15-p100"]["finish_s"] <= 1800
    assert 0 < sum(each["devices"] for each in allocations.values() if each["pool"] == "k80") <= 6


def test_schedule_without_an_answer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    job = {"jobId": "x", "profile": {"profileId": "none"}, "remainingSamples": 5}
    pools = [{"name": "p", "deviceName": "K80", "availableDevices": [1]}]
    path.write_text(json.dumps({"cluster": {"pools": pools}, "jobs": [job]}))
    ran = Ran("schedule", path, "--json")
    assert ran.status == 3
    assert ran.document["allocations"][0]["action"] == "NO_ANSWER"


def test_backtest() -> None:
    ran = Ran("backtest", TESTBED, "--json")
    assert (ran.status, ran.err) == (0, "")
    found = ran.document
    assert found.keys() >= {"estimators", "jobs", "by_sync", "prior"}
    assert found["estimators"]["auto"].keys() == METRICS
    assert found["estimators"]["auto"]["n"] == 18
    assert found["jobs"].keys() == {"a1", "a4", "s2"}
    assert found["jobs"]["a1"]["auto"]["n"] == 6
    assert found["by_sync"].keys() == {"async", "sync"}
    assert found["by_sync"]["sync"]["auto"]["mape"] < 0.15
    people = Ran("backtest", TESTBED)
    assert "mape" in people.out


def test_backtest_by_name_and_by_all() -> None:
    found = Ran("backtest", TESTBED, "--estimator", "all", "--json").document["estimators"]
    assert "queueing" in found
    both = Ran("backtest", TESTBED, "--estimator", "queueing", "--estimator", "auto", "--json").document
    assert list(both["estimators"]) == ["queueing", "auto"]
    assert both["jobs"]["a1"].keys() == {"queueing", "auto"}


def test_predictions_of_test_rows(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    lines = Path(TESTBED).read_text().splitlines()
    lines[2] = lines[2].replace(",3.0992,", ",,")  # not measured: predicted and not scored
    table.write_text("\n".join(lines) + "\n")
    out = tmp_path / "out.csv"
    ran = Ran("backtest", table, "--predictions", out, "--json")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert ran.document["estimators"]["auto"]["n"] == 17
    assert list(rows[0])[:7] == [
        "row",
        "job",
        "estimator",
        "steps_per_s",
        "lower_steps_per_s",
        "upper_steps_per_s",
        "status",
    ]
    stated = ["device", "nodes", "workers", "sync", "parameter_servers", "accumulation"]
    assert list(rows[0])[7:] == [*stated, "measured_steps_per_s", "ratio"]
    assert (rows[0]["nodes"], rows[0]["device"], rows[0]["sync"]) == ("2", "emulated", "async")
    assert [row["row"] for row in rows if not row["measured_steps_per_s"]] == ["1"]
    for row in rows[1:]:
        measured = float(row["measured_steps_per_s"])
        assert float(row["ratio"]) == pytest.approx(float(row["steps_per_s"]) / measured)
    assert [int(row["row"]) for row in rows] == [*range(1, 7), *range(8, 14), *range(15, 21)]
    assert rows[0]["job"] == "a1"
    for row in rows:
        assert row["status"] == "answered"
        assert float(row["lower_steps_per_s"]) < float(row["steps_per_s"]) < float(row["upper_steps_per_s"])


@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_predictions_never_overwrite_a_table_that_is_read(tmp_path: Path, link: str) -> None:
    text = Path(TESTBED).read_text()
    table, calibration = tmp_path / "t.csv", tmp_path / "c.csv"
    for path in (table, calibration):
        path.write_text(text)
    for read in (table, calibration):
        out = read
        if link == "symbolic":
            out = tmp_path / f"{read.stem}-link.csv"
            out.symlink_to(read)
        elif link == "hard":
            out = tmp_path / f"{read.stem}-hard.csv"
            out.hardlink_to(read)
        ran = Ran("backtest", table, "--calibrate", calibration, "--predictions", out)
        assert ran.status == 2
        assert ran.complaint.startswith(f"--predictions: must not name {read}")
        assert read.read_text() == text


def test_refused_rows_are_written_and_exit_3(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "job,device,sync,nodes,workers,steps_per_s,split\na,A100,async,1,1,5,train\na,A100,async,2,2,9,test\n"
    )
    out = tmp_path / "out.csv"
    ran = Ran("backtest", table, "--predictions", out, "--json")
    assert ran.status == 3
    assert ran.document["estimators"]["auto"]["refused"] == 1
    assert ran.document["estimators"]["auto"]["mape"] is None
    assert out.read_text().splitlines()[1] == "1,a,auto,,,,refused,A100,2,2,async,0,1,9.0,"
    assert "auto refused 1 rows: " in Ran("backtest", table).out


def test_rows_that_are_also_learned_from() -> None:
    found = Ran("backtest", TESTBED, "--also-train", "workers=4,sync=async", "--json").document["estimators"]["auto"]
    assert found["n"] == 16
    nothing = Ran("backtest", TESTBED, "--also-train", "workers=99", "--json")
    assert nothing.status == 0
    assert "--also-train selects no test row" in nothing.err


def test_sources_and_evidence_are_held_back() -> None:
    by_job = Ran("backtest", TESTBED, "--leave-out", "job", "--json").document["estimators"]["auto"]
    assert by_job["n"] == Ran("backtest", TESTBED, "--json").document["estimators"]["auto"]["n"]
    nothing = Ran("backtest", TESTBED, "--leave-out", "device", "--evidence", "0", "--json").document["estimators"]
    assert nothing["auto"]["refused"] > 0
    assert "--leave-out: must be job, job:N" in Ran("backtest", TESTBED, "--leave-out", "campaign").complaint
    assert "--evidence: must be 0, 1, 2, all" in Ran("backtest", TESTBED, "--evidence", "3").complaint


def test_calibration_is_evidence_and_never_scored(tmp_path: Path) -> None:
    ran = Ran("backtest", TESTBED, "--calibrate", RESNET, "--json")
    assert ran.status == 0
    assert ran.document["jobs"].keys() == {"a1", "a4", "s2"}
    only_tests = tmp_path / "t.csv"
    only_tests.write_text("job,device,nodes,workers,steps_per_s,split\na,A100,1,2,9,test\n")
    assert "has no train row to calibrate with" in Ran("backtest", TESTBED, "--calibrate", only_tests).complaint


def test_ingest_once_and_again(server: str) -> None:
    first = Ran("ingest", TESTBED, RESNET, "--server", server, "--json")
    assert (first.status, first.err) == (0, "")
    found = first.document["profiles"]
    new = {"warnings": [], "already_there": 0, "left_out": 0, "retracted": 0}
    assert found["a1"] == {"revision": 1, "observations": 1, "traces": 0, "rows": 1, **new}
    assert found["ResNet-15/K80/1ps"] == {"revision": 1, "observations": 2, "traces": 0, "rows": 2, **new}
    again = Ran("ingest", TESTBED, RESNET, "--server", server, "--json").document["profiles"]
    assert again == {job: held | {"already_there": held["rows"]} for job, held in found.items()}
    assert "ResNet-15/K80/1ps" in Ran("ingest", RESNET, "--server", server).out
    stored = Ran("predict", "--profile", "a1", "--nodes", "1-4", "--server", server, "--json").document
    inline = Ran("predict", TESTBED, "--job", "a1", "--nodes", "1-4", "--json").document
    assert stored["predictions"] == inline["predictions"]
    assert stored["revision"] == 1


class _CutError(Exception):
    """The process that ingests is gone."""


@pytest.mark.parametrize("rows", [999, 1000, 2500])
@pytest.mark.parametrize("cut", [False, True])
def test_an_ingest_that_was_cut_goes_on(tmp_path: Path, server: str, rows: int, cut: bool) -> None:
    """A session that holds the first batch only is completed, without a row twice."""
    job = f"many-{rows}-{cut}"
    path = tmp_path / "t.csv"
    lines = [f"{job},K80,async,1,1,{1 + row / 1e4},train,0.1,0.1,0.1" for row in range(rows)]
    header = "job,device,sync,nodes,workers,steps_per_s,split,compute_s,download_s,upload_s"
    path.write_text("\n".join([header, *lines]) + "\n")
    if cut and rows > BATCH_ROWS:
        table = read_table(path)
        content = profile_content(table, job)
        session = _session(table, content, list(range(rows)))
        with (
            suppress(_CutError),
            Client(server) as client,
            client.ingest(job, session_id=session, batch_rows=BATCH_ROWS, linger_s=1000.0) as writer,
        ):
            writer.facts(workload=content.workload, network=content.network)
            writer.phases(timings_of(table, range(BATCH_ROWS)))
            assert writer.flush() == 1
            raise _CutError
    found = Ran("ingest", path, "--server", server, "--json").document["profiles"][job]
    assert (found["revision"], found["observations"], found["traces"]) == (1, rows, 0)
    again = Ran("ingest", path, "--server", server, "--json").document["profiles"][job]
    assert again == found | {"already_there": rows}
    with Client(server) as client:
        stored = client.get_profile(job).content
    assert stored is not None
    assert stored.phase_timings is not None
    assert len(stored.phase_timings.compute_seconds) == rows


def test_help_and_version() -> None:
    for command in ("serve", "ingest", "predict", "schedule", "backtest", "estimators", "plugins", "health"):
        assert Ran(command, "--help").status == 0
    assert Ran("--version").out.startswith("nodewise ")


def test_the_best_estimator_is_first_and_marked_and_equal_rows_stand_once(tmp_path: Path) -> None:
    lines = Ran("backtest", TESTBED, "--estimator", "all").out.splitlines()
    rows = lines[2 : lines.index("")]
    assert rows[0].startswith("->  queueing")
    assert [line for line in rows if line.startswith("->")] == rows[:1]
    assert [line for line in rows if " sync sync, s2 " in line]
    assert len([line for line in rows if "unseen" in line]) == 1
    one_job = tmp_path / "t.csv"
    lines = Path(TESTBED).read_text().splitlines()
    one_job.write_text("\n".join(line for line in lines if line.startswith(("job,", "a1,"))))
    scores = [line for line in Ran("backtest", one_job).out.splitlines() if " auto " in line]
    assert len(scores) == 1


def test_a_template_is_a_table_that_predicts(tmp_path: Path) -> None:
    template = tmp_path / "runs.csv"
    template.write_text(Ran("ingest", "--template").out)
    answer = Ran("predict", template, "--nodes", "8", "--json").document
    assert answer["predictions"][0]["samples_per_s"] > 72_400


@pytest.mark.parametrize("name", ["H100", "h100 sxm", "NVIDIA H100 80GB HBM3", "H100 80GB"])
def test_a_device_by_any_of_its_names(name: str) -> None:
    (device,) = Ran("devices", name, "--json").document["devices"]
    assert device["name"] == "H100"
    assert "H100-SXM" in device["aliases"]
    assert device["facts"]["memory_bytes"] == 80e9


def test_the_nearest_names_of_a_device_that_is_not_known() -> None:
    ran = Ran("devices", "Hopper")
    assert ran.status == 2
    assert ran.complaint.startswith("the catalogue has no device 'Hopper'; nearest are ")
    assert {"H100", "H200", "GH200"} < set(ran.complaint.partition("nearest are ")[2].split(", "))


def test_wide_tables_have_a_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    arguments = ("predict", TESTBED, "--job", "a1", "--nodes", "1-4")
    rows = [line for line in Ran(*arguments, "--wide").out.partition("──\n")[2].split("\n\n")[0].splitlines() if line]
    assert len(rows) == 4
    assert max(map(len, rows)) > 60
    assert len(Ran(*arguments).out.partition("──\n")[2].split("\n\n")[0].splitlines()) > 4
