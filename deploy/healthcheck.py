"""Ask the server of this container for its health over HTTP: exit 0 where it serves, else one line and 1.

Run as ``python -I -S healthcheck.py``. It imports a little of the standard library and nothing else, because it is
started every few seconds. It reads the settings of the server: the environment, then the file of NODEWISE_CONFIG.
"""

from __future__ import annotations

import os
import socket
import sys

TIMEOUT_S = 3.0
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
OF_THIS_HOST = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}


def settings() -> tuple[str, str, str]:
    """Return `http`, `tls.certificate` and `tls.client_authorities`; not set = empty."""
    names = ("NODEWISE_HTTP", "NODEWISE_TLS__CERTIFICATE", "NODEWISE_TLS__CLIENT_AUTHORITIES")
    listen, certificate, authorities = (os.environ.get(name, "") for name in names)
    path = os.environ.get("NODEWISE_CONFIG", "")
    if path:
        import tomllib

        with open(path, "rb") as file:
            of_file = tomllib.load(file)
        tls = of_file.get("tls", {})
        listen = listen or of_file.get("http", "")
        certificate = certificate or tls.get("certificate", "")
        authorities = authorities or tls.get("client_authorities", "")
    return listen, certificate, authorities


def status_line(connection: socket.socket) -> str:
    """Send the request; return the first line of the reply."""
    connection.sendall(REQUEST)
    return connection.recv(256).split(b"\r\n")[0].decode("latin-1")


def status_line_by_tls(connection: socket.socket, *, is_mutual: bool) -> str:
    """Do so by TLS. The certificate is not verified: the connection does not leave this host."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(connection) as secured:
        # This check has no certificate to show. The server has shown its own, which is all that can be known.
        return "HTTP/1.1 200 OK" if is_mutual else status_line(secured)


def failure() -> str | None:
    """Ask once; None = it serves."""
    listen, certificate, authorities = settings()
    host, _, port = listen.rpartition(":")
    if not port.isdigit():
        return f"the setting http is {listen!r}; this check needs HOST:PORT"
    host = OF_THIS_HOST.get(host, host.strip("[]"))
    try:
        with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
            if certificate:
                line = status_line_by_tls(connection, is_mutual=bool(authorities))
            else:
                line = status_line(connection)
    except OSError as error:
        return f"{host}:{port}: {error}"
    return None if line.split(" ")[1:2] == ["200"] else f"{host}:{port}: {line or 'no reply'}"


if __name__ == "__main__":
    sys.exit(failure())
