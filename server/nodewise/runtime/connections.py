"""Limits of connections: how many a worker has, and when it closes one."""

from __future__ import annotations

import resource
from typing import Final

from nodewise.runtime.groups_of_settings import MOST_CONNECTIONS, ConnectionSettings

__all__ = ["connection_options", "most_connections"]

PING_EVERY_S: Final = 10
"""Least seconds between pings of a caller without a call; more frequent pings end its connection."""
PING_ANSWERED_S: Final = 20.0
METADATA_BYTES: Final = 16 * 1024
"""Most bytes of the headers of a call, with its token."""
OTHER_DESCRIPTORS: Final = 256
"""File descriptors reserved for the store, traces, plugin hosts and the pool."""
_LEAST: Final = 16


def most_connections(setting: int | None) -> int:
    """Most connections of a worker: as set, else as its file descriptors allow; 0 = no limit."""
    if setting is not None:
        return setting
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(_LEAST, min(MOST_CONNECTIONS, descriptors - OTHER_DESCRIPTORS))


def connection_options(settings: ConnectionSettings) -> list[tuple[str, int]]:
    """The settings as options of gRPC's server.

    The server counts all connections together, and closes those that are silent or have no call for long. It does not
    limit connections from one address; a proxy in front of it can.
    """
    answered_ms = _ms(min(PING_ANSWERED_S, settings.alive_s))
    options = [
        ("grpc.server_handshake_timeout_ms", _ms(settings.handshake_s)),
        ("grpc.http2.settings_timeout", _ms(settings.handshake_s)),
        ("grpc.max_concurrent_streams", settings.calls),
        ("grpc.max_metadata_size", METADATA_BYTES // 2),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES),
        ("grpc.keepalive_time_ms", _ms(settings.alive_s)),
        ("grpc.keepalive_timeout_ms", answered_ms),
        ("grpc.http2.ping_timeout_ms", answered_ms),  # else the longer one of the two counts, a minute
        ("grpc.http2.min_ping_interval_without_data_ms", PING_EVERY_S * 1000),
    ]
    most = most_connections(settings.most)
    if most:
        options.append(("grpc.max_allowed_incoming_connections", most))
    if settings.idle_s:
        options.append(("grpc.max_connection_idle_ms", _ms(settings.idle_s)))
    if settings.age_s:
        options.append(("grpc.max_connection_age_ms", _ms(settings.age_s)))
    return options


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1e3))
