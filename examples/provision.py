"""How to spend machines on a network that never ran: partitions, replicas and parameter servers, all at once.

Every way to divide up to N machines into R replicas of T x P machines each and S servers is asked about in one call,
and the fastest is printed, with the best of each size of replica beside it:

    python examples/provision.py examples/layers/mlp.csv --machines 32 --device Xeon-E5-2450L --link-bytes-per-s 1.25e9
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    Client,
    ModelOptions,
    Network,
    Prediction,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    Workload,
    configurations,
    layers_from_csv,
    profile_source,
)


def divisions(machines: int, most_parts: int, most_stages: int) -> Iterator[tuple[int, int, int, int]]:
    """Machines per layer, stages, replicas, servers: replicas as many as the servers leave room for."""
    for parts in range(1, most_parts + 1):
        for stages in range(1, most_stages + 1):
            for servers in range(1, machines):
                replicas = (machines - servers) // (parts * stages)
                if replicas:
                    yield parts, stages, replicas, servers


@contextmanager
def connected(server: str | None) -> Iterator[Client]:
    """A client of the named server, or of one that runs inside this process."""
    if server is not None:
        with Client(server) as client:
            yield client
        return
    with EmbeddedServer() as embedded, Client(embedded.target) as client:
        yield client


def main() -> None:
    """Ask, and print the best."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("layers", type=Path, help="table of layers")
    parser.add_argument("--machines", type=int, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--link-bytes-per-s", type=float, required=True)
    parser.add_argument("--batch", type=int, default=64, help="samples of a replica between two exchanges")
    parser.add_argument("--sync", choices=("async", "sync"), default="async")
    parser.add_argument("--most-parts", type=int, default=8)
    parser.add_argument("--most-stages", type=int, default=4)
    parser.add_argument("--server", help="HOST:PORT; default: one inside this process")
    given = parser.parse_args()
    layers = layers_from_csv(given.layers)
    job = ProfileContent(
        workload=Workload(layers=layers, precision="fp32"),
        network=Network(link_bytes_per_second=given.link_bytes_per_s),
    )
    ways = list(divisions(given.machines, given.most_parts, min(given.most_stages, len(layers))))
    rows = configurations(
        nodes=[parts * stages * replicas for parts, stages, replicas, _ in ways],
        workers=[parts * stages * replicas for parts, stages, replicas, _ in ways],
        parameter_servers=[servers for *_, servers in ways],
        tensor_parallel_degrees=[parts for parts, *_ in ways],
        pipeline_parallel_degrees=[stages for _, stages, *_ in ways],
        devices=given.device,
        sync_modes=given.sync,
        batch_per_worker_samples=given.batch,
    )
    with connected(given.server) as client:
        answer = client.predict(
            PredictRequest(
                profile=profile_source(job),
                configurations=rows,
                options=PredictOptions(model=ModelOptions(estimator="partitioning")),
            )
        )
    best: dict[tuple[int, int], tuple[Prediction, tuple[int, int, int, int]]] = {}
    for row, way in zip(answer, ways, strict=True):
        if row.samples_per_second is None:
            continue
        known = best.get(way[:2])
        if known is None or row.samples_per_second > (known[0].samples_per_second or 0.0):
            best[way[:2]] = row, way
    print(f"{len(ways)} ways to divide {given.machines} machines; the best of each size of replica:")
    print("parts  stages  replicas  servers  samples/s  bottleneck")
    ranked = sorted(best.values(), key=lambda found: -(found[0].samples_per_second or 0.0))
    for row, (parts, stages, replicas, servers) in ranked[:10]:
        print(f"{parts:5} {stages:7} {replicas:9} {servers:8} {row.samples_per_second or 0.0:10.1f}  {row.bottleneck}")


if __name__ == "__main__":
    main()
