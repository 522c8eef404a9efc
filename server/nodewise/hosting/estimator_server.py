"""Serve the estimators of a Python module at an address: ``python -m nodewise.hosting.estimator_server MODULE TARGET``.

It runs in a process, container or machine of its own, like a server in another language.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import grpc

from nodewise.hosting.processes.connection import OPTIONS
from nodewise.hosting.processes.models import Models
from nodewise.hosting.processes.servicer import Estimators
from nodewise.hosting.records import PluginProblem, records_of
from nodewise.mapper.mapping import to_message
from nodewise.plugin import EstimatorRecord
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import estimator_service_pb2_grpc

__all__ = ["serve"]

THREADS: Final = 4


def serve(plugin: Any, target: str, credentials: grpc.ServerCredentials | None = None) -> grpc.Server:
    """A started server of the estimators that a module (or object) registers.

    Parameters
    ----------
    target : str
        ``unix:///path`` or ``host:port``.
    credentials : ServerCredentials or None
        None = no TLS.

    Raises
    ------
    ValueError
        A record of the module is invalid; the text says which and why.
    """
    name = getattr(plugin, "__name__", type(plugin).__name__)
    records: list[EstimatorRecord] = []
    for each in records_of(name, name, lambda: plugin, name, lambda _: None):
        if isinstance(each, PluginProblem):
            raise ValueError(f"{each.kind} {each.name}: {each.message}")  # noqa: TRY004  # no type is wrong
        if isinstance(each[1], EstimatorRecord):
            records.append(each[1])
    listings = [
        to_message(each, pb.Estimator, capabilities=sorted(each.capabilities), columns=sorted(each.columns))
        for each in records
    ]
    estimators = {each.name: each.estimator for each in records}
    servicer = Estimators(estimators, Models(), listings=listings, instance=secrets.token_hex(8))
    server = grpc.server(ThreadPoolExecutor(THREADS), options=OPTIONS)
    estimator_service_pb2_grpc.add_EstimatorServiceServicer_to_server(servicer, server)
    if credentials is None:
        server.add_insecure_port(target)
    else:
        server.add_secure_port(target, credentials)
    server.start()
    return server


def main() -> None:
    """Parse the command line and serve until SIGTERM."""
    parser = argparse.ArgumentParser(description="Serve the estimators of a module at an address.")
    parser.add_argument("module", help="module with hooks of nodewise.plugin")
    parser.add_argument("target", help="unix:///path or host:port")
    parser.add_argument("--certificate", help="PEM file of the server's certificate; none = no TLS")
    parser.add_argument("--key", help="PEM file of its key")
    arguments = parser.parse_args()
    credentials = None
    if arguments.certificate:
        pair = Path(arguments.key).read_bytes(), Path(arguments.certificate).read_bytes()
        credentials = grpc.ssl_server_credentials([pair])
    server = serve(import_module(arguments.module), arguments.target, credentials)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    stop.wait()
    server.stop(1.0).wait()


if __name__ == "__main__":
    main()
