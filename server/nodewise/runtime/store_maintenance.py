"""Maintenance of the store while serving, by one worker at a time: inspection for damage, and retention."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.store import ProfileStore, Retention

__all__ = ["StoreMaintenance"]

_log = structlog.get_logger(__name__)

LOOK_S: Final = 60.0
"""Seconds between two checks whether a task is due; another worker may have done it."""
REST: Final = 3.0
"""Seconds of rest per second of work, so that a large store takes at most a quarter of one core, at a low priority."""
NICE: Final = 10


class StoreMaintenance:
    """Maintains the store in one thread of low priority.

    Parameters
    ----------
    store : ProfileStore
        Of this process; a lease in it decides which of the processes that share it does a task.
    rules : Retention
        How long content is kept.
    inspect_interval_s, keep_interval_s : float
        Seconds between two inspections, and between two deletions by the rules, of all processes together; 0 = never.
    """

    def __init__(
        self, store: ProfileStore, rules: Retention, inspect_interval_s: float, keep_interval_s: float = 3600.0
    ) -> None:
        self._store = store
        self._rules = rules
        self._intervals_s = {"inspect": inspect_interval_s, "keep": keep_interval_s if rules else 0.0}
        self._stop_event = threading.Event()
        self._began_s = 0.0
        self._thread = threading.Thread(target=self._run, name="nodewise-keeping", daemon=True)

    def start(self) -> None:
        """Begin."""
        if any(self._intervals_s.values()):
            self._thread.start()

    def stop(self) -> None:
        """Begin to stop."""
        self._stop_event.set()

    def join(self) -> None:
        """Wait until the thread has ended, after ``stop``."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # only Linux has priorities of threads
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while not self._stop_event.is_set():
            for task, interval_s in self._intervals_s.items():
                if interval_s and not self._stop_event.is_set():
                    self._do(task, interval_s)
            self._stop_event.wait(LOOK_S)

    def _do(self, task: str, interval_s: float) -> None:
        try:
            if not self._store.claim(task, interval_s):
                return
            self._began_s = began_s = time.monotonic()
            if task == "inspect":
                inspection = self._store.inspect(self._rest)
                event, about = ("store_damage_found", inspection) if inspection else ("store_inspected", 0)
                _log.log(40 if inspection else 20, event, damaged=about, seconds=round(time.monotonic() - began_s, 3))
            elif removals := self._store.keep(self._rules):
                _log.info("retention_applied", seconds=round(time.monotonic() - began_s, 3), **removals)
        except NodewiseError as error:  # the store does not answer; it has logged why
            _log.warning("store_maintenance_paused", task=task, reason=str(error.reason), **error.metadata)
        except Exception:  # noqa: BLE001 - no stored content may end the thread
            _log.exception("store_maintenance_failed", task=task)

    def _rest(self) -> bool:
        """Rest in proportion to the work since the last rest; False = the process stops."""
        self._stop_event.wait(REST * (time.monotonic() - self._began_s))
        self._began_s = time.monotonic()
        return not self._stop_event.is_set()
