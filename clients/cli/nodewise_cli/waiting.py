"""A progress bar on standard error, shown on a terminal after a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress

    from nodewise_client import BacktestProgress, DiagnosisProgress

__all__ = ["Waiting", "waiting"]

PATIENCE_S: Final = 1.0


class Waiting:
    """The progress of a task. Threads may report it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._counts: tuple[int, int | None] = (0, None)
        self._bar: Progress | None = None
        self._is_over = False

    def tell(self, done: int, total: int | None) -> None:
        """Report how many of the total are done; None = the total is not known."""
        with self._lock:
            self._counts = done, total
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def follow(self, progress: BacktestProgress | DiagnosisProgress) -> None:
        """Report the progress that a server sent."""
        self.tell(progress.done_count, progress.total_count)

    def show(self, console: Console) -> None:
        """Show the bar until the end."""
        # Only here: most commands end before they show a bar.
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}"))
        bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
        with self._lock:
            if not self._is_over:
                done, total = self._counts
                bar.add_task(self._text, completed=done, total=total)
                bar.start()
                self._bar = bar

    def end(self) -> None:
        """Remove the bar."""
        with self._lock:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()


@contextmanager
def waiting(text: str, *, patience_s: float = PATIENCE_S) -> Iterator[Waiting]:
    """Show a bar while the block runs, after a delay; show nothing if standard error is not a terminal."""
    console, progress = Console(file=sys.stderr), Waiting(text)
    timer = threading.Timer(patience_s, progress.show, (console,))
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield progress
    finally:
        timer.cancel()
        progress.end()
