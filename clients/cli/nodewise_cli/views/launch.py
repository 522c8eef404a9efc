"""What to paste to train as planned, and what a file's layout would do, as JSON and for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from nodewise_cli.console import print_line, say
from nodewise_cli.recording import RecordedCode, record
from nodewise_cli.views.plan import Capacities, describe, figures_of, plan_row
from nodewise_cli.views.predict import problem_of
from nodewise_client import Planned, RowStatus
from nodewise_client.frameworks import Launch

__all__ = ["FileAnswer", "LaunchAnswer", "file_document", "launch_document", "show_file", "show_launch"]

SAME: Final = 1.005
"""Ratio of throughputs below which two layouts are as fast as each other."""


@dataclass(frozen=True, slots=True)
class LaunchAnswer:
    """What to paste."""

    launch: Launch
    plan: Planned
    refused: str
    """Why it is not for the best layout; "" = it is."""


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """What the layout of a file would do."""

    source: str
    plan: Planned
    best: Planned | None
    notes: tuple[str, ...]

    @property
    def best_speedup(self) -> float | None:
        """The best layout's throughput by that of the file's."""
        rates = [None if each is None else each.prediction.samples_per_second for each in (self.best, self.plan)]
        return rates[0] / rates[1] if rates[0] and rates[1] else None

    def fits(self, capacities: Capacities) -> bool | None:
        """Whether it fits into memory; None = its interval reaches beyond the device's, or its memory is not known."""
        prediction = self.plan.prediction
        if prediction.status is RowStatus.INFEASIBLE_MEMORY:
            return False
        capacity = capacities.get(str(self.plan.configuration["devices"]))
        upper = prediction.extra.get("memory_upper_bytes", prediction.memory_bytes)
        return None if capacity is None or upper is None or upper > capacity else True


def launch_document(launch_answer: LaunchAnswer) -> dict[str, Any]:
    """The JSON of what to paste."""
    return asdict(launch_answer.launch) | {"best_refused": launch_answer.refused or None}


def show_launch(launch_answer: LaunchAnswer) -> None:
    """Print what to paste."""
    launch = launch_answer.launch
    say()
    if launch_answer.refused:
        say(f"{launch_answer.refused}.")
        say(f"The fastest layout of the frontier that it can express: {describe(launch_answer.plan)}.")
    say(f"To paste, on each node, for {launch.framework}:", bold=True)
    _print_lines(launch.command)
    for name, text in launch.files.items():
        say(f"{name}:", bold=True)
        _print_lines(text)
    if launch.code:
        say("In the training script:", bold=True)
        _print_lines("\n".join(launch.code))
    for note in launch.notes:
        say(f"Note: {note}.")


def _print_lines(text: str) -> None:
    """Lines as they are, because they are copied."""
    record(RecordedCode(text.rstrip()))
    for line in text.rstrip().splitlines():
        print_line(line)
    print_line()


def file_document(answer: FileAnswer, capacities: Capacities) -> dict[str, Any]:
    """The JSON of what a file's layout would do."""
    return plan_row(answer.plan, capacities) | {
        "file": answer.source,
        "fits": answer.fits(capacities),
        "best_speedup": answer.best_speedup,
        "notes": list(answer.notes),
    }


def show_file(answer: FileAnswer, capacities: Capacities, tokens: float | None) -> None:
    """Print what a file's layout would do, beside the best."""
    say(f"{answer.source}: {describe(answer.plan)}.", bold=True)
    prediction, problem = answer.plan.prediction, problem_of(answer.plan.prediction)
    if prediction.memory_bytes is not None:
        say(f"  {figures_of(answer.plan, capacities, tokens)}")
    if problem is not None:
        message = problem.message
        say(f"  It {message}." if message.startswith("does not fit") else f"  It cannot be predicted: {message}.")
    elif answer.fits(capacities) is None:
        say("  Whether it fits is not sure: the interval of its memory reaches beyond the device's.")
    else:
        say("  It fits into memory.")
    speedup = answer.best_speedup
    if speedup is not None:
        say("  It is as fast as the best." if speedup < SAME else f"  The best is {100 * (speedup - 1):.3g} % faster.")
    for note in answer.notes:
        say(f"  Note: {note}.")
    say()
