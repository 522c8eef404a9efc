"""The zygote: a process that has imported all that workers need, and forks them ready.

What it holds is ours alone: the service and the shipped plugins. Nothing of the operator's, no thread, no socket but
the one to its supervisor, no core of gRPC and no store, so that there is nothing for a fork to break. It refuses to
fork once there is a second thread, whoever started that.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from pathlib import Path

from nodewise.runtime import worker
from nodewise.runtime.channel import Channel, Say
from nodewise.runtime.processes import end_with_parent, named
from nodewise.runtime.settings import Settings

__all__ = ["main"]


def main(descriptor: int, supervisor: int) -> None:
    """Fork workers as told, until nobody tells any more; ends the process, and each of the forked ones as its worker.

    Parameters
    ----------
    descriptor : int
        Of the channel to the supervisor.
    supervisor : int
        Its process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_with_parent(signal.SIGKILL, supervisor)
    named("nodewise-zygote")
    channel = Channel(socket.socket(fileno=descriptor))
    gc.disable()  # what is imported stays
    from nodewise.runtime import life  # noqa: F401, PLC0415  # most of a start's time goes here; it needs no settings

    order = channel.wait(worker.ORDER_S)
    if not order:
        return
    _preload(Settings(**order[0]["settings"]), channel)
    gc.collect()
    gc.freeze()  # a collection in a worker would write to pages that it shares
    gc.enable()
    channel.send(Say.WARM)
    while (theirs := channel.wait_for_descriptor()) is not None:
        if _threads() > 1:
            channel.send(Say.REFUSED, text=f"it has {_threads()} threads, which a fork would lose", of_input=False)
            os.close(theirs)
        elif _forked():
            channel.close()
            if os.getppid() == supervisor:
                worker.main(theirs, supervisor)
            return
        else:
            os.close(theirs)


def _preload(settings: Settings, channel: Channel) -> None:
    """Import the shipped plugins, and let them warm up."""
    from nodewise.runtime.generations.loading import preload_shipped  # noqa: PLC0415
    from nodewise.runtime.logging import configure_logging  # noqa: PLC0415

    configure_logging(settings.log_level)
    channel.send(Say.DOING, what="loading the shipped plugins")
    preload_shipped(settings)
    from scipy import linalg, optimize, special  # noqa: F401, PLC0415  # else the first answers of each worker would

    if settings.http_listen:
        from nodewise.runtime import http_listening  # noqa: F401, PLC0415


def _forked() -> bool:
    """Whether this is the new process, a child of the supervisor."""
    reading, writing = os.pipe()
    between = os.fork()
    if between:
        os.close(reading)
        os.waitpid(between, 0)  # with it the process that it forked has become the supervisor's
        os.close(writing)
        return False
    if os.fork():
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    os.setpgid(0, 0)
    return True


def _threads() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:
        return sys.maxsize  # nobody tells: no fork
