from __future__ import annotations

import re

import pytest

from nodewise_cli.console import say
from nodewise_cli.views.numbers import counted, lasting, percent, shown
from nodewise_cli.views.table import figures, print_table, words

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
    assert (shown(1979.04), shown(19790.4), shown(0.5, 3)) == ("1,979", "19,790", "0.500")
    assert (counted(12.0), counted(104.5), counted(None)) == ("12", "104.5", "-")
    assert (lasting(90), lasting(7200), lasting(4458240), lasting(None)) == ("90.00 s", "2.00 h", "51.6 days", "-")
    assert (percent(0.0525), percent(None)) == ("5.2 %", "-")
