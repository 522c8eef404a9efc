"""How fast a job was, as it says itself; a job may write anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nodewise_integrations.slurm.measured import NothingMeasuredError, expanded, measured_by
from nodewise_integrations.slurm.note import VARIABLE, Note, note_of

JOB = {
    "SLURM_JOB_ID": "12",
    "SLURM_ARRAY_JOB_ID": "10",
    "SLURM_ARRAY_TASK_ID": "2",
    "SLURM_JOB_NAME": "a job",
    "SLURM_JOB_USER": "me",
    "SLURMD_NODENAME": "n1.cluster",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def note(pattern: str = "") -> Note:
    return Note(profile="a", measured="m-%j.json", output="out", pattern=pattern)


def test_the_file_that_a_job_writes() -> None:
    told = {"steps_per_second": 3.9, "steps": 1200, "step_variation": 0, "measured_memory_bytes": 1e9}
    Path("m-12.json").write_text(json.dumps(told))
    os.utime("m-12.json", (5.0, 5.0))
    found = measured_by(note(), JOB)
    assert (found.steps_per_second, found.steps, found.step_variation, found.measured_memory_bytes) == (
        3.9,
        1200,
        0,
        1e9,
    )
    assert found.at_unix_seconds == 5.0


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object with steps_per_second"),
        ("{}", "must be an object with steps_per_second"),
        ('{"steps_per_second": 1, "rate": 2}', "no keys but"),
        ('{"steps_per_second": 0}', "steps_per_second must be a number above 0, found 0"),
        ('{"steps_per_second": NaN}', "steps_per_second must be a number above 0, found nan"),
        ('{"steps_per_second": true}', "found True"),
        ('{"steps_per_second": "1"}', "found '1'"),
        ('{"steps_per_second": 1, "steps": -4}', "steps must be a number above 0, found -4"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(text: str, wrong: str) -> None:
    Path("m-12.json").write_text(text)
    with pytest.raises(NothingMeasuredError, match=wrong) as caught:
        measured_by(note(), JOB)
    assert "m-12.json" in str(caught.value)


def test_the_median_of_the_later_half_of_the_output() -> None:
    Path("out").write_bytes(b"rate 0.1\nrate 9\xff\nno\nrate 3.0 x\nrate 5\nrate 1,000.5\n")
    assert measured_by(note(r"rate ([\d.,]+)"), JOB).steps_per_second == 5.0
    Path("out").write_text("rate 2\n")
    assert measured_by(note(r"rate (\S+)"), JOB).steps_per_second == 2.0


@pytest.mark.parametrize(
    ("output", "wrong"),
    [
        (None, "this output file does not exist"),
        ("", "no line matches"),
        ("rate 0", "no line matches"),
        ("rate x", "not a number"),
    ],
)
def test_an_output_that_tells_nothing(output: str | None, wrong: str) -> None:
    if output is not None:
        Path("out").write_text(output)
    with pytest.raises(NothingMeasuredError, match=wrong):
        measured_by(note(r"rate (\S+)"), JOB)


def test_what_is_no_plain_file_is_not_waited_for() -> None:
    os.mkfifo("m-12.json")
    with pytest.raises(NothingMeasuredError, match="is not a regular file"):
        measured_by(note(), JOB)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("slurm-%j.out", "slurm-12.out"),
        ("%A_%4a", "10_0002"),
        ("%x-%u-%N-%n%t%%j", "a job-me-n1-00%j"),
        ("/a/%J", "/a/12"),
        ("%q", "%q"),
    ],
)
def test_names_are_made_as_slurm_makes_them(pattern: str, name: str, folder: Path) -> None:
    assert expanded(pattern, JOB) == (Path(name) if name.startswith("/") else folder / name)


def test_a_note_goes_with_the_job() -> None:
    sent = Note(profile="a", measured="m", output="o", workers_per_node=4, columns={"devices": "T4"}, server="s:1")
    assert note_of({VARIABLE: sent.text()}) == sent
    assert note_of({}) is None
    for wrong in ("{", "[]", '{"profile": "a", "other": 1}'):
        with pytest.raises(ValueError, match="NODEWISE_JOB cannot be read"):
            note_of({VARIABLE: wrong})
