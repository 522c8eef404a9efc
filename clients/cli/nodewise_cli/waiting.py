"""A progress bar on standard error, shown on a terminal after a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from nodewise_client import BacktestProgress, DiagnosisProgress

__all__ = ["Waiting", "waiting"]

PATIENCE_S: Final = 1.0


class Waiting:
    """The progress of a task. Threads may report it."""

    def __init__(self, progress: Progress, text: str) -> None:
        self._progress = progress
        self._task = progress.add_task(text, total=None)

    def tell(self, done: int, total: int | None) -> None:
        """Report how many of the total are done; None = the total is not known."""
        self._progress.update(self._task, completed=done, total=total)

    def follow(self, progress: BacktestProgress | DiagnosisProgress) -> None:
        """Report the progress that a server sent."""
        self.tell(progress.done_count, progress.total_count)


@contextmanager
def waiting(text: str, *, patience_s: float = PATIENCE_S) -> Iterator[Waiting]:
    """Show a bar while the block runs, after a delay; show nothing if standard error is not a terminal."""
    console = Console(file=sys.stderr)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    lock, over = threading.Lock(), False

    def show() -> None:
        with lock:
            if not over:
                progress.start()

    timer = threading.Timer(patience_s, show)
    timer.daemon = True
    timer.start()
    try:
        yield Waiting(progress, text)
    finally:
        timer.cancel()
        with lock:
            over = True
            progress.stop()
