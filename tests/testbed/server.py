"""The parameter server of one run: one thread for each worker, one lock for the updates. Started by `measure`."""

import argparse
import json
import socket
import sys
import threading
import time

import wire
from job import Job


class Server:
    """State of one server, or of one shard of the parameters.

    Parameters
    ----------
    job
        What is trained.
    workers
        Workers that will connect. None is served before all have.
    warm_up_s
        How long after the common start the counters of TCP are read for the first time.
    """

    def __init__(self, job: Job, workers: int, warm_up_s: float) -> None:
        self._job = job
        self._workers = workers
        self._warm_up_s = warm_up_s
        self._update_lock = threading.Lock()
        self._round = threading.Barrier(workers)
        self._parameters = memoryview(bytearray(job.shard_bytes()))
        self._lengths = job.message_bytes()

    def serve(self, address: str) -> None:
        """Accept all workers, start them at one time, and serve them until they have gone."""
        listener = socket.create_server((address, wire.PORT), backlog=self._workers)
        wire.prepare_socket(listener, self._job.congestion_control)
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        connections = [listener.accept()[0] for _ in range(self._workers)]
        threads = [threading.Thread(target=self._serve_worker, args=(c,)) for c in connections]
        for thread in threads:
            thread.start()
        start_s = time.monotonic() + 0.05
        for connection in connections:
            wire.prepare_socket(connection, self._job.congestion_control)
            connection.sendall(wire.START.pack(start_s))
        time.sleep(max(0.0, start_s + self._warm_up_s - time.monotonic()))
        before = wire.tcp_counters()
        for thread in threads:
            thread.join()
        after = wire.tcp_counters()
        sys.stdout.write(json.dumps({name: after[name] - before[name] for name in after}) + "\n")

    def _serve_worker(self, connection: socket.socket) -> None:
        gradient = memoryview(bytearray(len(self._parameters)))
        request = memoryview(bytearray(1))
        wait = self._job.tensor_acknowledgements
        try:
            while True:
                wire.receive_exactly(connection, request)
                wire.send_messages(connection, self._parameters, self._lengths, wait=wait)
                wire.receive_messages(connection, gradient, self._lengths, answer=wait)
                arrived_s = time.perf_counter()
                held_s = self._update(gradient)
                if self._job.sync == "sync":
                    self._round.wait()
                resided_s = time.perf_counter() - arrived_s
                connection.sendall(wire.ACKNOWLEDGEMENT.pack(resided_s, held_s))
        except (EOFError, OSError, threading.BrokenBarrierError):
            self._round.abort()
            connection.close()

    def _update(self, gradient: memoryview) -> float:
        """Apply a gradient under the lock; return the seconds for which the lock was held."""
        with self._update_lock:
            began_s = time.perf_counter()
            if self._job.compute == "numpy":
                import numpy as np

                parameters = np.frombuffer(self._parameters, np.float32)
                parameters -= np.float32(1e-6) * np.frombuffer(gradient, np.float32)
            else:
                time.sleep(self._job.update_s / self._job.parameter_servers)
            return time.perf_counter() - began_s


def main() -> None:
    """Serve one run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", type=lambda text: Job.from_mapping(json.loads(text)))
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--real-time", action="store_true")
    arguments = parser.parse_args()
    wire.prepare_process(real_time=arguments.real_time)
    Server(arguments.job, arguments.workers, arguments.warm_up).serve(arguments.address)


if __name__ == "__main__":
    main()
