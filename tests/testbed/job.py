"""What one job of the testbed is: a training job's cycle, the link under it, and the numbers of workers to measure."""

import dataclasses
import json
import pathlib
from typing import Any, Literal


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """One training job and the network under it. Times of phases are those without any contention.

    Attributes
    ----------
    job
        Name, for the table.
    sync
        ``async``: every worker goes on after its own update. ``sync``: all wait for the last update of the round.
    workers
        Numbers of workers to measure, each in a run of its own.
    parameter_bytes
        Bytes that a worker downloads before, and uploads after, each computation.
    link_bytes_per_s
        Rate of the link of each server, in each direction, headers included.
    compute_s, compute_cv
        Mean, and standard deviation over mean, of the time of one computation; gamma-distributed.
    compute
        ``sleep`` waits that long. ``numpy`` computes a real gradient of a dense layer of `parameter_bytes` in 32-bit
        floats over `batch_per_worker` samples, as long as it takes, and the server really applies it.
    update_s
        Time for which the server holds its lock to apply one gradient. Each of several servers holds its part of it.
    parameter_servers
        Servers that share the parameters evenly. Each has a link of its own.
    burst_ms, queue_ms
        Size of the token bucket, and longest wait in the queue before it, in milliseconds at the link's rate.
    queue_packets
        Packets of a child queue within the token bucket, instead of one limited in bytes by `queue_ms`.
    worker_link_bytes_per_s
        Rate of each worker's own link in each direction. None: workers share a host without any limit.
    worker_hosts
        Each worker in a network namespace of its own, joined to the servers by a bridge.
    tensors
        Messages into which each transfer is cut, evenly, each with a header of 8 bytes.
    tensor_acknowledgements
        Whether the receiver acknowledges each message before the next is sent.
    congestion_control
        Linux's name of the algorithm.
    slow_start_after_idle
        Whether a connection begins anew, with a small window, after idling for a retransmission timeout (the default).
    segmentation_offload
        Whether the virtual links carry segments larger than a frame, as they do by default.
    batch_per_worker
        Samples in a computation. None where there are none: sleeping.
    seed
        Of the computation times. Worker w of a run draws from a stream of its own.
    """

    job: str
    sync: Literal["async", "sync"] = "async"
    workers: tuple[int, ...]
    parameter_bytes: int
    link_bytes_per_s: float
    compute_s: float
    compute_cv: float = 0.0
    compute: Literal["sleep", "numpy"] = "sleep"
    update_s: float = 0.0
    parameter_servers: int = 1
    burst_ms: float = 8.0
    queue_ms: float = 30.0
    queue_packets: int | None = None
    worker_link_bytes_per_s: float | None = None
    worker_hosts: bool = False
    tensors: int = 1
    tensor_acknowledgements: bool = False
    congestion_control: str = "cubic"
    slow_start_after_idle: bool = True
    segmentation_offload: bool = True
    batch_per_worker: int | None = None
    seed: int = 1

    def shard_bytes(self) -> int:
        """Bytes of the parameters that one server holds."""
        return self.parameter_bytes // self.parameter_servers

    def message_bytes(self) -> list[int]:
        """Lengths of the messages of one transfer between a worker and one server, headers excluded."""
        each, rest = divmod(self.shard_bytes(), self.tensors)
        return [each + (i < rest) for i in range(self.tensors)]

    def to_json(self) -> str:
        """Everything, on one line, for the processes of a run."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_mapping(cls, fields: dict[str, Any]) -> "Job":
        """Build from a JSON object. An unknown or a missing field is a TypeError that names it."""
        return cls(**{**fields, "workers": tuple(fields["workers"])})


def read_jobs(path: pathlib.Path) -> list[Job]:
    """Jobs of a JSON file: a list of objects with the fields of `Job`."""
    return [Job.from_mapping(fields) for fields in json.loads(path.read_text())]
