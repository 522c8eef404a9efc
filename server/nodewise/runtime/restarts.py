"""Rolling restarts: settings read anew, workers that are to go as others come, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from nodewise.runtime.members import Member, State
from nodewise.runtime.placing import of
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["Restarts"]

_log = structlog.get_logger(__name__)


class Restarts:
    """The restart that is under way, if one is, and the settings that it is for.

    Parameters
    ----------
    settings : Settings
        To serve with at first.
    read : callable
        Reads them anew; raises SettingsError.
    adopted : callable
        Told of settings that hold from now on.
    """

    def __init__(self, settings: Settings, read: Callable[[], Settings], adopted: Callable[[Settings], None]) -> None:
        self.settings = settings
        """Of workers that start now."""
        self.under_way = False
        self.again = False
        """Whether another was asked for meanwhile."""
        self._before = settings
        """Those that served before a restart that has not come through yet."""
        self._read = read
        self._adopted = adopted

    def differs(self) -> bool:
        """Whether other settings stand to be read than those that are served with, or wrong ones."""
        try:
            found = self._read()
        except SettingsError:  # the restart tells of it
            return True
        return found.model_copy(update={"listen": self.settings.listen}) != self.settings

    def begin(self, members: Sequence[Member]) -> bool:
        """Let every worker that there is go as soon as a new one serves in its place; False = wrong settings."""
        try:
            settings = self._read()
        except SettingsError as error:
            _log.error("restart_refused", reason=str(error))
            return False
        if settings.listen != self._before.listen:
            _log.warning("setting_kept", setting="listen", reason="the port is held; stop the server to change it")
        if settings.store.startswith("memory:"):
            _log.warning("store_is_lost", reason="memory: is one process's own; new workers start with an empty one")
        self._before, self.settings = self.settings, settings.model_copy(update={"listen": self._before.listen})
        self._adopted(self.settings)
        self.under_way = True
        for member in members:
            member.stale = True
        _log.info("restarting", workers=settings.workers)
        return True

    def failed(self, reason: str, members: Sequence[Member]) -> None:
        """What serves goes on; a worker that serves with the new settings already stays too."""
        stale = [member for member in members if member.stale and member.state is State.SERVING]
        for member in stale:
            member.stale = False
        if not self.under_way:
            return
        _log.error("restart_failed", reason=reason, kept=len(stale))
        self.under_way = False
        if not any(member.settings is self.settings for member in of(members, State.SERVING)):
            self.settings = self._before
            self._adopted(self.settings)
        for member in members:
            if member.settings is not self.settings and member.state is not State.SERVING:
                member.kill("superseded")

    def look(self, members: Sequence[Member]) -> None:
        """Notice that it has come through."""
        if self.under_way and not any(member.stale for member in members if member.state is not State.DRAINING):
            self.under_way = False
            _log.info("restarted", workers=self.settings.workers)
