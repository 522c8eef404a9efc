"""`nodewise demo`: the questions that Nodewise answers, each with the command behind it, on one page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Argument

from nodewise_cli.console import say
from nodewise_cli.failures import CommandError
from nodewise_cli.outputs import checked_output, needs_matplotlib, writing
from nodewise_cli.recording import RecordedText, record_output
from nodewise_cli.reports import Report, collect_reports, command_line, page_of

__all__ = ["demo"]

TITLE: Final = "What Nodewise answers"
CHAPTERS: Final = (
    (
        "How many nodes is this job worth? Three measured throughputs are enough.",
        (
            "predict --measured 1=19800,2=38100,4=72400 --unit samples_per_s --gpus-per-node 8 --batch-per-worker 256"
            " --device A100 --nodes pow2:1-64"
        ),
    ),
    (
        "How should a model be split over devices that it never ran on?",
        "plan config.json --cluster H100=4x8 --batch 512 --flags megatron",
    ),
    ("Why is a job slow? Two ranks were recorded.", "diagnose traces"),
    ("Which scheduling policy serves these jobs best?", "simulate simulation/simulate.json --repetitions 1"),
    ("Which preemptible machines finish in time at the least cost?", "spot spot.json"),
)
"""Each question, and the command that answers it, in the directory of the examples."""


def demo(
    context: typer.Context,
    page: Annotated[Path, Argument(metavar="[OUT.html]", help="The page to write.")] = Path("nodewise-demo.html"),
) -> None:
    """Answer five questions about the shipped examples, and write them on one page."""
    checked_output(page, "OUT", (".html",))
    needs_matplotlib("demo")
    page = page.resolve()
    command: Any = context.find_root().command
    chapters: list[tuple[str, Report]] = []
    with _in_examples():
        for question, line in CHAPTERS:
            words = line.split()
            say(question, bold=True)
            say(f"$ {command_line(words)}")
            wanted = [] if words[0] == "diagnose" else ["--report", "part.html"]
            with collect_reports() as reports, record_output() as recording:
                command.main([*words, *wanted], prog_name="nodewise", standalone_mode=False)
            texts = [each.text for each in recording if isinstance(each, RecordedText) and each.text]
            report = reports[-1] if reports else Report(texts[0] if texts else question, recording, None, "")
            chapters.append((question, Report(report.headline, report.recording, report.draw, command_line(words))))
        text = page_of(TITLE, chapters)
    with writing(page):
        page.write_text(text, encoding="utf-8")
    say(f"Written: {page}", bold=True)


@contextmanager
def _in_examples() -> Iterator[None]:
    """Work in the directory of the examples: within the server's package, or of the checkout that it runs from.

    Raises
    ------
    CommandError
        If there are none.
    """
    server = find_spec("nodewise")
    if server is None or server.origin is None:
        raise CommandError("demo: the server is not installed, which has the examples: pip install nodewise")
    package = Path(server.origin).parent
    folders = (package / "examples", package.parents[1] / "examples")
    examples = next((folder for folder in folders if (folder / "spot.json").exists()), None)
    if examples is None:
        raise CommandError("demo: the examples are missing: install nodewise again")
    before = Path.cwd()
    os.chdir(examples)
    try:
        yield
    finally:
        os.chdir(before)
