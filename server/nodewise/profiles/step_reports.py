"""Step times that running jobs report, stored beside profiles for a limited time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import orjson

from nodewise.domain.step_times import STEP_PARTS, StepTimes
from nodewise.profiles.sql_rows import Connected, Connection
from nodewise.profiles.store import profile_not_found

__all__ = ["HOURS_KEPT_S", "WINDOWS_KEPT_S", "StepLedger"]


WINDOWS_KEPT_S: Final = 4 * 3600.0
"""Seconds that windows are kept."""
HOURS_KEPT_S: Final = 28 * 86_400.0
"""How long hours are kept: four weeks show what recurs by day and by week."""


_SECONDS: Final = ("begin_s", "step_s", *(f"{name}_s" for name in STEP_PARTS))
_WHOLE: Final = ("first_step", "steps")
_PROFILE: Final = "SELECT key, labels FROM profiles WHERE profile_id = ? AND delete_time_s = 0 AND revision > 0"
_ADD: Final = """
INSERT INTO step_reports (profile_key, rank, begin_s, node, payload) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_MOST_REPORTS: Final = 4096
"""Most reports of one rank: one every few seconds for as long as windows are kept."""
_OLD: Final = """
DELETE FROM step_reports WHERE profile_key = ? AND rank = ? AND (begin_s < ? OR begin_s < (SELECT begin_s
    FROM step_reports WHERE profile_key = ? AND rank = ? ORDER BY begin_s DESC LIMIT 1 OFFSET ?))"""
_ADD_HOUR: Final = """
INSERT INTO step_hours (profile_key, hour, steps, seconds) VALUES (?, ?, ?, ?) ON CONFLICT (profile_key, hour)
DO UPDATE SET steps = step_hours.steps + excluded.steps, seconds = step_hours.seconds + excluded.seconds"""
_OLD_HOURS: Final = "DELETE FROM step_hours WHERE profile_key = ? AND hour < ?"
_SINCE: Final = """
SELECT rank, node, payload FROM step_reports WHERE profile_key = ? AND begin_s >= ? ORDER BY rank, begin_s"""
_HOURS: Final = "SELECT hour, steps, seconds FROM step_hours WHERE profile_key = ? ORDER BY hour"
_HOUR_S: Final = 3600.0


class StepLedger:
    """Windows of steps of running jobs, and the mean of each hour. Safe from many threads and processes; may block.

    They are deleted with their profile. Every method raises NodewiseError PROFILE_NOT_FOUND, or STORE_UNAVAILABLE.


    Parameters
    ----------
    reading, writing : callable
        Give a connection in a transaction of either kind.
    now : callable
        Seconds since 1970.
    """

    def __init__(self, reading: Connected, writing: Connected, now: Callable[[], float]) -> None:
        self._reading, self._writing, self._now = reading, writing, now

    def add(self, profile_id: str, times: StepTimes) -> Mapping[str, str]:
        """Store windows of one rank, at least one; the same again changes nothing. Returns the profile's labels."""
        rank, node, begin_s, now_s = int(times.rank[0]), int(times.node[0]), float(times.begin_s.min()), self._now()
        payload = np.stack([getattr(times, name) for name in (*_WHOLE, *_SECONDS)]).astype("<f8").tobytes()
        with self._writing("add times of steps") as connection:
            key, labels = _profile(connection, profile_id)
            if connection.execute(_ADD, (key, rank, begin_s, node, payload)).rowcount:
                connection.execute(_OLD, (key, rank, now_s - WINDOWS_KEPT_S, key, rank, _MOST_REPORTS - 1))
                hours = (times.begin_s // _HOUR_S).astype(np.int64)
                for hour in np.unique(hours).tolist():
                    steps = times.steps[hours == hour]
                    seconds = float((steps * times.step_s[hours == hour]).sum())
                    connection.execute(_ADD_HOUR, (key, hour, int(steps.sum()), seconds))
                connection.execute(_OLD_HOURS, (key, int((now_s - HOURS_KEPT_S) // _HOUR_S)))
        values: Mapping[str, str] = orjson.loads(labels)
        return values

    def since(self, profile_id: str, begin_s: float) -> StepTimes:
        """Windows of reports that began at some time or later, of all ranks."""
        with self._reading("read times of steps") as connection:
            key, _ = _profile(connection, profile_id)
            rows = connection.execute(_SINCE, (key, begin_s)).fetchall()
        return StepTimes.concatenated([_times(*row) for row in rows])

    def hours(self, profile_id: str) -> StepTimes:
        """The mean step of each hour, over windows and ranks; rank 0 stands for all."""
        with self._reading("read hours of steps") as connection:
            key, _ = _profile(connection, profile_id)
            rows = connection.execute(_HOURS, (key,)).fetchall()
        if not rows:
            return StepTimes.concatenated([])
        hour, steps, seconds = (np.array(column) for column in zip(*rows))
        zero, unknown = np.zeros(len(hour), np.int64), np.full(len(hour), -1.0)
        return StepTimes(
            rank=zero,
            node=zero - 1,
            first_step=zero,
            steps=steps.astype(np.int64),
            begin_s=hour * _HOUR_S,
            step_s=seconds / steps,
            **{f"{name}_s": unknown for name in STEP_PARTS},
        )


def _profile(connection: Connection, profile_id: str) -> tuple[int, Any]:
    row = connection.execute(_PROFILE, (profile_id,)).fetchone()
    if row is None:
        raise profile_not_found(profile_id)
    return row[0], row[1]


def _times(rank: int, node: int, payload: bytes) -> StepTimes:
    columns = np.frombuffer(payload, dtype="<f8").reshape(len(_WHOLE) + len(_SECONDS), -1).astype(np.float64)
    whole, seconds = columns[: len(_WHOLE)].astype(np.int64), columns[len(_WHOLE) :]
    return StepTimes(
        rank=np.full(columns.shape[1], rank),
        node=np.full(columns.shape[1], node),
        **dict(zip(_WHOLE, whole)),
        **dict(zip(_SECONDS, seconds)),
    )
