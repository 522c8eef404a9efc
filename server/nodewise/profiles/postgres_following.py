"""Following other replicas' writes: by notifications, and by polling where none comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
import structlog

from nodewise.profiles.postgres_connection import CHANNEL

__all__ = ["MOST_BEHIND_S", "GenerationFollower"]

_ASKED_S: Final = 1.0
"""Between two reads of the counter, also without a notification: a connection may be lost silently."""
MOST_BEHIND_S: Final = 3.0
"""Seconds after which a generation that was not confirmed is not used."""

_log = structlog.get_logger(__name__)


class GenerationFollower:
    """Follows the store's generation without queries: a thread listens to notifications of writers.

    Parameters
    ----------
    connecting : callable
        Makes the listening connection, also after it was lost.
    """

    def __init__(self, connecting: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connecting = connecting
        self._lock = threading.Lock()
        self._value = -1
        self._confirmed_s = float("-inf")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="nodewise-store-follower", daemon=True)
        self._thread.start()

    def value(self) -> int | None:
        """The generation; None = not confirmed lately, so that the database must be queried."""
        fresh = time.monotonic() - self._confirmed_s <= MOST_BEHIND_S
        return self._value if fresh else None

    def note(self, generation: int) -> None:
        """Note a lower bound of the generation, after a write or a query."""
        with self._lock:
            self._value = max(self._value, generation)

    def close(self) -> None:
        """End the thread; it notices within a second."""
        self._closing.set()

    def _follow(self) -> None:
        lost_s = float("-inf")
        while not self._closing.is_set():
            try:
                with self._connecting() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._listen(connection)
            except psycopg.Error as error:
                if not self._closing.is_set() and lost_s <= self._confirmed_s:  # logged once, until it is restored
                    lost_s = time.monotonic()
                    _log.warning("store_not_followed", error=type(error).__name__, text=str(error))
            self._closing.wait(_ASKED_S)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._closing.is_set():
            asked_s = time.monotonic()
            row = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
            assert row is not None
            self.note(row[0])
            self._confirmed_s = asked_s
            for notification in connection.notifies(timeout=_ASKED_S):
                self.note(int(notification.payload))
