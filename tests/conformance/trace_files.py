"""Files of every format that a shipped or an example reader reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import foreign_traces as foreign

from nodewise.conformance import Evidence, File
from nodewise.plugin import TraceSource

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
JAX = FIXTURES / "jax_cpu_2_devices"
STEP_LOG = b"# steplog 1 rank=0 world=2\n" + b"".join(
    b"%d,%s,%d,%d\n" % (step, name, step * 9000 + begin, duration)
    for step in range(4)
    for name, begin, duration in ((b"forward", 0, 3000), (b"/home/ann/loop.py/gradients", 3000, 5000))
)


def kineto() -> bytes:
    """The profiler's own, with a path in it; of a recorded job of ours the first thousand events."""
    document = json.loads(gzip.decompress((FIXTURES / "ddp_2_ranks_1_bucket" / "rank0.json.gz").read_bytes()))
    spoken = {"ph": "X", "cat": "user_annotation", "name": "/home/ann/train.py(12): step", "pid": 1, "tid": 1}
    events = [*document["traceEvents"][:1000], spoken | {"ts": 1, "dur": 2, "args": {}}]
    return json.dumps(document | {"traceEvents": events}).encode()


def dpro() -> bytes:
    """Two ranks in one file."""
    event = {"ph": "X", "cat": "operator", "args": {}}
    return json.dumps(
        [
            event | {"name": f"{name}.conv{place}", "ts": 10 * place, "dur": 5, "pid": f"host0.rank{rank}", "tid": 0}
            for rank in range(2)
            for place, name in enumerate(("FW", "BW", "FW", "BW"))
        ]
    ).encode()


def chakra() -> bytes:
    """A graph of three nodes, in JSON."""
    nodes = [
        {"Id": place, "Name": f"op{place}", "NodeType": 4, "runtime": 5, "is_cpu_op": True, "data_deps": [place - 1]}
        for place in range(1, 4)
    ]
    return json.dumps({"workload_graph": nodes}).encode()


def chrome() -> bytes:
    """Anyone's: which categories are what is said beside it."""
    events = [
        {"ph": "X", "cat": "work", "name": f"work {place}", "pid": 0, "tid": 0, "ts": 10 * place, "dur": 5}
        for place in range(6)
    ]
    return json.dumps({"traceEvents": events}).encode()


def files() -> Evidence:
    return Evidence(
        files=(
            File(name="kineto.json", content=kineto(), format="kineto", secrets=("ann",)),
            File(name="dpro.json", content=dpro(), format="dpro", secrets=("host0",)),
            File(name="chakra.json", content=chakra(), format="chakra", source=TraceSource(rank=0, world_size=1)),
            File(
                name="chrome.json", content=chrome(), format="chrome", source=TraceSource(mapping={"compute": "work"})
            ),
            File(name="report.sqlite", content=foreign.nsight(), format="nsight"),
            File(name="rank0.pftrace", content=foreign.perfetto(), format="perfetto"),
            File(name="trace.csv", content=foreign.rocprof_tables(), format="rocprof-csv"),
            File(name="results.json", content=foreign.as_json(foreign.rocprof_json()), format="rocprof-json"),
            File(
                name="nccl_trace_rank_0",
                content=foreign.pickled(foreign.flight_recorder()),
                format="flight-recorder",
                secrets=("ann",),
            ),
            File(name="et.json", content=foreign.as_json(foreign.execution_trace()), format="chakra"),
            File(name="ring.et", content=foreign.chakra_ring(0, 2), format="chakra"),
            File(name="host.xplane.pb", content=(JAX / "host.xplane.pb").read_bytes(), format="xplane"),
            File(
                name="host.trace.json",
                content=gzip.decompress((JAX / "host.trace.json.gz").read_bytes()),
                format="xla-json",
            ),
            File(name="loop.txt", content=STEP_LOG, format="steplog", secrets=("ann",)),
        )
    )
