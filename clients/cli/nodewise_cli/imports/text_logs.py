"""Logs in plain text, read line by line by a regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nodewise_cli.failures import InputError, text_of
from nodewise_cli.imports.logged_runs import LoggedRun, Options, number_of, seconds_of

__all__ = ["PATTERNS", "read_log"]

_NUMBER: Final = r"[\d.,]+(?:[eE][+-]?\d+)?"
PATTERNS: Final = {
    # training_log of Megatron-LM, and of Megatron-DeepSpeed, which counts in seconds.
    "megatron": (
        r"iteration +(?P<step>\d+)/ *\d+ \|.*?elapsed time per iteration "
        rf"\((?:ms\): *(?P<ms_per_step>{_NUMBER})|s\): *(?P<step_s>{_NUMBER}))"
        r"(?:.*?\| *global batch size: *(?P<global_batch>\d+))?"
    ),
    # ThroughputTimer, and the print of a pipeline's engine.
    "deepspeed": (
        rf"global_step=(?P<step>\d+),.*?CurrSamplesPerSec=(?P<samples_per_s>{_NUMBER})"
        rf"|steps: (?P<step_>\d+) loss: .*?samples/sec: (?P<samples_per_s_>{_NUMBER})"
    ),
    # MetricsProcessor.log; the rate is that of one device.
    "torchtitan": rf"\bstep: +(?P<step>\d+) +loss: .*?\btps: +(?P<tokens_per_s_per_worker>{_NUMBER})",
    # The bar of steps.
    "transformers": (
        r"\| *(?P<step>\d+)/\d+ \[(?P<elapsed_s>[\d:]+)<[^\]]*?,\s*"
        rf"(?:(?P<it_per_s>{_NUMBER})it/s|(?P<step_s>{_NUMBER})s/it)"
    ),
}
"""Patterns that need not be written; their groups are columns of a table, `step`, and times."""
_COLOURS: Final = re.compile(r"\x1b\[[\d;]*m")
_PER_WORKER: Final = "_per_worker"
_TIMES: Final = ("time", "elapsed_s")


def read_log(path: Path, options: Options) -> Iterator[LoggedRun]:
    """The run of a log.

    Raises
    ------
    InputError
        The pattern is none, or no line matches.
    """
    text = _COLOURS.sub("", text_of(path, "a log in UTF-8").replace("\r", "\n"))
    patterns = {options.pattern: PATTERNS.get(options.pattern, options.pattern)} if options.pattern else PATTERNS
    for name, pattern in patterns.items():
        run = _run_of(path, text, _compile(pattern))
        if run.series:
            yield run
            return
        if options.pattern:
            raise InputError(f"{path}: no line matches --pattern {name!r}")
    raise InputError(
        f"{path}: is no log of {', '.join(PATTERNS)}: state --pattern, a regular expression with groups such as "
        r"'step (?P<step>\d+) .* (?P<samples_per_s>[\d.]+) samples/s'"
    )


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"--pattern: must be a regular expression: {error}") from None
    if not compiled.groupindex:
        raise InputError("--pattern: must have named groups, such as (?P<step>\\d+) and (?P<step_s>[\\d.]+)")
    return compiled


def _run_of(path: Path, text: str, pattern: re.Pattern[str]) -> LoggedRun:
    run = LoggedRun(str(path), path.stem)
    for count, match in enumerate(pattern.finditer(text)):
        cells = {name.rstrip("_"): cell for name, cell in match.groupdict().items() if cell is not None}
        step = number_of(cells.pop("step", count)) or 0.0
        time_s = next((_seconds(cells.pop(name)) for name in _TIMES if name in cells), None)
        run.add("", step, time_s, None)
        for name, cell in cells.items():
            number = number_of(cell.replace(",", ""))
            if number is None or not name.endswith(("_s", "_step", _PER_WORKER)):
                run.settings[name] = cell
                continue
            column = name.removesuffix(_PER_WORKER)
            if column != name:
                run.per_worker.add(column)
            run.add(column, step, time_s, number)
    return run


def _seconds(text: str) -> float | None:
    """A moment, or a time as a bar of progress has it (1:02:03)."""
    parts = text.split(":")
    if all(part.isdecimal() for part in parts):
        seconds = 0.0
        for part in parts:
            seconds = 60 * seconds + int(part)
        return seconds
    return seconds_of(text)
