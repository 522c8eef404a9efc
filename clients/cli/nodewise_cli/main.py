"""Entry point of the `nodewise` command."""

from __future__ import annotations

import os

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # The C core of gRPC reads this when it is imported, and else writes lines of its own to standard error; what they
    # say is in our errors and logs.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from nodewise_cli.app import app

    app()
