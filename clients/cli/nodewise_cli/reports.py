"""Reports: an answer as one page that can be opened, printed and sent, or as Markdown."""

from __future__ import annotations

import base64
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent
from typing import Final, TypeAlias

from nodewise_cli.outputs import checked_output, needs_matplotlib, policy_hash, writing
from nodewise_cli.recording import RecordedCode, RecordedTable, RecordedText, Recording

__all__ = ["FORMATS", "Draw", "Report", "check_report", "collect_reports", "command_line", "page_of"]

FORMATS: Final = (".html", ".md")
Draw: TypeAlias = Callable[[Path], None]
"""Draws the picture into a file, whose name ends in .svg."""
_NOTE: Final = "Note: "
_RESTS_ON: Final = ("Why ", "Based on: ", "Assumed: ")
_SECRETS: Final = ("--token",)


@dataclass(frozen=True, slots=True)
class Report:
    """An answer with all that another reader needs.

    Attributes
    ----------
    headline : str
        The answer in one sentence.
    recording : Recording
        The texts and tables of the answer.
    draw : callable or None
        Draws its picture; None = it has none.
    command : str
        The command line that gave the answer.
    """

    headline: str
    recording: Recording
    draw: Draw | None
    command: str

    def write(self, path: Path) -> None:
        """Write the report: Markdown with its picture in a file beside it, else HTML.

        Within ``collect_reports`` it is collected instead.

        Raises
        ------
        CommandError
            If a file cannot be written.
        """
        collected = _collected.get()
        if collected is not None:
            collected.append(self)
            return
        if path.suffix.lower() == ".md":
            picture = path.with_suffix(".svg")
            if self.draw is not None:
                self.draw(picture)
            text = "\n\n".join(self._markdown(picture.name)) + "\n"
        else:
            text = _page(self.headline, "".join(self.body()))
        with writing(path):
            path.write_text(text, encoding="utf-8")

    @property
    def _answer(self) -> Iterator[RecordedTable | RecordedCode | str]:
        """Tables, code and texts in their order, without what has a section of its own."""
        for each in self.recording:
            if isinstance(each, RecordedTable | RecordedCode):
                yield each
            elif each.text not in ("", self.headline) and not each.text.startswith((_NOTE, *_RESTS_ON)):
                yield each.text

    def _texts(self, *prefixes: str) -> list[str]:
        """Texts that begin with one of these prefixes."""
        texts = [each.text for each in self.recording if isinstance(each, RecordedText)]
        return [text for text in texts if text.startswith(prefixes)]

    @property
    def _sections(self) -> Iterator[tuple[str, list[str]]]:
        """Headings and their texts after the tables; empty ones are left out."""
        sections = (
            ("What it rests on", self._texts(*_RESTS_ON)),
            ("Notes", [text.removeprefix(_NOTE) for text in self._texts(_NOTE)]),
        )
        return ((heading, texts) for heading, texts in sections if texts)

    # --- Markdown

    def _markdown(self, picture: str) -> Iterator[str]:
        yield f"# {_plain(self.headline)}"
        if self.draw is not None:
            yield f"![{_plain(self.headline)}]({picture})"
        for each in self._answer:
            if isinstance(each, RecordedTable):
                yield from _markdown_table(each)
            else:
                yield indent(each.text, "    ") if isinstance(each, RecordedCode) else _plain(each)
        for heading, texts in self._sections:
            yield f"## {heading}"
            yield "\n".join(f"- {_plain(text)}" for text in texts)
        yield "## Ask again"
        yield f"    {self.command}"

    # --- HTML

    def body(self, level: int = 1) -> Iterator[str]:
        """HTML of the report, whose first heading has this level."""
        yield f"<h{level}>{escape(self.headline)}</h{level}>"
        if self.draw is not None:
            yield f'<img src="{_data_url(self.draw)}" alt="{escape(self.headline)}">'
        for each in self._answer:
            if isinstance(each, RecordedTable):
                yield _html_table(each)
            else:
                yield _html_code(each.text) if isinstance(each, RecordedCode) else f"<p>{escape(each)}</p>"
        for heading, texts in self._sections:
            items = "".join(f"<li>{escape(text)}</li>" for text in texts)
            yield f"<h{level + 1}>{heading}</h{level + 1}><ul>{items}</ul>"
        yield f"<h{level + 1}>Ask again</h{level + 1}>{_html_code(self.command)}"


_collected: Final[ContextVar[list[Report] | None]] = ContextVar("collected", default=None)


@contextmanager
def collect_reports() -> Iterator[list[Report]]:
    """Collect the reports that are written within, instead of writing them."""
    reports: list[Report] = []
    token = _collected.set(reports)
    try:
        yield reports
    finally:
        _collected.reset(token)


def page_of(title: str, chapters: Sequence[tuple[str, Report]]) -> str:
    """Several reports on one page, each below its question."""
    parts = [
        f"<section><h2>{escape(question)}</h2>{''.join(report.body(level=3))}</section>"
        for question, report in chapters
    ]
    return _page(title, f"<h1>{escape(title)}</h1>{''.join(parts)}")


def _page(title: str, body: str) -> str:
    style = resources.files("nodewise_cli").joinpath("report.css").read_text(encoding="utf-8")
    allowed = f"img-src data:; style-src '{policy_hash(style)}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>{body}</main></body></html>\n"
    )


def check_report(path: Path | None, *, draws: bool) -> None:
    """Check before the work that the report can be written.

    Raises
    ------
    InputError
        If the file cannot be of that name.
    CommandError
        If it has a picture and matplotlib is not installed.
    """
    checked_output(path, "--report", FORMATS)
    if path is not None and draws:
        needs_matplotlib("--report")


def command_line(arguments: Sequence[str] | None = None) -> str:
    """The command that runs, as a shell takes it, without secrets."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for place, word in enumerate(words):
        name, is_assigned, _ = word.partition("=")
        if name in _SECRETS and is_assigned:
            words[place] = f"{name}=@FILE"
        elif name in _SECRETS and place + 1 < len(words) and not words[place + 1].startswith("@"):
            words[place + 1] = "@FILE"
    return shlex.join(["nodewise", *words])


def _data_url(draw: Draw) -> str:
    with TemporaryDirectory() as folder:
        picture = Path(folder, "picture.svg")
        draw(picture)
        return "data:image/svg+xml;base64," + base64.b64encode(picture.read_bytes()).decode()


def _html_code(text: str) -> str:
    return f"<pre><code>{escape(text)}</code></pre>"


def _html_table(table: RecordedTable) -> str:
    kinds = [' class="number"' if numeric else "" for numeric in table.numeric]
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    head = "".join(f'<th scope="col"{kind}>{escape(text)}</th>' for kind, text in zip(kinds, table.headings))
    rows = "".join(
        f"<tr>{''.join(f'<td{kind}>{escape(text)}</td>' for kind, text in zip(kinds, row))}</tr>" for row in table.rows
    )
    # Wide tables scroll by themselves; a keyboard reaches what scrolls.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title or "Table")}">'
        f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _markdown_table(table: RecordedTable) -> Iterator[str]:
    if table.title:
        yield f"**{_plain(table.title)}**"
    lines = [table.headings, ["--:" if numeric else ":--" for numeric in table.numeric], *table.rows]
    yield "\n".join(
        f"| {' | '.join(text if place == 1 else _plain(text) for text in line)} |" for place, line in enumerate(lines)
    )


def _plain(text: str) -> str:
    """A text that Markdown takes as it is, in one line."""
    line = " ".join(text.split())
    return "".join(f"\\{each}" if each in "\\`*_[]<>|#" else each for each in line)
