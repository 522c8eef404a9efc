"""The figures of research/partitioning_layered.md, from the scripts that print them."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
from measurements import DATA

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "research" / "partitioning_layered.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.data


def printed(script: str, tables: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", [script, *(str(DATA / table) for table in tables)])
    monkeypatch.syspath_prepend(str(ROOT / "research"))  # as Python does for a script
    runpy.run_path(str(ROOT / "research" / script), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "rows", "begins"),
    [
        ("measurements/elasticflow_a100_8_to_64.csv", 21, "| ElasticFlow, VGG-16"),
        ("measurements/tf_ec2_sync_ps.csv", 10, "| TensorFlow on EC2, Inception V3"),
    ],
)
def test_measured_tables(
    table: str, rows: int, begins: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed("score_layered.py", [table], monkeypatch, capsys).splitlines()[-1]
    found = re.fullmatch(r"mean \|ln ratio\| ([\d.]+), mean ln ratio (-?[\d.]+), (\d+) rows", said)
    assert found is not None
    assert int(found[3]) == rows
    (line,) = [line for line in PAGE.splitlines() if line.startswith(begins)]
    assert [float(cell) for cell in line.split("|")[2:5]] == [rows, float(found[1]), float(found[2])]


def test_beside_paradl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = printed("compare_paradl.py", ["plan/paradl_table8_measured_vs_projected.csv"], monkeypatch, capsys)
    for name, begins in (("here", "| here, from facts |"), ("ParaDL", "| ParaDL, from timed layers |")):
        found = re.search(rf"^{name}: mean ([\d.]+) %, median ([\d.]+) %, bias (-[\d.]+) %$", said, re.MULTILINE)
        assert found is not None
        assert f"{begins} {found[1]} % | {found[2]} % | {found[3]} % |" in PAGE
    assert "(Spearman, all cells, log): 0.89" in said
