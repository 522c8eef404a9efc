"""A worker: the process that answers calls, under a supervisor that it follows."""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Any, Final

from nodewise.runtime.channel import Channel, Say

__all__ = ["ORDER_S", "main"]

ORDER_S: Final = 60.0
"""Patience with the supervisor's first message, which it sends as soon as it has started the process."""


def main(descriptor: int, supervisor: int) -> None:
    """Serve as told, until told to end; ends the process.

    Parameters
    ----------
    descriptor : int
        Of the channel to the supervisor.
    supervisor : int
        Its process.
    """
    # A terminal's signals are for the supervisor, which passes them on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from nodewise.runtime.processes import end_with_parent, named  # noqa: PLC0415  # after the signals are settled

    channel = Channel(socket.socket(fileno=descriptor))
    channel.send(Say.BORN, pid=os.getpid())
    end_with_parent(signal.SIGTERM, supervisor)
    named("nodewise-worker")
    order = channel.wait(ORDER_S)
    if not order:
        sys.exit(1)
    sys.exit(_worked(channel, order[0]))


def _worked(channel: Channel, order: dict[str, Any]) -> int:
    """Do the work; returns the exit status."""
    channel.send(Say.DOING, what="importing")
    import structlog  # noqa: PLC0415  # the process follows its supervisor before it takes time for imports

    from nodewise.runtime.logging import configure_logging  # noqa: PLC0415
    from nodewise.runtime.settings import Settings  # noqa: PLC0415

    settings = Settings(**order["settings"])
    configure_logging(settings.log_level)
    try:
        from nodewise.runtime.life import Life  # noqa: PLC0415
        from nodewise.runtime.starting import StartError  # noqa: PLC0415

        try:
            Life(settings, order["listen"], order["http"], channel, order["core"], patient=order["patient"]).run()
        except StartError as error:
            channel.send(Say.REFUSED, text=str(error), of_input=error.of_input)
            return 1
    except Exception:  # noqa: BLE001  # last stop of the process: the supervisor sees its status
        structlog.get_logger(__name__).exception("worker_failed")
        return 1
    finally:
        sys.stdout.flush()
    return 0
