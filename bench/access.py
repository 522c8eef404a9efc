"""CPU of the server per prediction with TLS and a token beside plaintext that asks nobody, over connections that last.

A handshake is a matter of a connection, not of a call: what it costs is told apart.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import loader
import rpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from processes import Server
from results import Result

from nodewise.profiles.opening import open_store
from nodewise.runtime.event_loop import new_event_loop
from nodewise.runtime.identity.tokens import new_token

IN_FLIGHT = 16
PATIENCE_S = "60"
"""Calls at a time, and how long they may wait: none is refused on a busy machine."""
CALLS, ROUNDS = 150, 60
"""Of a round, and rounds: shorter and more of them than elsewhere, for a difference of a few microseconds."""
HANDSHAKES = 16
"""Of a round."""
Metadata = tuple[tuple[str, str], ...]


class Callers:
    """Connections to a server that last, in the event loop of a runner."""

    def __init__(self, runner: asyncio.Runner, server: Server, roots: bytes | None, token: str) -> None:
        self._runner, self.server, self._roots = runner, server, roots
        self._metadata: Metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._channels = runner.run(self._opened(loader.CHANNELS))

    async def _opened(self, count: int) -> list[grpc.aio.Channel]:
        channels = [self._channel(number) for number in range(count)]
        await asyncio.gather(*(channel.channel_ready() for channel in channels))
        return channels

    def _channel(self, number: int) -> grpc.aio.Channel:
        options = [("grpc.use_local_subchannel_pool", 1), ("n", number)]
        target = self.server.target
        if self._roots is None:
            return grpc.aio.insecure_channel(target, options=options)
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(self._roots), options=options)

    def cpu_us(self, requests: Sequence[bytes], calls: int) -> float:
        """Of the server, per call."""
        before_s = self.server.cpu_s()
        self._runner.run(self._asked(requests, calls))
        return (self.server.cpu_s() - before_s) / calls * 1e6

    async def _asked(self, requests: Sequence[bytes], calls: int) -> None:
        methods = [channel.unary_unary(rpc.PREDICT) for channel in self._channels]
        numbers = iter(range(calls))

        async def worker(place: int) -> None:
            method = methods[place % len(methods)]
            for number in numbers:
                await method(requests[number % len(requests)], metadata=self._metadata)

        await asyncio.gather(*(worker(place) for place in range(IN_FLIGHT)))

    def connecting_us(self) -> float:
        """Of the server, per connection that is opened and closed."""

        async def work() -> None:
            for channel in await self._opened(HANDSHAKES):
                await channel.close()

        before_s = self.server.cpu_s()
        self._runner.run(work())
        return (self.server.cpu_s() - before_s) / HANDSHAKES * 1e6

    def close(self) -> None:
        """End the connections."""

        async def work() -> None:
            await asyncio.gather(*(channel.close() for channel in self._channels))

        self._runner.run(work())


def run() -> Iterator[Result]:
    """The figures, medians of short rounds that alternate between the servers."""
    questions, unknown = rpc.requests(), rpc.unasked(CALLS * (ROUNDS + 1))
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner(loop_factory=new_event_loop))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        roots = _certificate(folder)
        callers: dict[str, Callers] = {}
        for name, pem in (("plaintext", None), ("tls", roots), ("token", None)):
            url = f"sqlite:{folder / name}.db"
            token = "" if name == "plaintext" else _token(url)
            options = ("--config", str(folder / f"{name}.toml"))
            server = stack.enter_context(Server(*rpc.served(url, *options)))
            _store_profiles(server.target, pem, token)
            callers[name] = Callers(runner, server, pem, token)
            stack.callback(callers[name].close)

        for who in callers.values():
            rpc.settle(who.server)

        def known(who: Callers) -> Callable[[int], float]:
            return lambda _: who.cpu_us(questions, CALLS)

        def new(who: Callers) -> Callable[[int], float]:
            return lambda at: who.cpu_us(unknown[at * CALLS : (at + 1) * CALLS], CALLS)

        for kind, window in (("cached", known), ("never_asked_before", new)):
            found = rpc.measured({name: window(who) for name, who in callers.items()}, "plaintext", ROUNDS)
            yield Result(
                f"predict_{kind}_server_cpu_tls_and_token_beside_plaintext", found["tls"][0], "us", *found["tls"][1:]
            )
            yield Result(
                f"predict_{kind}_server_cpu_token_beside_nobody_asked", found["token"][0], "us", *found["token"][1:]
            )
        found = rpc.measured({name: _connecting(who) for name, who in callers.items()}, "plaintext")
        yield Result("connection_server_cpu_tls_beside_plaintext", found["tls"][0], "us", *found["tls"][1:])


def _connecting(who: Callers) -> Callable[[int], float]:
    return lambda _: who.connecting_us()


def _token(url: str) -> str:
    """One that reads and writes, in a store that no server has yet."""
    store = open_store(url)
    assert store.tokens is not None
    text, kept = new_token("bench", ["read", "ingest"], [], None)
    store.tokens.add(kept)
    store.close()
    return text


def _store_profiles(target: str, roots: bytes | None, token: str) -> None:
    channel = (
        grpc.insecure_channel(target)
        if roots is None
        else grpc.secure_channel(target, grpc.ssl_channel_credentials(roots))
    )
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with channel:
        append: Any = channel.unary_unary(rpc.APPEND)
        for request in rpc.appends():
            append(request, metadata=metadata)


def _certificate(folder: Path) -> bytes:
    """A server's certificate that signs itself, with an RSA key of 2048 bits as most have, and files of settings."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    begins = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), begins, begins + dt.timedelta(2)
        )
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    (folder / "tls.pem").write_bytes(pem)
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    patient = f"queue_wait_s = {PATIENCE_S}\n"
    files = f'[tls]\ncertificate = "{folder / "tls.pem"}"\nkey = "{folder / "tls.key"}"\n'
    (folder / "tls.toml").write_text(f'{patient}authentication = ["tokens"]\n{files}')
    (folder / "token.toml").write_text(f'{patient}authentication = ["tokens"]\n')
    (folder / "plaintext.toml").write_text(patient)
    return pem
