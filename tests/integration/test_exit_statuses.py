"""Exit statuses of every command that answers: 0 answered, 1 failure, 2 bad input, 3 nothing could be answered."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples"
TRACE = EXAMPLES / "traces" / "rank0.json.gz"
LARGE = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}
"""A model that fits on no single device."""
ALONE = ("--nodes", "1", "--workers-per-node", "1", "--device", "A100-40GB", "--global-batch", "64")


def ran(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def document(result: Result) -> dict[str, Any]:
    """The one JSON object on standard output."""
    assert result.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def error(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stderr.splitlines()[-1])["error"]
    return found


def written(path: Path, held: object) -> Path:
    path.write_text(held if isinstance(held, str) else json.dumps(held))
    return path


def test_predict_where_no_row_fits(tmp_path: Path) -> None:
    config = written(tmp_path / "config.json", LARGE)
    result = ran("predict", config, *ALONE, "--json")
    assert result.exit_code == 3, result.stderr
    assert [row["status"] for row in document(result)["predictions"]] == ["infeasible_memory"]
    assert (error(result)["code"], error(result)["reason"]) == ("FAILED_PRECONDITION", "REFUSED")
    assert "GiB too much" in error(result)["message"]
    shown = ran("predict", config, *ALONE)
    assert shown.exit_code == 3
    assert "does not fit" in shown.stdout


def test_predict_and_suggest_where_no_row_is_answered(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", "job,device,nodes,workers,steps_per_s,split\na,K80,1,1,,test\n")
    for command in ("predict", "suggest"):
        result = ran(command, table, "--nodes", "1-4", "--sync", "async", "--json")
        assert (result.exit_code, error(result)["reason"]) == (3, "EVIDENCE_MISSING")


def test_suggest_where_no_row_fits(tmp_path: Path) -> None:
    result = ran("suggest", written(tmp_path / "config.json", LARGE), *ALONE, "--json")
    assert (result.exit_code, error(result)["reason"]) == (3, "OBJECTIVE_UNREACHABLE")


def test_predict_where_one_row_is_answered() -> None:
    assert ran("predict", EXAMPLES / "testbed.csv", "--job", "a1", "--workers", "1-4", "--json").exit_code == 0


@pytest.mark.parametrize("options", [[], ["--also-train", "workers>=1"]])
def test_backtest_without_a_test_row(tmp_path: Path, options: list[str]) -> None:
    rows = "a,K80,1,1,5,train\na,K80,2,2,9,test\n" if options else "a,K80,1,1,5,train\na,K80,2,2,9,\n"
    table = written(tmp_path / "t.csv", f"job,device,nodes,workers,steps_per_s,split\n{rows}")
    for last in ([], ["--json"]):
        result = ran("backtest", table, *options, *last)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "has no test row to predict and score" in result.stderr


def test_backtest_without_a_measured_test_row(tmp_path: Path) -> None:
    phases = "compute_s,download_s,upload_s,update_s"
    head = f"job,device,sync,nodes,workers,parameter_servers,batch_per_worker,{phases},steps_per_s,split"
    rows = "a,K80,async,1,1,1,32,0.3,0.16,0.16,0.005,1.6,train\na,K80,async,2,2,1,32,,,,,,test\n"
    table = written(tmp_path / "t.csv", f"{head}\n{rows}")
    result = ran("backtest", table)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "state steps_per_s or fitted or measured_memory_bytes in some test row" in result.stderr
    assert ran("backtest", table, "--predictions", tmp_path / "out.csv").exit_code == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[1].endswith(",answered,K80,2,2,async,1,32,1,,")


def test_backtest_where_every_test_row_is_refused(tmp_path: Path) -> None:
    table = written(
        tmp_path / "t.csv",
        "job,device,sync,nodes,workers,steps_per_s,split\na,A100,async,1,1,5,train\na,A100,async,2,2,9,test\n",
    )
    result = ran("backtest", table, "--json")
    assert result.exit_code == 3
    assert document(result)["estimators"]["auto"]["refused"] == 1


def test_rank_where_no_row_is_answered() -> None:
    asked = ["--device", "K80", "--batch", "128", "--workers", "4", "--json"]
    result = ran("rank", EXAMPLES / "architectures.csv", *asked)
    assert result.exit_code == 3
    assert document(result)["architectures"]
    assert error(result)["message"].startswith("no row was answered: ")


def test_plan_where_nothing_is_feasible(tmp_path: Path) -> None:
    spec = json.loads((EXAMPLES / "plan_22b_64_devices.json").read_text())
    spec["constraints"] = {**spec.get("constraints", {}), "memory_headroom_bytes": 1e15}
    result = ran("plan", written(tmp_path / "spec.json", spec), "--json")
    assert result.exit_code == 3
    assert document(result)["best"] is None


def test_spot_where_no_offer_is_answered(tmp_path: Path) -> None:
    spec = {"work": {"samples": 1e6}, "offers": [{"name": "x", "groups": [{"nodes": 2}]}]}
    result = ran("spot", written(tmp_path / "spec.json", spec), "--json")
    assert result.exit_code == 3
    assert document(result)
    assert error(result)["message"].startswith("no offer was answered: ")


def test_share_where_no_set_is_answered(tmp_path: Path) -> None:
    spec = json.loads((EXAMPLES / "share.json").read_text())
    for job in spec["jobs"]:
        for table in [job["profile"]] if "table" in job.get("profile", {}) else []:
            table["table"] = str(EXAMPLES / table["table"])
    spec["sets"] = [{"jobNames": [spec["jobs"][0]["name"], "nobody"]}]
    result = ran("share", written(tmp_path / "spec.json", spec), "--json")
    assert result.exit_code == 3, result.stderr
    assert document(result)["sets"][0]["verdict"] is None


def test_schedule_where_no_job_is_answered(tmp_path: Path) -> None:
    job = {"jobId": "x", "profile": {"profileId": "none"}, "remainingSamples": 5}
    pools = [{"name": "p", "deviceName": "K80", "availableDevices": [1]}]
    asked = {"cluster": {"pools": pools}, "jobs": [job]}
    result = ran("schedule", written(tmp_path / "request.json", asked), "--json")
    assert result.exit_code == 3
    assert document(result)["allocations"][0]["action"] == "NO_ANSWER"


@pytest.mark.parametrize("command", ["simulate", "sweep"])
def test_a_simulation_where_no_job_ever_finishes(tmp_path: Path, command: str) -> None:
    spec = {
        "jobs": [{"job": "a", "arrival_s": 0, "samples": 8, "curve": "c", "requested_devices": 4, "rigid": True}],
        "curves": {"c": {"samples_per_s": {"v100": {"4": 1}}}},
        "cluster": {"v100": "1x2"},
        "policy": "fifo",
    }
    result = ran(command, written(tmp_path / "spec.json", spec), "--json")
    (found,) = document(result).get("simulations", [document(result)])
    assert (result.exit_code, found["finished"]) == (3, 0)
    assert "no job finishes" in error(result)["message"]


def test_sweep_where_a_simulation_fails(tmp_path: Path) -> None:
    spec = {
        "jobs": [{"job": "a", "arrival_s": 0, "samples": 8, "curve": "c"}],
        "curves": {"c": {"samples_per_s": {"v100": {"1": 1}}}},
        "cluster": {"v100": 2},
        "policy": ["fifo", "nobody"],
    }
    result = ran("sweep", written(tmp_path / "spec.json", spec), "--processes", "1", "--json")
    assert (result.exit_code, error(result)["reason"]) == (1, "SIMULATION_FAILED")
    assert len(document(result)["simulations"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        *(["predict", "FILE", "--nodes", "1"], ["suggest", "FILE", "--nodes", "1"], ["backtest", "FILE"]),
        *(["rank", "FILE", "--device", "K80", "--batch", "1"], ["plan", "FILE"], ["spot", "FILE"], ["share", "FILE"]),
        *(["schedule", "FILE"], ["simulate", "FILE"], ["sweep", "FILE"], ["replay", "FILE"], ["diagnose", "FILE"]),
        ["ingest", "FILE", "--server", "127.0.0.1:1"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path, arguments: list[str]) -> None:
    result = ran(*(str(tmp_path / "nowhere.json") if each == "FILE" else each for each in arguments), "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no such file" in error(result)["message"]


# --- traces that end early


def _packed_cut(whole: bytes) -> bytes:
    return gzip.compress(whole)[: len(gzip.compress(whole)) * 2 // 3]


def _trailer_cut(whole: bytes) -> bytes:
    return gzip.compress(whole)[:-5]


def _text_cut(whole: bytes) -> bytes:
    return whole[: len(whole) * 2 // 3]


def _cut_behind_an_event(whole: bytes) -> bytes:
    return whole[: whole.index(b"}", whole.index(b"}", len(whole) * 2 // 3)) + 1]


CUT = pytest.mark.parametrize(
    ("suffix", "cut"),
    [
        (".json.gz", _packed_cut),
        (".json.gz", _trailer_cut),
        (".json", _text_cut),
        (".json", _cut_behind_an_event),
    ],
    ids=["packed", "trailer", "text", "behind-an-event"],
)
Cut = Callable[[bytes], bytes]


def cut_trace(tmp_path: Path, suffix: str, cut: Cut) -> Path:
    path = tmp_path / f"rank0{suffix}"
    path.write_bytes(cut(gzip.decompress(TRACE.read_bytes())))
    return path


@CUT
@pytest.mark.parametrize("command", ["diagnose", "replay"])
def test_no_verdict_of_a_trace_that_ends_early_unless_asked_for(
    tmp_path: Path, suffix: str, cut: Cut, command: str
) -> None:
    path = cut_trace(tmp_path, suffix, cut)
    for last in ([], ["--json"]):
        refused = ran(command, path, *last)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "the trace of rank 0 ends early" in " ".join(refused.stderr.split())
        assert "--allow-truncated" in refused.stderr
    allowed = ran(command, path, "--allow-truncated", "--json")
    assert allowed.exit_code == 1
    (limit,) = document(allowed)["truncated"]
    assert "the trace of rank 0 ends early, after " in limit
    assert limit in error(allowed)["message"]
    shown = ran(command, path, "--allow-truncated")
    assert shown.exit_code == 1
    assert " ".join(shown.stdout.split()).startswith(f"Limited: {limit}")


@CUT
def test_a_trace_that_ends_early_is_not_stored_unless_asked_for(tmp_path: Path, suffix: str, cut: Cut) -> None:
    path = cut_trace(tmp_path, suffix, cut)
    with EmbeddedServer() as server:
        asked: list[str | Path] = ["ingest", path, "--profile", "cut", "--server", server.target, "--json"]
        for keep in ([], ["--keep-names"]):
            refused = ran(*asked, *keep)
            assert (refused.exit_code, refused.stdout) == (2, "")
            assert "--allow-truncated" in error(refused)["message"]
        assert "cut" not in ran("profiles", "list", "--server", server.target, "--json").stdout
        allowed = ran(*asked, "--allow-truncated")
        assert allowed.exit_code == 1
        assert document(allowed)["profiles"]["cut"]["traces"] == 1
        assert str(path) in document(allowed)["truncated"][0]
        stored: list[str | Path] = ["diagnose", "--profile", "cut", "--server", server.target, "--json"]
        if cut is not _trailer_cut:  # nothing of its text is missing: it is stored whole
            assert ran(*stored).exit_code == 2
            assert ran(*stored, "--allow-truncated").exit_code == 1
        sent = ran("diagnose", path, "--server", server.target, "--allow-truncated", "--json")
        assert sent.exit_code == (0 if cut is _trailer_cut else 1), sent.stderr


def test_a_packed_graph_that_ends_early_is_not_stored(tmp_path: Path) -> None:
    (tmp_path / "rank0.et.gz").write_bytes(gzip.compress(bytes(range(256)) * 64)[:-20])
    with EmbeddedServer() as server:
        result = ran("ingest", tmp_path / "rank0.et.gz", "--server", server.target, "--json")
    assert result.exit_code == 2
    assert "the compressed file is damaged or ends early" in error(result)["message"]


def test_a_trace_whose_texts_hold_brackets_is_whole(tmp_path: Path) -> None:
    whole = gzip.decompress(TRACE.read_bytes()).replace(b"ProfilerStep#", b"{[{[ ProfilerStep#", 1)
    (tmp_path / "rank0.json").write_bytes(whole)
    with EmbeddedServer() as server:
        asked: list[str | Path] = ["ingest", tmp_path / "rank0.json", "--server", server.target, "--json"]
        assert ran(*asked).exit_code == 0
