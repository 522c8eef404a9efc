"""Messages to the service manager that started this process: systemd's protocol, sd_notify(3)."""

from __future__ import annotations

import os
import socket

__all__ = ["notify_service_manager"]


def notify_service_manager(state: str) -> None:
    """Send a state, such as ``READY=1``, to the manager, where there is one; ignore errors, as sd_notify(3) asks."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect("\0" + address[1:] if address.startswith("@") else address)
            sender.sendall(state.encode())
    except OSError:
        pass
