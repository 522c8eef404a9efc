"""Entry point of the `nodewise` command."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress

__all__ = ["main"]

_INTERRUPTED = 130

_COLLECT_EVERY = (50_000, 20, 100)
"""As a server that serves: most of what a command allocates is what it imports, and that stays."""


def main() -> None:
    """Run the command line. Ctrl-C ends it with status 130 and without a word."""
    # Nothing is there to be put in order before the command runs, and an import that is torn is no error of ours.
    signal.signal(signal.SIGINT, _leave)
    _quieten_grpc()
    # Read when NumPy is: this process, and those that it starts, are ours. Without the server nothing computes here.
    with suppress(ModuleNotFoundError):
        from nodewise.runtime.blas import one_thread_each

        one_thread_each()
    gc.disable()  # what is imported stays
    from nodewise_cli.app import app

    gc.freeze()
    gc.set_threshold(*_COLLECT_EVERY)
    gc.enable()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        app()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    finally:
        # What is left is the interpreter's own end.
        signal.signal(signal.SIGINT, _leave)


def _quieten_grpc() -> None:
    """Keep the C core of gRPC from lines of its own on standard error. It reads the variables as it is imported.

    What it says is in our errors and logs; that a process which it serves was forked, it would say even where somebody
    asked it to be verbose, and no fork of ours calls it.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def _leave(_number: int, _frame: object) -> None:
    os._exit(_INTERRUPTED)
