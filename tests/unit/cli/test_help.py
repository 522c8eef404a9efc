"""Help of every command: in groups, by -h too, and in words of the field."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from nodewise_cli.app import app

ROOT: Any = typer.main.get_command(app)
CONTEXT: Any = ROOT.make_context("nodewise", ["--help"], resilient_parsing=True)


def commands() -> list[tuple[str, ...]]:
    """The words of every command and subcommand."""
    words: list[tuple[str, ...]] = []
    for name in ROOT.list_commands(CONTEXT):
        words.append((name,))
        command: Any = ROOT.resolve_command(CONTEXT, [name])[1]
        words += [(name, below) for below in getattr(command, "commands", {})]
    return words


COMMANDS = commands()


def help_of(*arguments: str, width: int = 80, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_in_words_of_the_field(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    text = help_of(*words, "-h", monkeypatch=monkeypatch)
    assert text == help_of(*words, "--help", monkeypatch=monkeypatch)
    assert "-h, --help" in text
    assert not re.search(r"<(?:str|int|float|path|bool|list)\b", text), "types of Python"
    assert not re.search(r"\bx[<>]=|<=x", text), "ranges in symbols"
    assert not re.search(r"nodewise\.v1(?:beta1)?\.(?!PredictionService)", text), "names of messages"
    # A summary is never cut: where three dots stand, they stand at any width.
    assert text.count("...") == help_of(*words, "-h", width=200, monkeypatch=monkeypatch).count("...")


def test_commands_are_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    text = help_of("-h", monkeypatch=monkeypatch)
    sections = re.findall(r"^(\S.*):\n((?:  .*\n)+)", text, re.MULTILINE)
    listed = [re.findall(r"^  ([a-z]+) ", section, re.MULTILINE) for title, section in sections if title != "Options"]
    assert len(listed) > 3
    assert max(map(len, listed)) < 10
    assert sorted(name for names in listed for name in names) == sorted(ROOT.list_commands(CONTEXT))
    assert not [line for line in text.splitlines() if len(line) > 80]


def test_ranges_are_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "[1 to 1,000,000]" in help_of("spot", "-h", width=200, monkeypatch=monkeypatch)
    assert "--workers-per-node COUNT" in help_of("predict", "-h", monkeypatch=monkeypatch)
    assert "Server and output:" in help_of("predict", "-h", monkeypatch=monkeypatch)


def test_arguments_stand_first_and_what_all_commands_share_last(monkeypatch: pytest.MonkeyPatch) -> None:
    headings = re.findall(r"^(\S.*):$", help_of("predict", "-h", monkeypatch=monkeypatch), re.MULTILINE)
    assert headings == ["Arguments", "Options", "Training", "Recommendation", "Server and output"]
