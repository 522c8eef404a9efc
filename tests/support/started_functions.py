"""Functions that tests have called in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from nodewise.processes.channel import Channel
from nodewise.processes.child import limit_memory
from nodewise.processes.spawning import spawn_connected


def echo(descriptor: int) -> int:
    """Send each message back; the status is how many there were."""
    channel, count = Channel(descriptor), 0
    while True:
        try:
            channel.send(channel.receive())
        except EOFError:
            return count
        count += 1


def tell(descriptor: int) -> None:
    """Send what the process is, then sleep."""
    channel = Channel(descriptor)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    facts = (
        *(os.getpid(), os.getpgid(0), os.getsid(0), os.nice(0), sleeper.pid),
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        sorted(os.environ),
        len(os.listdir("/proc/self/fd")) - 1,  # noqa: PTH208  # less the one that lists
    )
    channel.send(repr(facts).encode())
    time.sleep(600)


def ignore_sigterm(descriptor: int) -> None:
    """Say so, and go on."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Channel(descriptor).send(b"")
    time.sleep(600)


def allocate(limit_bytes: int, wanted_bytes: int) -> str | None:
    """Exit with status 0 if there is so much memory."""
    limit_memory(limit_bytes)
    try:
        bytearray(wanted_bytes)
    except MemoryError:
        return "no memory"
    return None


def start_another(descriptor: int) -> None:
    """Start a process that ends with this one, and send its number."""
    process, connection = spawn_connected("started_functions:ignore_sigterm", name="below")
    Channel(connection.detach()).receive()  # by then it is what it will be
    Channel(descriptor).send(str(process.pid).encode())
    time.sleep(600)
