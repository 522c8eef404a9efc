"""A closed-loop loader: calls in flight over a few channels, messages as bytes, to cost less than the server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc

IN_FLIGHT = 64
CHANNELS = 4


async def unary(target: str, path: str, requests: Sequence[bytes], calls: int) -> None:
    """Make ``calls`` calls, taking the requests in turn."""
    channels = [
        grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1), ("n", number)])
        for number in range(CHANNELS)
    ]
    methods = [channel.unary_unary(path) for channel in channels]
    numbers = iter(range(calls))

    async def worker(place: int) -> None:
        method = methods[place % CHANNELS]
        for number in numbers:
            await method(requests[number % len(requests)])

    await asyncio.gather(*(worker(place) for place in range(IN_FLIGHT)))
    for channel in channels:
        await channel.close()


async def streams(target: str, path: str, requests: Sequence[bytes], calls: int) -> None:
    """The same number of questions over one stream per call in flight."""
    channels = [
        grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1), ("n", number)])
        for number in range(CHANNELS)
    ]
    numbers = iter(range(calls))

    async def worker(place: int) -> None:
        stream = channels[place % CHANNELS].stream_stream(path)()
        for number in numbers:
            await stream.write(requests[number % len(requests)])
            await stream.read()
        await stream.done_writing()

    await asyncio.gather(*(worker(place) for place in range(IN_FLIGHT)))
    for channel in channels:
        await channel.close()
