"""Networks of layers over a real socket: asked about from facts alone, and left to others where runs are known."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    Client,
    Configurations,
    ModelOptions,
    Network,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    Workload,
    configurations,
    layers_from_csv,
    phase_timings,
    profile_source,
)

pytestmark = pytest.mark.wheel

LAYERS = Path(__file__).parents[2] / "examples" / "layers"
FACTS = ProfileContent(
    workload=Workload(layers=layers_from_csv(LAYERS / "mlp.csv"), precision="fp32", samples_per_epoch=60_000),
    network=Network(link_bytes_per_second=1.25e9, round_trip_seconds=1e-4),
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def rows(*workers: int, sync: str = "async", tensor_parallel: int = 1) -> Configurations:
    return configurations(
        nodes=workers, workers=workers, devices="Xeon-E5-2450L", sync_modes=sync, batch_per_worker_samples=64,
        parameter_servers=2, tensor_parallel_degrees=tensor_parallel,
    )  # fmt: skip


def test_a_network_that_never_ran_is_predicted_from_its_layers(client: Client) -> None:
    found = client.predict(PredictRequest(profile=profile_source(FACTS), configurations=rows(4, 8, 128)))
    assert found.basis.estimator == "partitioning"
    assert found.basis.evidence == ("facts only: 6 layers, device and link",)
    assert {warning.reason for warning in found.warnings} == {"FACTS_ALONE"}
    first, second, last = found
    assert first.samples_per_second is not None
    assert second.samples_per_second == pytest.approx(2 * first.samples_per_second)
    parameters = sum(layer.parameter_bytes for layer in layers_from_csv(LAYERS / "mlp.csv"))
    # Two servers at the rate of their links.
    assert last.samples_per_second == pytest.approx(64 * 2 * 1.25e9 / parameters)
    assert first.lower_samples_per_second is not None
    assert first.lower_samples_per_second < first.samples_per_second / 2


def test_replicas_of_several_machines_count_once(client: Client) -> None:
    (found,) = client.predict(PredictRequest(profile=profile_source(FACTS), configurations=rows(8, tensor_parallel=4)))
    assert found.step_seconds is not None
    # Two replicas of four machines: 64 samples each in a cycle.
    assert found.samples_per_second == pytest.approx(2 * 64 / found.step_seconds)


def test_timings_of_the_job_answer_before_its_facts(client: Client) -> None:
    timed = ProfileContent(
        workload=FACTS.workload,
        network=FACTS.network,
        phase_timings=phase_timings(
            compute_seconds=0.3,
            download_seconds=0.04,
            upload_seconds=0.04,
            update_seconds=0.002,
            configurations=rows(1),
        ),
    )
    assert (
        client.predict(PredictRequest(profile=profile_source(timed), configurations=rows(2, 4))).basis.estimator
        == "queueing"
    )


def test_what_is_missing_is_named(client: Client) -> None:
    unlinked = ProfileContent(workload=FACTS.workload)
    with pytest.raises(RefusedError, match="link between nodes must be stated"):
        client.predict(
            PredictRequest(
                profile=profile_source(unlinked),
                configurations=rows(4),
                options=PredictOptions(model=ModelOptions(estimator="partitioning")),
            )
        )
    abacus = configurations(nodes=[4], workers=[4], devices="abacus", batch_per_worker_samples=8)
    with pytest.raises(RefusedError, match="the catalogue has no device 'abacus'"):
        client.predict(PredictRequest(profile=profile_source(FACTS), configurations=abacus))


def test_machines_are_divided_among_parts_replicas_and_servers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--machines", "32", "--device", "Xeon-E5-2450L", "--link-bytes-per-s", "1.25e9"]
    monkeypatch.setattr(sys, "argv", ["provision.py", str(LAYERS / "mlp.csv"), *asked])
    runpy.run_path(str(LAYERS.parent / "provision.py"), run_name="__main__")
    said, _, *ranked = capsys.readouterr().out.splitlines()
    assert said.startswith("664 ways to divide 32 machines")
    parts, stages, replicas, servers = map(int, ranked[0].split()[:4])
    assert parts * stages * replicas + servers <= 32
    # One machine's memory bus is the limit of one whole network; its parts fit the caches of several.
    assert parts * stages > 1
    rates = [float(line.split()[4]) for line in ranked]
    assert rates == sorted(rates, reverse=True)
