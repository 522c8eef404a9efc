"""Loaders: calls in flight over a few channels, messages as bytes, to cost less than the server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

import grpc

IN_FLIGHT = 64
CHANNELS = 4


async def unary(target: str, path: str, requests: Sequence[bytes], calls: int, connections: int = CHANNELS) -> None:
    """Make ``calls`` calls, taking the requests in turn."""
    channels = [
        grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1), ("n", number)])
        for number in range(connections)
    ]
    methods = [channel.unary_unary(path) for channel in channels]
    numbers = iter(range(calls))

    async def worker(place: int) -> None:
        method = methods[place % connections]
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


async def open_loop(target: str, path: str, requests: Sequence[bytes], per_s: float, seconds: float) -> list[float]:
    """Make calls at times drawn beforehand, whether or not those before are answered; their latencies in seconds.

    A latency counts from when the call was due: a loader that is late hides nothing.
    """
    draw = random.Random(1)
    latencies: list[float] = []
    async with grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        method = channel.unary_unary(path)
        await method(requests[0])

        async def call(number: int, due_s: float) -> None:
            await method(requests[number % len(requests)])
            latencies.append(time.perf_counter() - due_s)

        calls = []
        due_s = time.perf_counter()
        end_s = due_s + seconds
        while (due_s := due_s + draw.expovariate(per_s)) < end_s:
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            calls.append(asyncio.create_task(call(len(calls), due_s)))
        await asyncio.gather(*calls)
    return latencies
