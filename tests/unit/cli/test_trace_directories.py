"""Which files of a directory are traces, and which formats are refused with the command that exports them."""

from __future__ import annotations

import os
from pathlib import Path

import foreign_traces as foreign
import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.trace_files import trace_files


def test_dumps_without_a_suffix_have_the_rank_of_their_name(tmp_path: Path) -> None:
    for rank in (0, 1, 10):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(foreign.pickled(foreign.flight_recorder()))
    (tmp_path / "notes.txt").write_text("no trace")
    assert [(file.path.name, file.rank) for file in trace_files([tmp_path])] == [
        ("nccl_trace_rank_0", 0),
        ("nccl_trace_rank_1", 1),
        ("nccl_trace_rank_10", 10),
    ]


def test_of_a_jax_profile_the_xplane_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "plugins" / "profile" / "2026_11_20"
    folder.mkdir(parents=True)
    for name in ("host.xplane.pb", "host.trace.json.gz", "perfetto_trace.json.gz"):
        (folder / name).write_bytes(b"\x0a\x00")
    assert [file.path.name for file in trace_files([tmp_path])] == ["host.xplane.pb"]
    assert capsys.readouterr().err.count("left out: the xplane file beside it has the same data") == 2


def test_traces_of_pytorch_beside_an_xplane_stay(tmp_path: Path) -> None:
    (tmp_path / "host.xplane.pb").write_bytes(b"\x0a\x00")
    (tmp_path / "worker0.pt.trace.json").write_text('{"traceEvents": []}')
    assert len(trace_files([tmp_path])) == 2


@pytest.mark.parametrize("name", ["run.nsys-rep", "run.qdrep"])
def test_reports_that_only_their_tool_reads_name_the_export(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"report")
    with pytest.raises(InputError, match=rf"nsys export --type sqlite {name}"):
        trace_files([tmp_path / name])


def test_files_that_cannot_be_traces(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for name, text in (("empty.json", "is empty"), ("pipe", "must be a file or a directory of traces")):
        with pytest.raises(InputError) as caught:
            trace_files([tmp_path / name])
        assert str(caught.value) == f"{tmp_path / name}: {text}"
