"""The picture of a device's memory over a step: what it consists of, moment by moment."""

from __future__ import annotations

from pathlib import Path

from nodewise_cli.failures import CommandError
from nodewise_cli.pictures.figures import COLOURS, plain_axes, save
from nodewise_cli.views.memory_timeline import TERMS, memory_timeline
from nodewise_client import Prediction

__all__ = ["draw_memory"]


def draw_memory(path: Path, title: str, prediction: Prediction) -> None:
    """Draw a row's timeline into a file.

    Raises
    ------
    CommandError
        If there is nothing to draw, or the file cannot be written.
    """
    timeline = memory_timeline(prediction.extra, prediction.breakdown_seconds)
    if timeline is None:
        raise CommandError(f"{path}: not drawn: the estimator does not predict memory over time")
    sizes_by_term = {term: [point.terms[term] / 2**30 for point in timeline.points] for term in TERMS}
    nonzero = {term: sizes for term, sizes in sizes_by_term.items() if any(sizes)}
    colours = dict(zip(TERMS, (*COLOURS, "#b0b0b0")))
    figure, axes = plain_axes(7.2, 4.6)
    times = [point.time_s for point in timeline.points]
    axes.stackplot(
        times, *nonzero.values(), labels=list(nonzero), colors=[colours[term] for term in nonzero], linewidth=0
    )
    axes.set_title(title, loc="left")
    axes.set_xlabel("seconds" if timeline.timed else "share of the step")
    axes.set_ylabel("memory (GiB)")
    axes.set_xlim(0, times[-1])
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)
