"""The plugins folder: distributions, generations, and the serving generation, for all processes of a server.

Complete folders and files never change: they are written under a temporary name, then renamed. The processes change the
state one at a time, and write it to disk before others can read it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import orjson
import structlog
from google.protobuf.json_format import MessageToJson, Parse, ParseError
from packaging.utils import canonicalize_name

from nodewise.processes.process import start_ticks
from nodewise.runtime.generations.manifest import Generation, InstalledDistribution, State
from nodewise.runtime.settings import Settings
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

__all__ = ["PluginsFolder", "PluginsFolderError", "plugins_folder_of", "replace_file"]

_log = structlog.get_logger(__name__)
_STATE: Final = "state.json"


class PluginsFolderError(Exception):
    """An error of the folder, or of a change of it, with a text for the operator."""


class PluginsFolder:
    """Generations on disk.

    Parameters
    ----------
    path : Path
        Created with the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    # --- the state

    def state(self) -> State:
        """Return the current state; before the first write, that of the server's environment.

        Raises
        ------
        PluginsFolderError
            The state cannot be read.
        """
        try:
            return State.read((self.path / _STATE).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return State()
        except (OSError, ValueError) as error:
            raise PluginsFolderError(f"{self.path / _STATE}: cannot be read: {error}") from None

    def stamp(self) -> tuple[int, int]:
        """Return a value that changes when the state is replaced. Reading it is cheap."""
        try:
            status = (self.path / _STATE).stat()
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_ino

    def change(self, update: Callable[[State], State]) -> State:
        """Update the state. Return the new state."""
        with self._lock():
            before = self.state()
            after = update(before)
            if after == before:
                return before
            after = replace(after, sequence=before.sequence + 1)
            replace_file(self.path / _STATE, after.to_json())
            return after

    def begin(self) -> Generation:
        """Return the generation that a server starts with: the candidate, else the one that served last.

        Raises
        ------
        PluginsFolderError
            If it cannot be read.
        """
        state = self.state()
        if state.candidate:
            self.generation(state.candidate)
            state = self.change(lambda now: now.with_stable(now.candidate) if now.candidate else now)
        return self.generation(state.stable)

    # --- generations

    def add(self, why: str, distributions: tuple[InstalledDistribution, ...], catalogue: bytes = b"") -> Generation:
        """Add a generation. No process serves it yet.

        Parameters
        ----------
        catalogue : bytes
            Content of its file of devices and links; empty = none.
        """
        with self._lock():
            number = max(self._numbers(), default=0) + 1
            generation = Generation(
                number=number,
                created_unix_s=time.time(),
                why=why,
                distributions=tuple(sorted(distributions, key=lambda each: each.name)),
                catalogue_digest=hashlib.sha256(catalogue).hexdigest()[:16] if catalogue else "",
            )
            if catalogue:
                replace_file(self._generations / f"{number}.catalogue.toml", catalogue)
            replace_file(self._generations / f"{number}.json", generation.to_json())
            return generation

    def generation(self, number: int) -> Generation:
        """Return a generation by its number; 0 is the server's environment.

        Raises
        ------
        PluginsFolderError
            If it does not exist, or a folder of it is missing.
        """
        if number == 0:
            return Generation(number=0, created_unix_s=0.0, why="what is installed")
        try:
            result = Generation.read((self._generations / f"{number}.json").read_bytes())
        except FileNotFoundError:
            numbers = ", ".join(str(each) for each in sorted(self._numbers())) or "none"
            raise PluginsFolderError(f"generation {number} does not exist; there are: {numbers}") from None
        except (OSError, ValueError) as error:
            raise PluginsFolderError(f"generation {number} cannot be read: {error}") from None
        for each in result.distributions:
            if not self.folder_of(each).is_dir():
                raise PluginsFolderError(f"generation {number} needs {self.folder_of(each)}, which is missing")
        return result

    def generations(self) -> list[Generation]:
        """Return all readable generations, by number. Unreadable ones are logged."""
        result = []
        for number in sorted(self._numbers()):
            try:
                result.append(Generation.read((self._generations / f"{number}.json").read_bytes()))
            except (OSError, ValueError) as error:
                _log.warning("generation_unreadable", number=number, reason=str(error))
        return result

    def catalogue_of(self, generation: Generation) -> Path | None:
        """Return the path of a generation's file of devices and links; None = it has none."""
        return self._generations / f"{generation.number}.catalogue.toml" if generation.catalogue_digest else None

    def keep_report(self, number: int, trial: pb.Trial) -> None:
        """Store the report of a generation's last trial. Raises PluginsFolderError."""
        with self._writing():
            replace_file(self._generations / f"{number}.report.json", MessageToJson(trial).encode())

    def report(self, number: int) -> pb.Trial | None:
        """Return the report of a generation's last trial; None = no trial."""
        try:
            report = (self._generations / f"{number}.report.json").read_bytes()
            return Parse(report, pb.Trial(), ignore_unknown_fields=True)
        except (OSError, ParseError):
            return None

    # --- distributions

    def folder_of(self, distribution: InstalledDistribution) -> Path:
        """Return the folder of a distribution."""
        return self._distributions / distribution.folder

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """Return an empty folder to install into. It is deleted unless :meth:`complete` renames it.

        Raises
        ------
        PluginsFolderError
            If it cannot be created.
        """
        with self._writing(self._distributions):
            self._distributions.mkdir(parents=True, exist_ok=True)
            folder = Path(mkdtemp(prefix=".new-", dir=self._distributions))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def complete(self, folder: Path, name: str, version: str, digest: str) -> InstalledDistribution:
        """Give a folder its final name. An existing folder with the same content is kept. Raises PluginsFolderError."""
        name = str(canonicalize_name(name))
        distribution = InstalledDistribution(
            name=name, version=version, folder=f"{name}-{version}-{digest[:12]}", digest=digest
        )
        target = self.folder_of(distribution)
        if not target.is_dir():
            with self._writing(self._distributions):
                os.sync()  # an operator's command may wait for other files of the disk too
                folder.rename(target)
                _synced_folder(self._distributions)
        return distribution

    # --- processes that serve

    def tell(self, pid: int, report: Mapping[str, Any]) -> None:
        """Store a process's report of what it serves."""
        data = orjson.dumps({**report, "born_ticks": start_ticks(pid)})
        replace_file(self.path / "serving" / f"{pid}.json", data, durable=False)

    def reports(self) -> dict[int, dict[str, Any]]:
        """Return the last report of each process that still runs."""
        by_pid = {}
        for path in (self.path / "serving").glob("[0-9]*.json"):
            pid = int(path.stem)
            try:
                os.kill(pid, 0)
                report = orjson.loads(path.read_bytes())
                if report.get("born_ticks") == start_ticks(pid):
                    by_pid[pid] = report
                else:  # another process has its number by now
                    path.unlink(missing_ok=True)
            except ProcessLookupError:
                path.unlink(missing_ok=True)
            except (OSError, ValueError):
                continue
        return by_pid

    def untell(self, pid: int) -> None:
        """Remove the report of a process that ends."""
        (self.path / "serving" / f"{pid}.json").unlink(missing_ok=True)

    # --- within

    @property
    def _generations(self) -> Path:
        return self.path / "generations"

    @property
    def _distributions(self) -> Path:
        return self.path / "distributions"

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in self._generations.glob("*.json") if path.stem.isdigit()]

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self._writing():
            self.path.mkdir(parents=True, exist_ok=True)
            with (self.path / "lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield

    @contextmanager
    def _writing(self, path: Path | None = None) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PluginsFolderError(f"{path or self.path}: cannot be written: {error.strerror or error}") from None


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    temporary.replace(path)
    if durable:
        _synced_folder(path.parent)


def _synced_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def plugins_folder_of(settings: Settings) -> PluginsFolder | None:
    """Return the plugins folder; None = the settings name no permanent one."""
    if settings.plugins_folder:
        return PluginsFolder(Path(settings.plugins_folder))
    kind, _, path = settings.store.partition(":")
    return PluginsFolder(Path(f"{path}.plugins")) if kind == "sqlite" and path else None
