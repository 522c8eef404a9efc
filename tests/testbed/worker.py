"""The workers of one host in one run: one thread and one connection to each server for each. Started by `measure`."""

import argparse
import concurrent.futures
import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import wire
from job import Job

Step = tuple[float, float, float, float, float]
Result = TypeVar("Result")


class Worker:
    """One worker: downloads, computes, uploads, over and over.

    Parameters
    ----------
    job
        What is trained.
    number
        Of the worker within the run; decides its stream of computation times.
    addresses
        Of the servers. The worker holds one connection to each and uses all at once.

    Attributes
    ----------
    steps
        For each step that has ended: its end on the machine's monotonic clock, then the seconds of download (from the
        request to the last byte), of computation, of upload (from the first byte sent to the acknowledgement, without
        the time that the gradient lay at the server), and for which the server's lock was held. With several servers
        the slowest counts.
    """

    def __init__(self, job: Job, number: int, addresses: list[str]) -> None:
        self.steps: list[Step] = []
        self._job = job
        self._random = random.Random(1000 * job.seed + number)
        self._connections = []
        for address in addresses:
            connection = socket.create_connection((address, wire.PORT))
            wire.prepare_socket(connection, job.congestion_control)
            self._connections.append(connection)
        self._buffers = [memoryview(bytearray(job.shard_bytes())) for _ in addresses]
        self._lengths = job.message_bytes()
        self._pool = concurrent.futures.ThreadPoolExecutor(len(addresses)) if len(addresses) > 1 else None
        self._compute = self._real_computation() if job.compute == "numpy" else self._sleep

    def await_start(self) -> float:
        """Wait until every worker is there; return the common start on the machine's monotonic clock."""
        start_s = 0.0
        for connection in self._connections:
            message = memoryview(bytearray(wire.START.size))
            wire.receive_exactly(connection, message)
            start_s = max(start_s, wire.START.unpack(message)[0])
        return start_s

    def run(self) -> None:
        """Step until the process ends."""
        while True:
            began_s = time.perf_counter()
            self._on_all(self._download)
            downloaded_s = time.perf_counter()
            self._compute()
            computed_s = time.perf_counter()
            uploads = self._on_all(self._upload)
            self.steps.append(
                (
                    time.monotonic(),
                    downloaded_s - began_s,
                    computed_s - downloaded_s,
                    max(upload_s for upload_s, _ in uploads),
                    max(held_s for _, held_s in uploads),
                )
            )

    def _on_all(self, exchange: Callable[[socket.socket, memoryview], Result]) -> list[Result]:
        """Exchange with every server at once."""
        if self._pool is None:
            return [exchange(self._connections[0], self._buffers[0])]
        return list(self._pool.map(exchange, self._connections, self._buffers))

    def _download(self, connection: socket.socket, buffer: memoryview) -> None:
        connection.sendall(wire.REQUEST)
        wire.receive_messages(connection, buffer, self._lengths, answer=self._job.tensor_acknowledgements)

    def _upload(self, connection: socket.socket, buffer: memoryview) -> tuple[float, float]:
        began_s = time.perf_counter()
        wire.send_messages(connection, buffer, self._lengths, wait=self._job.tensor_acknowledgements)
        answer = memoryview(bytearray(wire.ACKNOWLEDGEMENT.size))
        wire.receive_exactly(connection, answer)
        resided_s, held_s = wire.ACKNOWLEDGEMENT.unpack(answer)
        return time.perf_counter() - began_s - resided_s, held_s

    def _sleep(self) -> None:
        if not self._job.compute_cv:
            time.sleep(self._job.compute_s)
            return
        shape = self._job.compute_cv**-2
        time.sleep(self._random.gammavariate(shape, self._job.compute_s / shape))

    def _real_computation(self) -> Callable[[], None]:
        """Return a function that puts the gradient of a dense layer with a squared error where the parameters were."""
        import numpy as np

        weights = [np.frombuffer(buffer, np.float32) for buffer in self._buffers]
        rows = int(len(weights[0]) ** 0.5)
        matrices = [flat[: rows * (len(flat) // rows)].reshape(rows, -1) for flat in weights]
        generator = np.random.default_rng(self._job.seed)
        inputs = generator.standard_normal((self._job.batch_per_worker or 32, rows), np.float32)

        def compute() -> None:
            for matrix in matrices:
                np.matmul(inputs.T, inputs @ matrix, out=matrix)

        return compute


def main() -> None:
    """Run the workers of one host; print their steps and this host's counters of TCP."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", type=lambda text: Job.from_mapping(json.loads(text)))
    parser.add_argument("--numbers", type=int, nargs="+", required=True)
    parser.add_argument("--addresses", nargs="+", required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--window", type=float, required=True)
    parser.add_argument("--real-time", action="store_true")
    arguments = parser.parse_args()
    wire.prepare_process(real_time=arguments.real_time)
    workers = [Worker(arguments.job, number, arguments.addresses) for number in arguments.numbers]
    start_s = max(worker.await_start() for worker in workers)
    time.sleep(max(0.0, start_s - time.monotonic()))
    for worker in workers:
        threading.Thread(target=worker.run, daemon=True).start()
    time.sleep(max(0.0, start_s + arguments.warm_up - time.monotonic()))
    before = wire.tcp_counters()
    time.sleep(max(0.0, start_s + arguments.warm_up + arguments.window - time.monotonic()))
    after = wire.tcp_counters()
    result = {
        "start_s": start_s,
        "steps": [list(worker.steps) for worker in workers],
        "tcp": {name: after[name] - before[name] for name in after},
    }
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
