"""Waiting for running scores, which come in their own time."""

from __future__ import annotations

from patience import wait_until

from nodewise.runtime.embedded_server import EmbeddedServer


def wait_until_scored(server: EmbeddedServer) -> None:
    """Wait until every commit to the store of a server is scored."""
    wait_until(lambda: not server._application._store.scores.waiting())
