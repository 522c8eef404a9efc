"""Sends what a training process recorded, beside its work. Whatever goes wrong here, training goes on."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodewise_client._requests import new_id
from nodewise_client._resume import ResumePolicy
from nodewise_client._sync.client import Client
from nodewise_client._sync.ingest import IngestWriter
from nodewise_client._traces import prepared_trace
from nodewise_values import Observations, PhaseTimings

LOG: Final = logging.getLogger("nodewise_client.recorder")
# Some dozens of traces of a few steps each.
KEEP_BYTES: Final = 2 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a process stands in its job."""

    rank: int = 0
    world_size: int = 1
    nodes: int | None = None
    """Machines of the job; None = not known."""


def place_of_environment() -> Place:
    """What the launcher (torchrun, Slurm, Open MPI) says, without asking other processes."""
    rank = _number("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
    world_size = _number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
    if rank is None or world_size is None or not 0 <= rank < world_size:
        return Place(nodes=1)
    local = _number("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")
    nodes = _number("SLURM_NNODES") if local is None else -(-world_size // max(1, local))
    return Place(rank=rank, world_size=world_size, nodes=1 if world_size == 1 else nodes)


def _number(*variables: str) -> int | None:
    for variable in variables:
        if os.environ.get(variable, "").isdecimal():
            return int(os.environ[variable])
    return None


class Delivery:
    """Brings traces and rows to a server and into a folder, in threads of its own.

    Every rank has its own sessions, so no rank waits for another and a lost rank costs its own trace only. Each trace
    and each set of rows is a unit of its own: it counts once it is there as a whole.

    Args:
        server: a client, an address, or None = files only.
        profile: the profile that is added to.
        redact: take paths, host and user names out of traces.
        keep: folder that gets a copy of every trace as it is sent; None = no copies.
        timeout_s: how long a server that is away is waited for.
        keep_bytes: most that a rank's copies take; the oldest go first, the newest stays.
    """

    def __init__(
        self,
        server: Client | str | None,
        profile: str,
        *,
        redact: bool,
        keep: Path | str | None,
        timeout_s: float,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        if server is None and keep is None:
            raise ValueError("server and keep are both None, so the recording would be lost; give one of them")
        self._server: Final = server
        self._profile: Final = profile
        self._redact: Final = redact
        self._keep: Final = None if keep is None else Path(keep)
        self._timeout_s: Final = timeout_s
        self._keep_bytes: Final = keep_bytes
        self._one_at_a_time: Final = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._has_warned = False

    @property
    def busy(self) -> bool:
        """Whether something is on its way."""
        return any(thread.is_alive() for thread in self._threads)

    def trace(self, export: Callable[[Path], object], place: Place) -> None:
        """Send a trace that `export` writes, at once, to the path that it is given."""
        folder = Path(tempfile.mkdtemp(prefix="nodewise-"))
        path = folder / f"rank{place.rank}.json"
        try:
            export(path)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._start(lambda: self._send_trace(path, place), lambda: shutil.rmtree(folder, ignore_errors=True))

    def rows(self, observation: Observations | None, timings: PhaseTimings | None) -> None:
        """Send what was measured."""
        if self._server is not None and not (observation is None and timings is None):
            self._start(lambda: self._send_rows(observation, timings))

    def wait(self) -> None:
        """Wait until all is sent or given up, for as long as a server that is away is waited for."""
        until = time.monotonic() + self._timeout_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if self.busy:
            self.complain("the server is slow: the recording is still being sent")

    def complain(self, what: str, error: Exception | None = None) -> None:
        """Tell the user once; a training log is no place for a row of the same lines."""
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        LOG.log(level, "%s%s; training goes on", what, "" if error is None else f": {error}")

    def _start(self, work: Callable[[], None], afterwards: Callable[[], None] = lambda: None) -> None:
        def run() -> None:
            try:
                with self._one_at_a_time:
                    work()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not worth a training run
                self.complain(f"profile {self._profile!r} is incomplete: not all of the recording was sent", error)
            finally:
                afterwards()

        # No daemon: a script that ends right after its last step still delivers. The writer's patience ends it.
        thread = threading.Thread(target=run, name="nodewise-delivery")
        self._threads.append(thread)
        thread.start()

    def _send_trace(self, path: Path, place: Place) -> None:
        with prepared_trace(path, redact=self._redact) as trace:
            if self._keep is not None:
                self._keep.mkdir(parents=True, exist_ok=True)
                with _unused_path(self._keep, f"rank{place.rank}").open("xb") as copy:
                    shutil.copyfileobj(trace, copy)
                _let_go(self._keep, f"rank{place.rank}", self._keep_bytes)
                trace.seek(0)
            if self._server is not None:
                name = f"rank{place.rank}"
                self._write(
                    lambda writer: writer.trace(trace, trace_id=name, rank=place.rank, world_size=place.world_size)
                )

    def _send_rows(self, observation: Observations | None, timings: PhaseTimings | None) -> None:
        def write(writer: IngestWriter) -> None:
            if observation is not None:
                writer.observe(observation)
            if timings is not None:
                writer.phases(timings)

        self._write(write)

    def _write(self, add: Callable[[IngestWriter], None]) -> None:
        patience = ResumePolicy(deadline_s=self._timeout_s, opening_deadline_s=self._timeout_s)
        # A connection as short as the sending: data loaders fork, and a process that talks is better not forked.
        client = Client(self._server) if isinstance(self._server, str) else self._server
        assert client is not None
        try:
            with client.ingest(self._profile, session_id=new_id(), resume=patience) as writer:
                add(writer)
        finally:
            if client is not self._server:
                client.close()


def _let_go(folder: Path, stem: str, most_bytes: int) -> None:
    """Delete a rank's oldest copies until the others take no more than this; the newest stays."""
    copies = [*folder.glob(f"{stem}.json.gz"), *folder.glob(f"{stem}-*.json.gz")]
    newest_first = sorted(copies, key=lambda path: path.stat().st_mtime_ns, reverse=True)
    total = 0
    for number, path in enumerate(newest_first):
        total += path.stat().st_size
        if number and total > most_bytes:
            path.unlink()


def _unused_path(folder: Path, stem: str) -> Path:
    """A name that no earlier recording has."""
    path, number = folder / f"{stem}.json.gz", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.json.gz"
    return path
