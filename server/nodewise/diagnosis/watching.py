"""Watch over running jobs: step times are diagnosed at intervals, and a label states the slowdowns."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from nodewise.diagnosis.diagnose import diagnose_step_times
from nodewise.domain.errors import NodewiseError
from nodewise.domain.step_times import StepsDiagnosis, StepTimes
from nodewise.ports.compute import Compute, LongRun
from nodewise.profiles.batches import Batch
from nodewise.profiles.naming import Naming
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter

__all__ = ["ALARM", "StepWatch", "alarm_label"]

ALARM: Final = "nodewise.alarm"
"""The label of a profile whose job is slow: slowdowns that last, the newest first, separated by "; "."""
LOOK_EVERY_S: Final = 10.0
"""Between two diagnoses of a job's step times, by all processes of the store: a slowdown lasts minutes before it costs
anything, and a diagnosis of a thousand ranks takes seconds of a processor."""
LOOKED_BACK_S: Final = 3600.0
"""Seconds of step times that a diagnosis covers."""
LOOK_S: Final = 60.0
"""Most seconds of a diagnosis."""
_LONGEST_LABEL: Final = 128

_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class StepWatch:
    """Watches running jobs.

    Attributes
    ----------
    compute : Compute
        Pool that diagnoses step times; its workers have ``answers``.
    store, writer : ProfileStore, StoreWriter
        Store of step times, and writer of labels.
    reads : Executor
        Threads for reads from the disk.
    tasks : set of Task
        Running diagnoses; who ends the server cancels them.
    """

    compute: Compute[Any]
    store: ProfileStore
    writer: StoreWriter
    reads: Executor
    tasks: set[asyncio.Task[None]]
    _next_look_s: dict[str, float] = field(default_factory=dict)

    def times(self, profile_id: str, since_s: float) -> tuple[StepTimes, StepTimes]:
        """Step times since a time, and the hours."""
        steps = self.store.steps
        return steps.since(profile_id, time.time() - since_s), steps.hours(profile_id)

    def look_soon(self, profile_id: str, alarm: str) -> None:
        """Look for slowdowns, unless a process did lately; ``alarm`` is the current text of the label."""
        now_s = time.monotonic()
        if self._next_look_s.get(profile_id, 0.0) > now_s:
            return
        self._next_look_s = {name: at_s for name, at_s in self._next_look_s.items() if at_s > now_s}
        self._next_look_s[profile_id] = now_s + LOOK_EVERY_S
        look = asyncio.create_task(self._look(profile_id, alarm))
        self.tasks.add(look)
        look.add_done_callback(self.tasks.discard)

    async def _look(self, profile_id: str, before: str) -> None:
        """Diagnose the newest windows; lasting slowdowns become a label of the profile."""
        loop = asyncio.get_running_loop()
        try:
            if not await loop.run_in_executor(self.reads, self.store.claim, f"steps of {profile_id}", LOOK_EVERY_S):
                return
            times = await loop.run_in_executor(self.reads, self.times, profile_id, LOOKED_BACK_S)
            end_s = time.monotonic() + LOOK_S
            async for label in self.compute.run(_label, (before, *times), end_s, end_s):
                if label.decode() != before:
                    batch = Batch(sequence_number=1, naming=Naming(labels={ALARM: label.decode()}), commit=True)
                    await asyncio.wrap_future(self.writer.append(profile_id, f"alarm-{uuid.uuid4().hex}", (batch,)))
        except NodewiseError as error:  # the next report starts another diagnosis
            _log.warning("steps_not_diagnosed", profile_id=profile_id, reason=str(error.reason))


def _label(workshop: Any, arguments: tuple[str, StepTimes, StepTimes], _run: LongRun) -> Iterator[bytes]:
    before, *times = arguments
    yield alarm_label(diagnose_step_times(workshop.answers.registry.diagnosers, "", *times), before).encode()


def alarm_label(diagnosis: StepsDiagnosis, before: str) -> str:
    """The text of the label; an alarm that is in it already keeps its text. Empty = no slowdown."""
    old_entries = {entry.partition(" since ")[0]: entry for entry in before.split("; ") if entry}
    entries: list[str] = []
    for alarm in diagnosis.alarms:
        if alarm.end_s:
            continue
        name = {"rank": f"rank {','.join(map(str, alarm.ranks))}", "node": f"node {alarm.node}"}.get(
            alarm.kind, alarm.kind
        )
        begin = datetime.fromtimestamp(alarm.begin_s, UTC).isoformat(timespec="seconds")
        entry = old_entries.get(name, f"{name} since {begin}")
        if entry not in entries and len("; ".join([*entries, entry])) <= _LONGEST_LABEL:
            entries.append(entry)
    return "; ".join(entries)
