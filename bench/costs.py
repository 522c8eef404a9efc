"""What calls cost a server, by what their requests hold: checked against the cost model, or fitted anew.

``python bench/costs.py`` asks a real server valid requests of growing size of every method, measures the CPU of its
event loop, its other threads and its processes for long calls, and prints it beside what ``rpc/costs.toml`` expects;
``--write`` fits that file by non-negative least squares of relative errors, and prints what is left of them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import costs_requests as asked
import grpc
import numpy as np
from google.protobuf import descriptor_pool
from google.protobuf.message import Message
from long_calls import cpu_ns
from processes import Server
from results import Result
from rpc import store_profiles
from scipy.optimize import nnls
from traces import written

from nodewise.rpc import costs
from nodewise.rpc.costs import PLACES, Cost, features_of
from nodewise.rpc.services import SERVICES
from nodewise_client import Client

FILE: Final = Path(costs.__file__).with_name("costs.toml")
PATIENCE_S: Final = 300.0
ENOUGH_S: Final = 0.04
MOST_CALLS: Final = 40
"""Calls of a size: until they took so much CPU together, but not more."""
LEAST_S: Final = 3e-5
"""CPU in one place below which it is not told from what a server does anyway."""
WITHIN: Final = 3.0
"""Factor within which a size is expected."""
HEADER: Final = """\
# Seconds of CPU of one call, by method, place and what its request holds: written by `python bench/costs.py --write`,
# which also says how well it fits. Of one machine; only ratios are used. Methods without numbers are not measured:
# an operator's, some of which last as long as a trial of plugins does, and which need no turn.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One size of a method."""

    method: str
    features: dict[str, float]
    cost: Cost


class Meter:
    """A server, and what calls take of it.

    Parameters
    ----------
    server : Server
        Of one worker.
    """

    def __init__(self, server: Server, channel: grpc.Channel) -> None:
        self._server, self._channel = server, channel
        self._services = [descriptor_pool.Default().FindServiceByName(name) for name in SERVICES]
        self.paths = {method.name: method for service in self._services for method in service.methods}
        before = cpu_ns(server.pid)
        for _ in range(3):
            self.ask("BatchPredict", [asked.batch(100, 16, fresh=False)(random.Random(0))])
        used = {place: at - before.get(place, 0) for place, at in cpu_ns(server.pid).items()}
        self._loop = max(used, key=lambda place: used[place])
        self._worker = {int(each.name) for each in Path(f"/proc/{self._loop}/task").iterdir()}

    def ask(self, method: str, messages: Sequence[Message]) -> None:
        described = self.paths[method]
        path = f"/{described.containing_service.full_name}/{method}"
        sent = [each.SerializeToString() for each in messages]
        if described.client_streaming:
            for _ in self._channel.stream_stream(path)(iter(sent), timeout=PATIENCE_S):
                pass
        elif described.server_streaming:
            replies = self._channel.unary_stream(path)(sent[0], timeout=PATIENCE_S)
            for _ in replies:
                if method == "WatchProfiles":  # which ends by its caller alone
                    replies.cancel()
                    break
        else:
            self._channel.unary_unary(path)(sent[0], timeout=PATIENCE_S)

    def measured(self, method: str, make: asked.Make, seed: str) -> Measured:
        """What a request of a size takes, the first one aside."""
        draw = random.Random(seed)
        features = defaultdict[str, float](float)
        spent, calls = np.zeros(len(PLACES)), 0
        self.ask(method, _listed(make(draw)))
        while spent.sum() < ENOUGH_S and calls < MOST_CALLS:
            messages = _listed(make(draw))
            before = cpu_ns(self._server.pid)
            self.ask(method, messages)
            spent += self._by_place(before)
            calls += 1
            for message in messages:
                for name, value in features_of(method, message).items():
                    features[name] += value
        told = len(messages)  # of streams: each message has its turn
        return Measured(
            method,
            {name: value / calls / told for name, value in features.items()},
            Cost(*(spent / calls / told).tolist()),
        )

    def _by_place(self, before: dict[int, int]) -> np.ndarray:
        spent = np.zeros(len(PLACES))
        self._worker |= {int(each.name) for each in Path(f"/proc/{self._loop}/task").iterdir()}
        for thread, at in cpu_ns(self._server.pid).items():
            place = 0 if thread == self._loop else 1 if thread in self._worker else 2
            spent[place] += 1e-9 * (at - before.get(thread, 0))
        return spent


def _listed(made: Message | Sequence[Message]) -> Sequence[Message]:
    return [made] if isinstance(made, Message) else made


def measured() -> Iterator[Measured]:
    """Every size of every method."""
    with tempfile.TemporaryDirectory() as folder:
        trace = written(Path(folder, "trace.json.gz"), steps=5, operators=2_000)
        config = Path(folder, "costs.toml")
        config.write_text(
            f'admin = true\nlisten = "127.0.0.1:0"\nstore = "sqlite:{folder}/costs.db"\n', encoding="utf-8"
        )
        command = ("-m", "nodewise", "serve", "--config", str(config))
        with Server(*command, pinned=False) as server, grpc.insecure_channel(server.target) as channel:
            store_profiles(server.target)
            with (
                Client(server.target, timeout_s=120) as client,
                client.ingest("traced") as to,
                trace.open("rb") as file,
            ):
                to.trace(file, trace_id="t", trace_format="auto", rank=0, world_size=1)
            meter = Meter(server, channel)
            meter.ask("AppendProfile", [asked.many()])
            for method, makes in asked.sizes().items():
                for number, make in enumerate(makes):
                    yield meter.measured(method, make, f"{method} {number}")


def fitted(found: Sequence[Measured]) -> dict[str, dict[str, dict[str, float]]]:
    """Coefficients, such that the sum of squared relative errors is least and none is negative."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for method in dict.fromkeys(each.method for each in found):
        sizes = [each for each in found if each.method == method]
        table[method] = {}
        for index, place in enumerate(PLACES):
            wanted = np.array([each.cost[index] for each in sizes])
            if wanted.max() < LEAST_S:
                continue
            names = sorted({name for each in sizes for name in each.features})
            matrix = np.array([[each.features.get(name, 0.0) for name in names] for each in sizes])
            weights = 1.0 / np.maximum(wanted, LEAST_S)
            scale = np.maximum(matrix.max(axis=0), 1e-12)
            found_s = nnls(matrix / scale * weights[:, None], wanted * weights)[0] / scale
            table[method][place] = {name: float(each) for name, each in zip(names, found_s) if each > 0}
    return table


def written_toml(table: dict[str, dict[str, dict[str, float]]]) -> str:
    lines = [HEADER]
    for method, places in table.items():
        if not places:
            lines.append(f"[{method}]\n")
        for place, coefficients in places.items():
            lines.append(f"[{method}.{place}]")
            lines += [f"{name} = {each_s:.3g}" for name, each_s in coefficients.items()]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def apart(found: Measured, table: costs.CostModel) -> float:
    """Factor between what a call costs and what is expected, all places together."""
    expected_s = max(LEAST_S, sum(table.expected(found.method, found.features)[: len(PLACES)]))
    return expected_s / max(LEAST_S, sum(found.cost[: len(PLACES)]))


def run() -> Iterator[Result]:
    """How far what is measured lies from what is expected, whatever the machine's speed; the worst of each method."""
    model, found = costs.shipped_costs(), list(measured())
    speed = float(np.median([apart(each, model) for each in found]))
    worst: dict[str, float] = {}
    for each in found:
        ratio = apart(each, model) / speed
        worst[each.method] = max(worst.get(each.method, 1.0), ratio, 1.0 / ratio)
    for method, factor in worst.items():
        yield Result(f"cost_of_{method}_expected_within_a_factor", factor, "times", WITHIN)


def main() -> int:
    """Measure; print; write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="fit the model and write it")
    given = parser.parse_args()
    found = []
    for each in measured():  # it takes minutes
        found.append(each)
        print(json.dumps({"method": each.method, **each.features, "cpu_s": each.cost}), flush=True)
    if given.write:
        table = fitted(found) | {name: {} for name in asked.UNMEASURED}
        FILE.write_text(written_toml(table), encoding="utf-8")
        costs.shipped_costs.cache_clear()
    model = costs.shipped_costs()
    for each in found:
        line = {
            "method": each.method,
            "features": {name: round(value, 3) for name, value in each.features.items() if value},
            "measured_ms": [round(1e3 * value, 3) for value in each.cost[: len(PLACES)]],
            "expected_ms": [
                round(1e3 * value, 3) for value in model.expected(each.method, each.features)[: len(PLACES)]
            ],
            "factor": round(apart(each, model), 2),
        }
        print(json.dumps(line), flush=True)
    factors = np.array([apart(each, model) for each in found])
    within = np.abs(np.log(factors)) < np.log(WITHIN)
    print(
        json.dumps({"sizes": len(found), "expected_within_a_factor": WITHIN, "share": round(float(within.mean()), 3)})
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
