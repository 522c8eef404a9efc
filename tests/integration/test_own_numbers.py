"""Numbers as people have them: from a table or the command line, in one unit, and doubted where they must be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import AppendProfileRequest, Client, ProfileContent, configurations, observations

MEASURED = "1=19800,2=38100,4=72400"
ROWS = ((1, 8, 19800), (2, 16, 38100), (4, 32, 72400))
TABLE = "job,device,nodes,workers,{unit},batch_per_worker\n" + "".join(
    f"r,A100,{nodes},{workers},{rate},256\n" for nodes, workers, rate in ROWS
)


def ran(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "80"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def told(*arguments: str | Path) -> dict[str, Any]:
    result = ran(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def written(folder: Path, text: str, name: str = "own.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def reasons(found: dict[str, Any]) -> set[str]:
    return {each["reason"] for each in found["warnings"]}


@pytest.fixture
def server() -> Iterator[str]:
    with EmbeddedServer() as embedded:
        yield embedded.target


def test_a_table_in_samples_per_second_is_answered_in_them(tmp_path: Path) -> None:
    table = written(tmp_path, TABLE.format(unit="samples_per_s"))
    found = told("predict", table, "--nodes", "1,2,4,8")
    rates = [row["samples_per_s"] for row in found["predictions"]]
    assert rates[:3] == pytest.approx([rate for _, _, rate in ROWS], rel=0.05)
    assert 72400 < rates[3] < 2 * 72400
    assert found["predictions"][0]["step_s"] == pytest.approx(2048 / 19800, rel=0.05)
    assert not reasons(found) & {"STEPS_TOO_SHORT", "MORE_THAN_LINEAR", "BATCH_NOT_STATED"}


def test_samples_per_second_as_steps_are_doubted(tmp_path: Path) -> None:
    found = told("predict", written(tmp_path, TABLE.format(unit="steps_per_s")), "--nodes", "1,2,4,8")
    assert {"STEPS_TOO_SHORT", "MORE_THAN_LINEAR"} <= reasons(found)
    shown = " ".join(ran("predict", tmp_path / "own.csv", "--nodes", "1,2").stdout.split())
    assert "are these samples/s? A table takes those in a column samples_per_s" in shown
    bare = "job,device,nodes,workers,steps_per_s\n" + "".join(f"r,A100,{n},{w},{x}\n" for n, w, x in ROWS)
    assert {"STEPS_TOO_SHORT", "MORE_THAN_LINEAR"} <= reasons(told("predict", written(tmp_path, bare), "--nodes", "8"))


def test_measured_without_a_file_or_a_batch_is_told_in_samples_alone() -> None:
    given = ("--measured", MEASURED, "--gpus-per-node", "8", "--device", "A100", "--nodes", "1,2,4,8")
    found = told("predict", *given)
    rows = found["predictions"]
    assert [row["workers"] for row in rows] == [8, 16, 32, 64]
    assert [row["samples_per_s"] for row in rows[:3]] == pytest.approx([19800, 38100, 72400], rel=0.05)
    for row in rows:
        assert row["lower_samples_per_s"] < row["samples_per_s"] < row["upper_samples_per_s"]
        assert (row["step_s"], row["steps_per_s"], row["lower_steps_per_s"], row["breakdown"]) == (None, None, None, {})
    assert "BATCH_NOT_STATED" in reasons(found)
    assert "samples/s" in found["recommended"]["why"]
    assert "samples_per_s" in found["recommended"]["numbers"]
    assert "step s" not in ran("predict", *given).stdout


def test_measured_runs_predict_as_their_table(tmp_path: Path) -> None:
    table = written(tmp_path, TABLE.format(unit="samples_per_s"))
    of_table = told("predict", table, "--nodes", "1-8")
    given = ("--measured", MEASURED, "--gpus-per-node", "8", "--device", "A100", "--nodes", "1-8")
    assert told("predict", *given, "--batch-per-worker", "256")["predictions"] == of_table["predictions"]
    in_ms = ",".join(f"{nodes}={1e3 * 256 * workers / rate!r}" for nodes, workers, rate in ROWS)
    of_steps = told("predict", "--measured", in_ms, *given[2:], "--unit", "ms/step", "--batch-per-worker", "256")
    assert [row["samples_per_s"] for row in of_steps["predictions"]] == pytest.approx(
        [row["samples_per_s"] for row in of_table["predictions"]]
    )


def test_a_larger_batch_changes_no_samples_per_second_of_what_was_measured() -> None:
    found = [
        told("predict", "--measured", MEASURED, "--gpus-per-node", "8", "--nodes", "8", *batch)["predictions"][0]
        for batch in ((), ("--batch-per-worker", "64"), ("--batch-per-worker", "256"))
    ]
    assert [row["samples_per_s"] for row in found] == pytest.approx([found[0]["samples_per_s"]] * 3, rel=0.05)


def test_tokens_per_second_stay_tokens() -> None:
    given = ("--measured", "1=198000,2=381000", "--nodes", "1,2,4", "--gpus-per-node", "8", "--unit", "tokens/s")
    found = told("predict", *given)
    row = found["predictions"][1]
    assert row["tokens_per_s"] == pytest.approx(381000, rel=0.05)
    assert row["tokens_per_s_per_device"] == pytest.approx(row["tokens_per_s"] / 16)
    assert (row["samples_per_s"], row["lower_samples_per_s"], row["step_s"]) == (None, None, None)
    assert "tokens/s" in found["recommended"]["why"]
    assert "samples" not in found["recommended"]["why"]
    known = told("predict", *given, "--batch-per-worker", "2", "--sequence-length", "2048")["predictions"][1]
    assert known["samples_per_s"] == pytest.approx(381000 / 2048, rel=0.05)
    assert known["tokens_per_s"] == pytest.approx(381000, rel=0.05)
    assert known["step_s"] == pytest.approx(16 * 2 * 2048 / 381000, rel=0.05)
    table = ran("predict", *given, "--batch-per-worker", "2", "--sequence-length", "2048").stdout
    assert "samples/s" in table
    assert "tokens/s" in table
    assert all(len(line) <= 80 for line in table.splitlines())


def test_a_stored_transformer_is_told_in_tokens_too(server: str, tmp_path: Path) -> None:
    header = "job,device,nodes,workers,tokens_per_s,batch_per_worker,layers,hidden_size,attention_heads,"
    text = f"{header}sequence_length,vocabulary_size\ngpt,A100,1,8,80000,4,12,768,12,1024,50257\n"
    assert ran("ingest", written(tmp_path, text), "--server", server).exit_code == 0
    (row,) = told("predict", "--profile", "gpt", "--nodes", "1", "--server", server)["predictions"]
    assert row["tokens_per_s"] == pytest.approx(1024 * row["samples_per_s"])


def test_without_any_batch_table_and_sentence_are_in_steps(tmp_path: Path) -> None:
    text = "job,device,nodes,workers,steps_per_s\nr,A100,1,8,9.668\nr,A100,2,16,9.302\nr,A100,4,32,8.838\n"
    found = told("predict", written(tmp_path, text), "--nodes", "1,2,4,8")
    why, first = found["recommended"]["why"], found["predictions"][0]["steps_per_s"]
    assert "steps/s of 8 workers" in why
    assert f"of the {first:.4g} at 1" in why
    assert "mini-batches" not in why


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--measured", "1:19800"), "--measured: must be NODES=THROUGHPUT pairs, such as 1=19800"),
        (("--measured", "1=fast"), "--measured: the throughput on 1 nodes must be a finite number above 0 (samples/s)"),
        (("--measured", "1=2", "--unit", "throughput"), "--unit: must be steps_per_s, it_per_s, samples_per_s"),
        (("--measured", "1=2", "own.csv"), "--measured: must be given alone"),
        (("--gpus-per-node", "8", "own.csv"), "--gpus-per-node: needs --measured"),
        (
            ("--measured", "1=2", "--unit", "tokens_per_s", "--batch-per-worker", "2"),
            "--measured: cannot be converted to samples without their length: state sequence_length",
        ),
        (
            ("--measured", "1=2", "--unit", "tokens_per_s", "--samples", "5"),
            "--samples: the tokens of a sample are not known; state the column sequence_length",
        ),
    ],
)
def test_measured_runs_that_cannot_be_read(arguments: tuple[str, ...], said: str) -> None:
    result = ran("predict", *arguments, "--nodes", "1")
    assert result.exit_code == 2
    assert said in result.stderr


def test_another_batch_needs_the_one_that_was_measured(tmp_path: Path) -> None:
    text = "model,gpu,nodes,gpus,images/sec\nr,A100,1,8,19800\nr,A100,2,16,38100\n"
    table = written(tmp_path, text)
    assert told("predict", table, "--nodes", "2")["predictions"][0]["samples_per_s"] == pytest.approx(38100, rel=0.05)
    result = ran("predict", table, "--nodes", "2", "--global-batch", "512")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--global-batch: needs the measured batch: state batch_per_worker" in result.stderr


def test_what_is_stored_needs_the_batch(server: str, tmp_path: Path) -> None:
    text = "model,gpu,nodes,gpus,images/sec\nr,A100,1,8,19800\n"
    result = ran("ingest", written(tmp_path, text), "--server", server)
    assert result.exit_code == 2
    assert (
        ":2: column images/sec: cannot be converted to steps without the batch: state batch_per_worker" in result.stderr
    )


def test_a_table_to_be_predicted_needs_no_throughput(tmp_path: Path) -> None:
    header = "job,device,nodes,workers,batch_per_worker,layers,hidden_size,attention_heads,sequence_length"
    text = f"{header},vocabulary_size\ngpt,A100,1,8,4,12,768,12,1024,50257\n"
    (row,) = told("predict", written(tmp_path, text), "--nodes", "1", "--workers-per-node", "8")["predictions"]
    assert row["status"] == "answered"


def test_the_picture_is_in_the_unit_of_the_table(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "own.svg"
    arguments = ("--measured", "1=198000,2=381000", "--unit", "tok/s", "--nodes", "1-4", "--plot", picture)
    assert ran("predict", *arguments).exit_code == 0
    assert "throughput (tokens per second)" in picture.read_text()


def test_rows_that_are_there_are_not_counted_twice(server: str, tmp_path: Path) -> None:
    table = written(tmp_path, TABLE.format(unit="samples_per_s"))
    assert told("ingest", table, "--server", server)["profiles"]["r"]["already_there"] == 0
    corrected = written(tmp_path, TABLE.format(unit="samples_per_s").replace("72400", "73400"), "corrected.csv")
    result = ran("ingest", corrected, "--server", server)
    assert "2 of 3 rows are stored already, and are not counted twice" in " ".join(result.stdout.split())
    with Client(server) as client:
        assert client.get_profile("r").observations_count == 4


def test_a_corrected_table_takes_the_place_of_what_was_there(server: str, tmp_path: Path) -> None:
    text = TABLE.format(unit="samples_per_s").replace("batch_per_worker\n", "batch_per_worker,parameter_bytes\n")
    first = written(tmp_path, text.replace(",256\n", ",256,1000\n"))
    second = written(tmp_path, text.replace(",256\n", ",256,2000\n").replace("72400", "73400"), "corrected.csv")
    told("ingest", first, "--server", server)
    refused = ran("ingest", second, "--server", server)
    assert refused.exit_code == 2
    assert "parameter_bytes" in refused.stderr
    found = told("ingest", second, "--replace", "--server", server)["profiles"]["r"]
    assert (found["observations"], found["already_there"], found["retracted"]) == (3, 2, 1)
    with Client(server) as client:
        held = client.get_profile("r")
        assert held.content is not None
        assert held.content.workload is not None
        assert held.content.workload.parameter_bytes == 2000
        assert held.content.observations is not None
        assert held.content.observations.steps_per_second[-1] == pytest.approx(73400 / (32 * 256))
    again = told("ingest", second, "--replace", "--server", server)["profiles"]["r"]
    assert (again["revision"], again["already_there"], again["retracted"]) == (found["revision"], 3, 0)
    back = told("ingest", first, "--replace", "--server", server)["profiles"]["r"]
    assert (back["observations"], back["retracted"]) == (3, 1)


def test_what_was_taken_out_by_hand_stays_out_unless_replaced(server: str, tmp_path: Path) -> None:
    table = written(tmp_path, TABLE.format(unit="samples_per_s"))
    told("ingest", table, "--server", server)
    told("profiles", "retract", "r", "--observations", "3", "--server", server)
    found = told("ingest", table, "--server", server)["profiles"]["r"]
    assert (found["observations"], found["already_there"], found["left_out"]) == (2, 2, 1)
    assert told("ingest", table, "--replace", "--server", server)["profiles"]["r"]["observations"] == 3


def test_a_table_without_measured_rows_replaces_nothing(server: str, tmp_path: Path) -> None:
    told("ingest", written(tmp_path, TABLE.format(unit="samples_per_s")), "--server", server)
    text = "job,device,nodes,workers,steps_per_s,split\nr,A100,1,8,9,test\n"
    result = ran("ingest", written(tmp_path, text, "test.csv"), "--replace", "--server", server)
    assert result.exit_code == 2
    assert "has no measured train row" in result.stderr


def test_doubts_are_told_by_ingest_and_by_every_way_into_a_profile(server: str, tmp_path: Path) -> None:
    wrong = written(tmp_path, TABLE.format(unit="steps_per_s"))
    found = told("ingest", wrong, "--server", server)["profiles"]["r"]
    assert {"STEPS_TOO_SHORT", "MORE_THAN_LINEAR"} <= reasons(found)
    assert "Note: r: 3 of 3 runs are doubtful" in ran("ingest", wrong, "--server", server).stdout
    ran_on = configurations(nodes=[1, 1, 2], workers=[8, 8, 16], devices="A100", sync_modes="allreduce")
    runs = observations(configurations=ran_on, steps_per_second=[10.0, 3.0, 2.9])
    with Client(server) as client:
        request = AppendProfileRequest(profile_id="x", request_id="a", content=ProfileContent(observations=runs))
        appended = client.append_profile(request)
        assert {each.reason for each in appended.warnings} == {"RUNS_CONTRADICT"}
        assert {each.reason for each in client.get_profile("x").warnings} == {"RUNS_CONTRADICT"}
        assert all(not each.warnings for each in client.list_profiles())
