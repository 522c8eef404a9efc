"""Closed forms of layered networks: what they come to where it can be written down."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise.plugin import Layer
from nodewise_laws import expected_maximum_gamma
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.exchange import Servers, asynchronous, knee_replicas, synchronous
from nodewise_partitioning.layered.memory import device_bytes, machine_bytes, optimizer_states
from nodewise_partitioning.layered.overlap import bucket_ends, exposed_s
from nodewise_partitioning.layered.replica import (
    ACTIVATION_PASSES,
    WEIGHT_PASSES,
    Layout,
    Machine,
    memory_traffic_bytes,
    rate_of,
    replica_of,
)
from nodewise_partitioning.layered.traffic import exchange_of


def dense(
    flops: float, parameters: int, activations: float, *, kind: str = "dense", halo: float | None = None
) -> Layer:
    return Layer(
        name="", kind=kind, forward_flops_per_sample=flops, parameter_bytes=parameters,
        activation_bytes_per_sample=activations, halo_bytes_per_sample=halo,
    )  # fmt: skip


MLP = LayerCosts.of([dense(2e6, 4_000_000, 4000.0), dense(2e6, 4_000_000, 4000.0), dense(2e4, 40_000, 40.0)])
ONE = Machine(threads=1, thread_flops_per_s=1e9, memory_bytes_per_s=1e30)
ROW = np.ones(1)


def test_passes_of_layers() -> None:
    assert MLP.flops.tolist() == [4e6, 6e6, 6e4]
    assert MLP.input_bytes.tolist() == [0.0, 4000.0, 4000.0]
    pooled = LayerCosts.of([dense(1.0, 8, 1.0), dense(1.0, 0, 1.0)])
    assert pooled.update_flops.tolist() == [1.0, 0.0]
    told = LayerCosts.of([dense(2e6, 8, 1.0), dense(2e6, 8, 1.0)], flops_per_sample=16e6)
    assert told.flops.sum() == pytest.approx(16e6)
    contradicted = LayerCosts.of([dense(2e6, 8, 1.0)], flops_per_sample=1.0)
    assert contradicted.flops.sum() == pytest.approx(4e6)


def test_one_machine_has_no_traffic() -> None:
    replica = replica_of(MLP, Layout((1, 1, 1), (0, 0, 0), 1, 1), ONE, message_s=1.0, bytes_per_s=1.0)
    assert replica.communication_s == 0.0
    assert replica.latency_s == pytest.approx(MLP.flops.sum() / 1e9)
    assert replica.network_bytes.tolist() == [0.0]
    assert replica.parameter_bytes.tolist() == [8_040_000.0]


def test_dense_layers_send_what_others_read_once() -> None:
    # Two machines: each receives the half of the input that the other holds, and sends its own.
    found = exchange_of(MLP, 1, 2, 2, together=True)
    assert found.received_bytes.tolist() == [2000.0, 2000.0]
    assert found.seconds(1e-3, 1e6) == pytest.approx(1e-3 + 2000.0 / 1e6)
    # From one machine to four: the holder sends all of it to three others, which takes it longer than any receives.
    found = exchange_of(MLP, 1, 1, 4, together=True)
    assert found.sent_bytes.tolist() == [12_000.0]
    assert found.seconds(1e-3, 1e6) == pytest.approx(3 * (1e-3 + 4000.0 / 1e6))
    # Between stages nobody has anything yet.
    found = exchange_of(MLP, 1, 2, 2, together=False)
    assert found.received_bytes.tolist() == [4000.0, 4000.0]


def test_strips_exchange_halos_with_their_neighbours() -> None:
    conv = LayerCosts.of([dense(1e6, 100, 3000.0, halo=30.0), dense(1e6, 100, 3000.0, halo=30.0)])
    found = exchange_of(conv, 1, 3, 3, together=True)
    assert found.received_bytes == pytest.approx([30.0, 60.0, 30.0])
    assert found.received_messages.tolist() == [1.0, 2.0, 1.0]
    replica = replica_of(conv, Layout((3, 3), (0, 0), 3, 1), ONE, message_s=0.0, bytes_per_s=1e6)
    # Strips share the kernel's weights: each machine holds all of them.
    assert replica.parameter_bytes.tolist() == [200.0, 200.0, 200.0]


def test_parts_of_recurrent_layers_read_each_other() -> None:
    network = LayerCosts.of([dense(1e6, 100, 3000.0, kind="recurrent")])
    found = exchange_of(network, 0, 1, 3, together=True)
    assert (found.among_bytes, found.among_messages) == (2000.0, 2.0)


def test_latency_adds_up_layer_by_layer() -> None:
    layout = Layout((2, 2, 1), (0, 0, 0), 2, 1)
    replica = replica_of(MLP, layout, ONE, message_s=1e-4, bytes_per_s=1e7)
    computing = (4e6 / 2 + 6e6 / 2 + 6e4) / 1e9
    traffic = 2 * (2 * (1e-4 + 2000.0 / 1e7))
    assert replica.latency_s == pytest.approx(computing + traffic)
    assert replica.communication_s == pytest.approx(traffic)


def test_threads_meet_at_the_memory_bus() -> None:
    """H threads reach H / (T_1 I(H)) with I(H) = max(1, H V / (BW T_1))."""
    for threads, bandwidth in ((1, 1e12), (8, 1e12), (8, 5e9), (64, 5e9)):
        machine = Machine(threads=threads, thread_flops_per_s=1e9, memory_bytes_per_s=bandwidth)
        replica = replica_of(MLP, Layout((1, 1, 1), (0, 0, 0), 1, 1), machine, message_s=0.0, bytes_per_s=1e9)
        moved = float(memory_traffic_bytes(replica, machine).max())
        slowed = max(1.0, threads * moved / (bandwidth * replica.latency_s))
        rate = rate_of(replica, machine, bytes_per_s=1e9)
        assert rate.samples_per_s == pytest.approx(threads / (replica.latency_s * slowed))
        assert rate.lower_samples_per_s <= rate.samples_per_s
        assert rate.bottleneck == ("memory_bus" if slowed > 1.0 else "threads")


def test_a_cache_that_holds_the_weights_spares_the_bus() -> None:
    replica = replica_of(MLP, Layout((1, 1, 1), (0, 0, 0), 1, 1), ONE, message_s=0.0, bytes_per_s=1e9)
    large = Machine(threads=1, thread_flops_per_s=1e9, memory_bytes_per_s=1e10, cache_bytes=1e7)
    activations = ACTIVATION_PASSES * 8040.0
    assert memory_traffic_bytes(replica, large).tolist() == [activations]
    assert memory_traffic_bytes(replica, ONE).tolist() == [activations + WEIGHT_PASSES * 8_040_000.0]


def test_the_slowest_resource_bounds_samples_in_flight() -> None:
    """min(H / (T_comp + T_comm), cores / T_comp, link / bytes) of a worker that waits for others."""
    layout = Layout((2, 2, 2), (0, 0, 0), 2, 1)
    machine = Machine(threads=4, thread_flops_per_s=1e9, memory_bytes_per_s=1e30)
    slow = replica_of(MLP, layout, machine, message_s=1e-2, bytes_per_s=1e9)
    assert rate_of(slow, machine, bytes_per_s=1e9).samples_per_s == pytest.approx(4 / slow.latency_s)
    assert rate_of(slow, machine, bytes_per_s=1e9).bottleneck == "latency"
    narrow = replica_of(MLP, layout, machine, message_s=0.0, bytes_per_s=1e6)
    assert rate_of(narrow, machine, bytes_per_s=1e6, flying=1000).samples_per_s == pytest.approx(
        1e6 / float(narrow.network_bytes.max())
    )
    assert rate_of(narrow, machine, bytes_per_s=1e6, flying=1000).bottleneck == "network"


EXCHANGE = Servers(largest_bytes=8e6, total_bytes=8e6, message_s=1e-3, machine_bytes_per_s=1e9, server_bytes_per_s=1e9)


def test_synchronous_steps() -> None:
    """T = b t + max(2 (alpha + x / beta), 2 R X / (S beta)) + E[max of R] - mean."""
    replicas, servers = np.array([1.0, 4.0, 16.0]), np.array([1.0, 4.0, 2.0])
    batch_s = np.full(3, 0.5)
    found = synchronous(batch_s, replicas, servers, EXCHANGE, compute_cv=0.1)
    slowest = expected_maximum_gamma(0.5, 0.1, replicas)
    expected = 0.5 + np.maximum(2 * (1e-3 + 8e-3), 2 * replicas * 8e-3 / servers) + slowest - 0.5
    assert found.step_s == pytest.approx(expected)
    assert found.barrier_s[0] == pytest.approx(0.0, abs=1e-9)
    assert synchronous(batch_s, replicas, servers, EXCHANGE, compute_cv=0.0).barrier_s == pytest.approx(np.zeros(3))


def test_asynchronous_cycles_up_to_the_servers_capacity() -> None:
    """Rates R / T up to S beta / (c X); the knee where the exchange is hidden is S beta b t / (c X)."""
    batch_s, servers = np.full(2, 0.2), np.array([1.0, 2.0])
    for half, ways in ((False, 1.0), (True, 2.0)):
        exchange = Servers(
            largest_bytes=8e6, total_bytes=8e6, message_s=0.0, machine_bytes_per_s=1e9, server_bytes_per_s=1e9,
            half_duplex=half,
        )  # fmt: skip
        few = asynchronous(batch_s, np.full(2, 3.0), servers, exchange)
        assert few.cycle_s == pytest.approx([0.216, 0.216])
        assert few.queueing_s == pytest.approx([0.0, 0.0], abs=1e-12)
        many = asynchronous(batch_s, np.full(2, 1000.0), servers, exchange)
        assert 1000.0 / many.cycle_s == pytest.approx(servers * 1e9 / (ways * 8e6))
        assert many.utilisation == pytest.approx([1.0, 1.0])
        assert many.compute_s + many.exchange_s + many.queueing_s == pytest.approx(many.cycle_s)
        assert np.all(many.longest_cycle_s >= many.cycle_s)
        knee = knee_replicas(batch_s, servers, exchange)
        assert knee == pytest.approx(servers * 1e9 * 0.2 / (ways * 8e6))


def test_memory() -> None:
    held = machine_bytes(np.array([100.0, 50.0]), np.array([10.0, 40.0]), 4)
    assert held.tolist() == [2 * 100 + 4 * 2 * 10, 2 * 50 + 4 * 2 * 40]
    assert [optimizer_states(name) for name in ("SGD", "momentum", "adam", None)] == [0.0, 1.0, 2.0, 1.0]
    assert device_bytes(100.0, 10.0, np.array([8.0]), 2.0).tolist() == [480.0]


def test_buckets_and_what_the_backward_pass_hides() -> None:
    parameters = np.array([10.0, 20.0, 30.0, 5.0])
    assert bucket_ends(parameters, 30.0) == [(2, 35.0), (0, 30.0)]
    assert bucket_ends(np.zeros(2), 30.0) == []
    backward = np.array([[1.0], [1.0], [1.0], [1.0]])
    # Ready after 2 s and 4 s; 1 s each: the first is hidden, the second follows the pass.
    exposed, whole = exposed_s(backward, [(2, 35.0), (0, 30.0)], lambda _: ROW)
    assert (exposed.tolist(), whole.tolist()) == ([1.0], [2.0])
    # 3 s each: the second waits for the first until 5 s, and ends at 8 s.
    exposed, _ = exposed_s(backward, [(2, 35.0), (0, 30.0)], lambda _: 3.0 * ROW)
    assert exposed.tolist() == [4.0]
    exposed, whole = exposed_s(backward, [], lambda _: ROW)
    assert (exposed.tolist(), whole.tolist()) == ([0.0], [0.0])
