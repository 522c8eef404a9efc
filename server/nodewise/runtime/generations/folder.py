"""The folder of plugins: distributions, their generations, and which one serves, for all processes of a server.

Whatever is complete is never changed: folders and files are written under another name first, and renamed. Changes of
the state are made one at a time, whichever process makes them, and are on the disk before anyone hears of them.
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
    """What is wrong with the folder, or with what was asked of it, in words for the operator."""


class PluginsFolder:
    """Generations on the disk.

    Parameters
    ----------
    path : Path
        Made with the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    # --- the state

    def state(self) -> State:
        """Which generation serves now; before anything was written, the server's own environment.

        Raises
        ------
        PluginsFolderError
            It cannot be read.
        """
        try:
            return State.read((self.path / _STATE).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return State()
        except (OSError, ValueError) as error:
            raise PluginsFolderError(f"{self.path / _STATE}: cannot be read: {error}") from None

    def stamp(self) -> tuple[int, int]:
        """Another one once the state was replaced: cheap to ask."""
        try:
            status = (self.path / _STATE).stat()
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_ino

    def change(self, update: Callable[[State], State]) -> State:
        """Replace the state by what is made of it; returns what it is now."""
        with self._lock():
            before = self.state()
            after = update(before)
            if after == before:
                return before
            after = replace(after, sequence=before.sequence + 1)
            replace_file(self.path / _STATE, after.to_json())
            return after

    def begin(self) -> Generation:
        """What a server starts with: what waits for a reload, since nothing serves beside it, else what served last.

        Raises
        ------
        PluginsFolderError
            It cannot be had.
        """
        state = self.state()
        if state.candidate:
            self.generation(state.candidate)
            state = self.change(lambda now: now.with_stable(now.candidate) if now.candidate else now)
        return self.generation(state.stable)

    # --- generations

    def add(self, why: str, distributions: tuple[InstalledDistribution, ...], catalogue: bytes = b"") -> Generation:
        """A new generation; no process serves it yet.

        Parameters
        ----------
        catalogue : bytes
            The file of devices and links that belongs to it; empty = none.
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
        """A generation by its number; 0 is the server's own environment.

        Raises
        ------
        PluginsFolderError
            There is none, or a folder of it is gone.
        """
        if number == 0:
            return Generation(number=0, created_unix_s=0.0, why="what is installed")
        try:
            result = Generation.read((self._generations / f"{number}.json").read_bytes())
        except FileNotFoundError:
            numbers = ", ".join(str(each) for each in sorted(self._numbers())) or "none"
            raise PluginsFolderError(f"there is no generation {number}; there are: {numbers}") from None
        except (OSError, ValueError) as error:
            raise PluginsFolderError(f"generation {number} cannot be read: {error}") from None
        for each in result.distributions:
            if not self.folder_of(each).is_dir():
                raise PluginsFolderError(f"generation {number} needs {self.folder_of(each)}, which is gone")
        return result

    def generations(self) -> list[Generation]:
        """All that can be read, by number; what cannot is logged."""
        result = []
        for number in sorted(self._numbers()):
            try:
                result.append(Generation.read((self._generations / f"{number}.json").read_bytes()))
            except (OSError, ValueError) as error:
                _log.warning("generation_unreadable", number=number, reason=str(error))
        return result

    def catalogue_of(self, generation: Generation) -> Path | None:
        """The file of devices and links that is kept with a generation; None = it has none."""
        return self._generations / f"{generation.number}.catalogue.toml" if generation.catalogue_digest else None

    def keep_report(self, number: int, trial: pb.Trial) -> None:
        """Keep what came of trying a generation, in place of what came of it before; raises PluginsFolderError."""
        with self._writing():
            replace_file(self._generations / f"{number}.report.json", MessageToJson(trial).encode())

    def report(self, number: int) -> pb.Trial | None:
        """What came of trying a generation; None = it was not tried."""
        try:
            report = (self._generations / f"{number}.report.json").read_bytes()
            return Parse(report, pb.Trial(), ignore_unknown_fields=True)
        except (OSError, ParseError):
            return None

    # --- distributions

    def folder_of(self, distribution: InstalledDistribution) -> Path:
        """Where a distribution is."""
        return self._distributions / distribution.folder

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """An empty folder to install into; :meth:`complete` makes it one of ours, else it goes.

        Raises
        ------
        PluginsFolderError
            None can be made.
        """
        with self._writing(self._distributions):
            self._distributions.mkdir(parents=True, exist_ok=True)
            folder = Path(mkdtemp(prefix=".new-", dir=self._distributions))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def complete(self, folder: Path, name: str, version: str, digest: str) -> InstalledDistribution:
        """Name a folder for good; the same content that is there already stays. Raises PluginsFolderError."""
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
        """Say what a process serves by now."""
        data = orjson.dumps({**report, "born_ticks": start_ticks(pid)})
        replace_file(self.path / "serving" / f"{pid}.json", data, durable=False)

    def reports(self) -> dict[int, dict[str, Any]]:
        """What the processes that are alive said last."""
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
        """A process ends."""
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
    """Write a file as a whole or not at all."""
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
    """Where generations are kept; None = the settings name no place that lasts."""
    if settings.plugins_folder:
        return PluginsFolder(Path(settings.plugins_folder))
    kind, _, path = settings.store.partition(":")
    return PluginsFolder(Path(f"{path}.plugins")) if kind == "sqlite" and path else None
