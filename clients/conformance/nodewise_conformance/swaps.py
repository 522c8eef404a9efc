"""Swaps under load: every client asks while an estimator in Go is killed and another version of it takes its place.

Callers leave the choice of estimator to the server, so that others answer while it is away: no caller may see an error.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from nodewise_conformance.between import Upstream
from nodewise_conformance.contract import methods
from nodewise_conformance.languages import Column
from nodewise_conformance.restarts import Gate, Load, all_go_on, read_on
from nodewise_conformance.servers import PATIENCE_S, RealServer
from nodewise_protos.v1 import prediction_service_pb2 as predictions

__all__ = ["swap_under_load"]

NAME: Final = "amdahl-go"
GO_CLIENT: Final = Path(__file__).resolve().parents[2] / "go"
COUNTS: Final = (1, 2, 4, 8)


async def swap_under_load(
    columns: Sequence[Column], swaps: int, told: Callable[[str], None] = lambda _: None
) -> list[Load]:
    """Swap the estimator so many times under the load of all columns; returns what each of them did."""
    loads = [Load(column) for column in columns if column.over == "grpc"]
    over = asyncio.Event()
    with tempfile.TemporaryDirectory(prefix="nodewise-conformance-") as folder:
        estimator = _Estimator(Path(folder))
        settings = {f"NODEWISE_ESTIMATORS__{NAME}": estimator.address, "NODEWISE_SAFE_MODE": "false"}
        with estimator, RealServer(settings) as server:
            upstream = Upstream(server)
            async with asyncio.TaskGroup() as group:
                for load in loads:
                    group.create_task(read_on(load, server.target, Path(folder), over, Gate(), _question))
                try:
                    for number in range(1, swaps + 1):
                        estimator.stop()
                        await all_go_on(loads, writes=False)
                        estimator.start(f"{number}.0.0")
                        await _until_listed(upstream, f"{number}.0.0")
                        await all_go_on(loads, writes=False)
                        told(f"swap {number} of {swaps}: {sum(load.reads for load in loads)} reads")
                finally:
                    over.set()
            await upstream.close()
    return loads


class _Estimator:
    """The example in Go, as a process."""

    def __init__(self, folder: Path) -> None:
        self.address: Final = f"unix://{folder}/estimator.sock"
        self._program: Final = folder / "estimator"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Estimator:
        command = ["go", "build", "-o", str(self._program), "./examples/estimator"]
        subprocess.run(command, cwd=GO_CLIENT, check=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def start(self, version: str) -> None:
        """Start a version that claims to be right, so that the server chooses it."""
        arguments = ["-listen", self.address, "-expected-error", "1e-6", "-version", version]
        self._process = subprocess.Popen([str(self._program), *arguments])


async def _until_listed(upstream: Upstream, version: str) -> None:
    call: Any = upstream.channel.unary_unary(methods()["nodewise.v1.PredictionService/ListEstimators"].path)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            data = await call(b"", timeout=PATIENCE_S, wait_for_ready=True)
            estimators = predictions.ListEstimatorsResponse.FromString(data).estimators
            if any((each.plugin.name, each.plugin.version) == (NAME, version) for each in estimators):
                return
            await asyncio.sleep(0.05)


def _question(number: int) -> dict[str, Any]:
    """A question about a job by Amdahl's law that was not asked about before."""
    rows = {"nodes": COUNTS, "workers": COUNTS, "syncModes": ["SYNC_MODE_ALLREDUCE"], "batchPerWorkerSamples": [32]}
    rates = [1.0 / (32 * count * (0.002 + (1.0 + number / 1e3) / count)) for count in COUNTS]
    content = {"observations": {"configurations": rows, "stepsPerSecond": rates}}
    request = {"profile": {"content": content}, "configurations": rows}
    return {"face": "rows", "method": "nodewise.v1.PredictionService/Predict", "requests": [request]}
