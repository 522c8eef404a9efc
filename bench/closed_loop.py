"""Throughput that many callers keep beside one: ``python bench/closed_loop.py [--callers 40] [--seconds 6]``.

Each caller asks again as soon as it has its answer, or as the refusal says. A call is a batch of jobs that nobody asked
about before, so that each job costs a fit: batches of more jobs are calls that cost more. One line of JSON for each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter

import grpc
import rpc
from processes import Server

from nodewise_protos.v1 import configuration_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

JOBS = (1, 4, 8, 16, 64)
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]


def batch(jobs: int, draw: random.Random) -> bytes:
    """Jobs with other compute times each."""
    found = []
    for _ in range(jobs):
        content = rpc.profile()
        content.phase_timings.compute_seconds[0] *= 1.0 + draw.random()
        asked = configuration_pb2.Configurations(workers=range(1, 17))
        found.append(pb.BatchJob(profile=profile_pb2.ProfileSource(content=content), configurations=asked))
    return pb.BatchPredictRequest(jobs=found).SerializeToString()


async def load(target: str, callers: int, jobs: int, seconds: float, draw: random.Random) -> Counter[str]:
    """Outcomes by their names."""
    ends_s, outcomes = time.monotonic() + seconds, Counter[str]()

    async def caller() -> None:
        async with grpc.aio.insecure_channel(target, options=OPTIONS) as channel:
            ask = channel.unary_unary(rpc.BATCH)
            while time.monotonic() < ends_s:
                try:
                    await ask(batch(jobs, draw), timeout=60.0)
                except grpc.aio.AioRpcError as error:
                    outcomes[error.code().name] += 1
                    trailers = dict(error.trailing_metadata() or ())
                    await asyncio.sleep(int(trailers.get("grpc-retry-pushback-ms", 0)) / 1e3)
                else:
                    outcomes["OK"] += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    return outcomes


def main() -> None:
    """Measure one caller before and after many, on one server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--callers", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=6.0)
    asked = parser.parse_args()
    draw = random.Random(7)
    with Server("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", "memory:", refuses=True) as server:
        asyncio.run(load(server.target, 1, 4, 2.0, draw))
        for jobs in JOBS:
            one, many, again = (
                asyncio.run(load(server.target, callers, jobs, asked.seconds, draw))
                for callers in (1, asked.callers, 1)
            )
            alone = (one["OK"] + again["OK"]) / 2.0 / asked.seconds
            kept = many["OK"] / asked.seconds / alone
            print(
                json.dumps({"jobs": jobs, "alone_per_s": round(alone, 1), "kept": round(kept, 2), **many}), flush=True
            )


if __name__ == "__main__":
    main()
