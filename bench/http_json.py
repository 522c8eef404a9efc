"""CPU of the server per Predict over HTTP/JSON beside the same question over gRPC, of the same server."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence

import loader
import rpc
from google.protobuf import json_format
from processes import Server
from results import Result

from nodewise_protos.v1 import prediction_service_pb2 as pb

CALLS, ROUNDS = 300, 15
CONNECTIONS = 16
PATHS = {"rest": "/v1/predictions:predict", "connect": rpc.PREDICT}
HEAD = "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"


def in_json(questions: Sequence[bytes], path: str) -> list[bytes]:
    """Whole requests of HTTP."""
    bodies = [json_format.MessageToJson(pb.PredictRequest.FromString(each), indent=None).encode() for each in questions]
    return [HEAD.format(path=path, size=len(body)).encode() + body for body in bodies]


async def load(target: str, requests: Sequence[bytes], calls: int) -> None:
    """Make calls over connections that last, taking the requests in turn."""
    numbers = iter(range(calls))
    host, _, port = target.rpartition(":")

    async def worker() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for number in numbers:
            writer.write(requests[number % len(requests)])
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not head.startswith(b"http/1.1 200"):
                raise RuntimeError(head.decode())
            await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
        writer.close()

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


def run() -> Iterator[Result]:
    """The figures, medians of short rounds that alternate between the transports."""
    known, unknown = rpc.requests(), rpc.unasked(3 * CALLS * (ROUNDS + 1))
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(*rpc.served(f"sqlite:{folder}/bench.db", "--http", "127.0.0.1:0")) as server,
    ):
        target = server.http_target
        rpc.store_profiles(server.target)
        rpc.settle(server)

        def grpc(asked: Sequence[bytes], step: int) -> Callable[[int], float]:
            return lambda at: rpc.cpu_us(
                server, loader.unary(server.target, rpc.PREDICT, asked[at * step :][:CALLS], CALLS), CALLS
            )

        def http(path: str, asked: Sequence[bytes], step: int) -> Callable[[int], float]:
            return lambda at: rpc.cpu_us(server, load(target, in_json(asked[at * step :][:CALLS], path), CALLS), CALLS)

        share = CALLS * (ROUNDS + 1)
        for kind, asked, step in (("cached", known, 0), ("never_asked_before", unknown, CALLS)):
            parts = [asked[place * share :][:share] if step else asked for place in range(3)]
            windows = {"grpc": grpc(parts[0], step)}
            windows |= {
                name: http(path, part, step) for (name, path), part in zip(PATHS.items(), parts[1:], strict=True)
            }
            found = rpc.measured(windows, "grpc", ROUNDS)
            for name in PATHS:
                title = f"predict_{kind}_server_cpu_16_configurations_json_over_{name}_beside_grpc"
                yield Result(title, found[name][0], "us", *found[name][1:])
