"""Reports of answers: a page that needs nothing but itself, and Markdown with its picture beside it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, page
from typer.testing import CliRunner

from nodewise_cli.app import app
from nodewise_cli.reports import command_line

pytest.importorskip("matplotlib", reason="reports draw their picture, and matplotlib is an extra")

EXAMPLES = Path(__file__).parents[2] / "examples"
SIMULATION = EXAMPLES / "simulation"
TABLE = (
    "job,device,nodes,workers,samples_per_s,batch_per_worker\n{name},A100,1,8,19800,256\n{name},A100,2,16,38100,256\n"
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(TABLE.format(name="<b>x</b>|y"))
    return path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def run(*arguments: str | Path) -> Any:
        words = [str(each) for each in arguments]
        monkeypatch.setattr(sys, "argv", ["nodewise", *words])
        return CliRunner().invoke(app, words)

    return run


def test_a_page_has_sentence_picture_table_grounds_and_command(
    ran: Callable[..., Any], tmp_path: Path, table: Path
) -> None:
    path = tmp_path / "out.html"
    result = ran("predict", table, "--nodes", "1-4", "--report", path)
    assert result.exit_code == 0
    assert "Based on:" in result.stdout  # the answer is printed too
    page = path.read_text()
    assert "<h1>&lt;b&gt;x&lt;/b&gt;|y: " in page
    assert "<b>" not in page
    assert len(re.findall("<tr><td", page)) == 4
    for part in ('src="data:image/svg+xml;base64,', "What it rests on", "Notes", "Ask again", "--nodes 1-4"):
        assert part in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "default-src 'none'" in page


def test_markdown_has_its_picture_beside_it(ran: Callable[..., Any], tmp_path: Path, table: Path) -> None:
    path = tmp_path / "out.md"
    assert ran("predict", table, "--nodes", "1-4", "--report", path).exit_code == 0
    text = path.read_text()
    assert text.startswith("# \\<b\\>x\\</b\\>\\|y: ")
    assert "](out.svg)" in text
    assert "<svg" in (tmp_path / "out.svg").read_text()
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 2 + 4


@pytest.mark.parametrize(
    ("arguments", "headline", "has_picture"),
    [
        (["spot", EXAMPLES / "spot.json", "--runs", "200"], "Recommended: ", True),
        (
            ["simulate", SIMULATION / "simulate.json", "--repetitions", "1"],
            "has the least mean response time of 3",
            True,
        ),
        (["sweep", SIMULATION / "sweep.json", "--seeds", "1", "--loads", "1"], "of 2 policies at 1 of 1 load.", True),
        (
            ["plan", EXAMPLES / "config.json", "--cluster", "H100=1x8", "--batch", "64", "--flags", "megatron"],
            "H100",
            True,
        ),
        (
            [
                *("card", EXAMPLES / "config.json", "--nodes", "1", "--workers-per-node", "8", "--device", "H100"),
                *("--global-batch", "64", "--tokens", "1e9", "--price", "98", "--grid", "400", "--runs", "200"),
            ],
            " h on average, 90 % of the runs by ",
            True,
        ),
        (
            ["backtest", EXAMPLES / "testbed.csv", "--estimator", "queueing", "--estimator", "last-known"],
            "predicts best of 2 estimators.",
            False,
        ),
    ],
    ids=["spot", "simulate", "sweep", "plan", "card", "backtest"],
)
def test_commands_that_compare_have_reports(
    ran: Callable[..., Any], tmp_path: Path, arguments: list[str | Path], headline: str, *, has_picture: bool
) -> None:
    path = tmp_path / "out.html"
    assert ran(*arguments, "--report", path).exit_code == 0
    page = path.read_text()
    assert headline in page[page.index("<h1>") : page.index("</h1>")]
    assert ("data:image/svg" in page) == has_picture
    assert "<tbody><tr>" in page
    assert ("<code>torchrun" in page) == ("--flags" in arguments)


def test_json_stays_alone_on_standard_output(ran: Callable[..., Any], tmp_path: Path, table: Path) -> None:
    result = ran("predict", table, "--nodes", "1-4", "--json", "--report", tmp_path / "out.html")
    assert len(json.loads(result.stdout)["predictions"]) == 4
    assert "samples/s" in (tmp_path / "out.html").read_text()


def test_a_report_of_another_kind_is_refused_before_the_work(ran: Callable[..., Any], table: Path) -> None:
    result = ran("predict", table, "--nodes", "1-4", "--report", "out.pdf")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--report: must end in" in result.stderr


@pytest.mark.parametrize("words", [["--token", "secret"], ["--token=secret"]])
def test_the_command_of_a_report_has_no_secret(words: list[str]) -> None:
    assert command_line(["predict", "my table.csv", *words]).startswith("nodewise predict 'my table.csv' --token")
    assert "secret" not in command_line(["predict", *words])
    assert command_line(["predict", "--token", "@mine"]).endswith("@mine")


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (480, True)])
def test_a_browser_shows_the_page_without_a_complaint(
    ran: Callable[..., Any], tmp_path: Path, table: Path, *, width: int, dark: bool
) -> None:
    path = tmp_path / "out.html"
    assert ran("predict", table, "--nodes", "1-4", "--report", path).exit_code == 0
    with page(tmp_path) as browser:
        browser.open(path, width=width, dark=dark)
        assert (browser.errors, browser.refused) == ([], [])
        assert browser.run("document.querySelector('img').naturalWidth") > 300
        assert browser.run("document.documentElement.scrollWidth") <= width  # wide tables scroll by themselves
        assert browser.run("getComputedStyle(document.body).backgroundColor") == (
            "rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)"
        )
