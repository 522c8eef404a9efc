from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from nodewise_cli.console import say
from nodewise_cli.views.diagnose import show
from nodewise_cli.views.numbers import format_count, format_number, lasting, percent
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import Bottleneck, DiagnosisAnswer, RankShares, StepPart, Straggler, Strategy

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
COLUMNS = [
    words("job"),
    figures("nodes", 0),
    figures("samples/s", 0),
    figures("90 % interval"),
    words("bottleneck"),
    figures("done in s", 1.5),
    words("why"),
]
ROWS = [
    [
        "llama",
        "1,024",
        "361,700",
        "137,429 to 512,345",
        "download",
        "19,790",
        "the step from 512 brings 0.25 of 106",
    ],
    ["a-job-with-a-long-name-of-2024", "8", "10,691", "9,000 to 12,000", "compute", "-", ""],
]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_every_number_is_whole_at_every_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(COLUMNS, ROWS, title="predicted")
    printed = capsys.readouterr().out
    body = printed.partition("─\n")[2]
    found = NUMBER.findall(body.replace("90 % interval", ""))
    assert sorted(found) == sorted(each for row in ROWS for cell in row for each in NUMBER.findall(cell))
    assert all(len(line) <= width for line in printed.splitlines())
    for word in ("llama", "a-job-with-a-long-name-of-2024", "download", "compute"):
        assert word in body
    assert ("bottleneck download" in body) == (width < 100)


def test_the_least_important_columns_are_folded_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_table([figures("a", 2), figures("b", 0), figures("c", 1)], [["1234567", "7654321", "1111111"]])
    assert capsys.readouterr().out.splitlines() == [
        "      b        c",
        "────────────────",
        "7654321  1111111",
        "    a 1234567",
        "",
    ]


def test_numbers_stand_at_the_right_and_words_at_the_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table([words("job"), figures("nodes")], [["a", "1"], ["longer", "1,024"]])
    assert capsys.readouterr().out.splitlines()[2:4] == ["a           1", "longer  1,024"]


def test_sentences_are_folded_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "the step from 1 brings 361,700 samples each second"
    say(sentence)
    assert capsys.readouterr().out == sentence + "\n"
    monkeypatch.setenv("COLUMNS", "30")
    say(sentence)
    assert capsys.readouterr().out == "the step from 1 brings 361,700\nsamples each second\n"


def test_numbers_in_words() -> None:
    assert (format_number(1979.04), format_number(19790.4), format_number(0.5, 3)) == ("1,979", "19,790", "0.500")
    assert (format_count(12.0), format_count(104.5), format_count(None)) == ("12", "104.5", "-")
    assert (lasting(90), lasting(7200), lasting(4458240), lasting(None)) == ("90.00 s", "2.00 h", "51.6 days", "-")
    assert (percent(0.0525), percent(None)) == ("5.2 %", "-")


HOSTILE = (
    "void at::native::vectorized_elementwise_kernel<4, " + "at::detail::Array<char*, 3>" * 30 + ">",
    "x" * 500,
    "核" * 120,
    "\x1b[2J\x1b[31mred\x07",
    "\u202eright to left\u2066",
    "a name\nof two lines",
)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_diagnosis_keeps_its_columns_whatever_names_there_are(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    parts = (
        StepPart(kind="computation", what=name, seconds=0.06),
        StepPart(kind="waiting", what=name, seconds=0.04, waits_for_rank=1),
    )
    shares = RankShares(rank=0, step_seconds=0.1, compute_seconds=0.06, waiting_seconds=0.04, parts=parts)
    bottleneck = Bottleneck(kind="kernel", what=name, seconds=0.012345, gain_if_removed_seconds=0.0054321, matters=True)
    show(
        DiagnosisAnswer(
            verdict="Bound by computation.",
            step_seconds=0.1,
            bottlenecks=(bottleneck,),
            strategies=(Strategy(name=f"fix: {name}", predicted_step_seconds=0.09, speedup_ratio=1.1, effort="low"),),
            stragglers=(Straggler(collective=name, ranks=(1,), margin_seconds=0.001, imposed_wait_seconds=0.002),),
            rank_shares=(shares,),
            complete=True,
            collectives=(),
            timeline=None,
            recorded=None,
        )
    )
    printed = capsys.readouterr().out
    assert all(cell_len(line) <= width for line in printed.splitlines())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", printed)
    # Numbers stand in their columns beside the name, and not beneath it.
    (row,) = [line for line in printed.splitlines() if "12.35" in line]
    assert "5.432" in row
    assert "gain" not in row
    assert f"|{'█' * round(0.6 * (min(width, 100) - 18))}" in printed
