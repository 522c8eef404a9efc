"""The card of a run over a real socket and from the command line: its figures, their bounds, and what is unsure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import (
    Client,
    CompletionCheckpoints,
    CompletionRow,
    CompletionSpread,
    EstimateRunRequest,
    EstimateRunResponse,
    InvalidArgumentError,
    MemoryFit,
    ProfileContent,
    RefusedError,
    RowStatus,
    RunFailures,
    RunPower,
    Transformer,
    Work,
    Workload,
    configurations,
    observations,
    profile_source,
)

HOUR_S = 3600.0
QUICK = settings(derandomize=True, deadline=None, max_examples=8)
SAMPLES = 1e7
NODES = 4
TABLE = "job,device,nodes,workers,batch_per_worker,steps_per_s\n" + "".join(
    f"resnet,V100,{nodes},{nodes},32,{rate}\n" for nodes, rate in ((1, 1.0), (2, 0.95), (4, 0.9))
)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=120) as connected:
        yield connected


def run(device: str = "V100", sync: str = "allreduce", **others: Any) -> EstimateRunRequest:
    """A job that was measured on 1, 2 and 4 nodes, on 4 nodes."""

    def rows(*nodes: int) -> Any:
        return configurations(
            nodes=list(nodes),
            workers=list(nodes),
            devices=device,
            sync_modes=sync,
            batch_per_worker_samples=32,
            **({"parameter_servers": 1} if sync == "async" else {}),
        )

    content = ProfileContent(observations=observations(configurations=rows(1, 2, 4), steps_per_second=[1.0, 0.95, 0.9]))
    usual: dict[str, Any] = {"work": Work(samples=SAMPLES), "configurations": rows(NODES), "runs_count": 2000}
    return EstimateRunRequest(profile=profile_source(content), **usual | others)


def failing(device_hours: float, *, save_s: float = 60.0, every_s: float = 3600.0, restart_s: float = 600.0) -> Any:
    checkpoints = CompletionCheckpoints(seconds=save_s, interval_seconds=every_s)
    return RunFailures(device_hours_between_failures=device_hours, restart_seconds=restart_s, checkpoints=checkpoints)


def completion(card: EstimateRunResponse) -> CompletionRow:
    assert card.completion is not None
    assert card.completion.status is RowStatus.ANSWERED
    return card.completion


def time_of(card: EstimateRunResponse) -> CompletionSpread:
    spread = completion(card).time_seconds
    assert spread is not None
    return spread


def mean_s(card: EstimateRunResponse) -> float:
    mean = time_of(card).mean
    assert mean is not None
    return mean


def error_s(card: EstimateRunResponse) -> float:
    return time_of(card).standard_error or 0.0


@QUICK
@given(st.floats(5.0, 1000.0), st.floats(1.5, 100.0))
def test_more_failures_never_make_a_run_shorter(client: Client, device_hours: float, times: float) -> None:
    often = client.estimate_run(run(failures=failing(device_hours)))
    seldom = client.estimate_run(run(failures=failing(device_hours * times)))
    # Means of simulated runs: each is off by its standard error.
    assert mean_s(often) >= mean_s(seldom) - 4.0 * math.hypot(error_s(often), error_s(seldom))
    assert (completion(often).revocations_mean or 0.0) > (completion(seldom).revocations_mean or 0.0)


@QUICK
@given(st.floats(20.0, 60.0), st.floats(0.0, 40.0))
def test_a_later_deadline_never_lowers_the_chance(client: Client, hours: float, more: float) -> None:
    first, later = (
        completion(client.estimate_run(run(failures=failing(100.0), deadline_seconds=deadline_h * HOUR_S)))
        for deadline_h in (hours, hours + more)
    )
    assert first.deadline_probability is not None
    assert later.deadline_probability is not None
    assert first.deadline_probability <= later.deadline_probability


@QUICK
@given(st.floats(0.01, 500.0), st.floats(50.0, 1e6), st.sampled_from(["allreduce", "async"]))
def test_cost_is_the_rate_times_the_hours(client: Client, price: float, device_hours: float, sync: str) -> None:
    card = client.estimate_run(run(sync=sync, price_per_node_hour=price, failures=failing(device_hours)))
    time, cost = time_of(card), completion(card).cost
    assert cost is not None
    # The server of parameters is a node too.
    nodes = completion(card).nodes
    for quantity in ("mean", "p50", "p90", "p99"):
        assert getattr(cost, quantity) == pytest.approx(price * nodes * getattr(time, quantity) / HOUR_S)


def simulated_mean_s(
    card: EstimateRunResponse, device_hours: float, save_s: float, every_s: float, restart_s: float, runs: int
) -> tuple[float, float]:
    """Mean time and its standard error by a simulation of its own: each failure ends an attempt at a segment."""
    random, row = np.random.default_rng(7), completion(card)
    between_s = device_hours * HOUR_S / row.workers
    ends_s = []
    for _ in range(runs):
        pace = math.exp((row.speed_log_spread or 0.0) * random.standard_normal())
        left_s, segment_s, now_s = row.ideal_seconds / pace, every_s / pace, 0.0
        while left_s > 1e-6:
            attempt_s = min(segment_s, left_s)
            failure_s = random.exponential(between_s)
            if failure_s >= attempt_s + save_s:
                now_s, left_s = now_s + attempt_s + save_s, left_s - attempt_s
                continue
            now_s += failure_s
            while (failure_s := random.exponential(between_s)) < restart_s:
                now_s += failure_s
            now_s += restart_s
        ends_s.append(now_s)
    return float(np.mean(ends_s)), float(np.std(ends_s) / math.sqrt(runs))


@pytest.mark.parametrize(("device_hours", "every_s"), [(100.0, 3600.0), (20.0, 1800.0), (1e6, 7200.0)])
def test_time_with_failures_is_that_of_another_simulation(client: Client, device_hours: float, every_s: float) -> None:
    card = client.estimate_run(run(failures=failing(device_hours, every_s=every_s), runs_count=10_000))
    mean, error = simulated_mean_s(card, device_hours, 60.0, every_s, 600.0, runs=3000)
    assert mean_s(card) == pytest.approx(mean, abs=4.0 * math.hypot(error, error_s(card)))


def test_daly_and_young_are_near_the_chosen_interval(client: Client) -> None:
    failures = RunFailures(device_hours_between_failures=20.0, checkpoints=CompletionCheckpoints(seconds=30.0))
    saves = completion(client.estimate_run(run(failures=failures))).checkpoints
    assert saves is not None
    assert saves.chosen
    assert saves.young_interval_seconds == pytest.approx(math.sqrt(2.0 * 30.0 * 20.0 * HOUR_S / NODES), rel=0.1)
    assert saves.interval_seconds == pytest.approx(saves.young_interval_seconds, rel=0.5)


def test_every_value_that_is_not_stated_is_named_with_its_source(client: Client) -> None:
    card = client.estimate_run(run())
    assumed = {each.field: each for each in card.assumptions}
    assert set(assumed) == {
        "failures.device_hours_between_failures",
        "failures.restart_seconds",
        "failures.checkpoints.seconds",
        "power.training_watts",
        "power.idle_watts",
        "power.host_power_ratio",
        "power.power_usage_effectiveness",
    }
    assert assumed["failures.device_hours_between_failures"].value == 50_000.0
    assert "Llama 3" in assumed["failures.device_hours_between_failures"].why
    assert all(each.why for each in assumed.values())
    stated = RunPower(idle_watts=40.0, training_watts=250.0, host_power_ratio=1.5, power_usage_effectiveness=1.2)
    assert not client.estimate_run(run(failures=failing(1e4), power=stated)).assumptions


def test_power_follows_what_is_known_of_the_device_and_of_the_arithmetic(client: Client) -> None:
    """V100-PCIe drew 225 W with transformers; other networks draw less, the less their arithmetic takes."""
    watts = []
    for facts in (Workload(), *(Workload(flops_per_sample=flops, precision="fp32") for flops in (1e9, 2e11))):
        request = run("V100-PCIe")
        assert request.profile is not None
        assert request.profile.content is not None
        source = profile_source(replace(request.profile.content, workload=facts))
        card = client.estimate_run(replace(request, profile=source))
        (assumed,) = (each for each in card.assumptions if each.field == "power.training_watts")
        assert "225 W" in assumed.why
        watts.append(assumed.value)
    of_any, little, much = watts
    assert little == pytest.approx(0.85 * 225.0, rel=0.01)
    assert little < of_any == pytest.approx(0.86 * 225.0)
    assert of_any < much < 225.0


def test_each_figure_says_what_is_unsure(client: Client) -> None:
    power = RunPower(grid_grams_per_kilowatt_hour=400.0)
    card = client.estimate_run(run(price_per_node_hour=3.0, deadline_seconds=1e5, power=power))
    assert [each.figure for each in card.doubts] == ["memory", "time", "cost", "deadline", "energy", "co2"]
    assert all(each.why for each in card.doubts)
    bare = client.estimate_run(run())
    assert [each.figure for each in bare.doubts] == ["memory", "time", "energy"]
    assert completion(bare).cost is None
    assert completion(bare).deadline_probability is None


def test_energy_follows_from_power_and_time(client: Client) -> None:
    power = RunPower(
        idle_watts=100.0,
        training_watts=100.0,
        host_power_ratio=1.5,
        power_usage_effectiveness=1.2,
        grid_grams_per_kilowatt_hour=400.0,
    )
    card = client.estimate_run(run(power=power))
    energy, row = card.energy, completion(card)
    assert energy is not None
    assert energy.joules is not None
    assert energy.device_watts is not None
    assert energy.device_joules_per_sample is not None
    assert energy.co2_grams is not None
    # A device that draws the same when it waits: its utilisation does not matter.
    assert energy.device_watts.value == pytest.approx(100.0)
    assert energy.joules.value == pytest.approx(100.0 * NODES * 1.5 * 1.2 * mean_s(card))
    assert energy.device_joules_per_sample.value == pytest.approx(100.0 * NODES / row.samples_per_second)
    assert energy.co2_grams.value == pytest.approx(energy.joules.value / 3.6e6 * 400.0)
    for quantity in (energy.joules, energy.device_watts, energy.co2_grams):
        assert quantity.lower < quantity.value < quantity.upper


def test_a_device_without_a_known_limit_has_no_energy_but_the_rest(client: Client) -> None:
    card = client.estimate_run(run(device="home-made"))
    assert card.energy is None
    assert mean_s(card) > 0.0
    assert any(each.figure == "energy" and "training_watts" in each.why for each in card.doubts)
    assert client.estimate_run(run(device="home-made", power=RunPower(training_watts=200.0))).energy is not None


def transformer(layers: int = 24, **others: Any) -> EstimateRunRequest:
    model = Transformer(
        layers_count=layers,
        hidden_size=2048,
        attention_heads_count=16,
        sequence_length_tokens=2048,
        vocabulary_size=51200,
    )
    content = ProfileContent(workload=Workload(transformer=model, precision="bf16"))
    return EstimateRunRequest(profile=profile_source(content), work=Work(samples=1e6), runs_count=1000, **others)


def test_memory_says_whether_the_run_fits(client: Client) -> None:
    fitting = client.estimate_run(
        transformer(configurations=configurations(nodes=1, workers=8, devices="H100", global_batch_samples=64))
    )
    memory = fitting.memory
    assert memory is not None
    assert memory.capacity_bytes == 80e9
    assert memory.upper_bytes is not None
    assert memory.fit is (MemoryFit.FITS if memory.upper_bytes <= 80e9 else MemoryFit.UNSURE)
    assert fitting.predictions is not None
    assert fitting.predictions.memory_bytes == (memory.bytes,)
    too_small = client.estimate_run(
        transformer(96, configurations=configurations(nodes=1, workers=1, devices="L4", global_batch_samples=64))
    )
    assert too_small.memory is not None
    assert too_small.memory.fit is MemoryFit.EXCEEDED
    assert too_small.completion is not None
    assert too_small.completion.status is RowStatus.REFUSED
    assert too_small.energy is None


def test_refusals_name_the_field(client: Client) -> None:
    two = configurations(nodes=[2, 4], workers=[2, 4], devices="V100", batch_per_worker_samples=32)
    with pytest.raises(InvalidArgumentError, match=r"configurations.*one row"):
        client.estimate_run(run(configurations=two))
    with pytest.raises(RefusedError, match="work"):
        client.estimate_run(run(work=None))
    with pytest.raises(InvalidArgumentError, match=r"failures\.device_hours_between_failures"):
        client.estimate_run(run(failures=RunFailures(device_hours_between_failures=-1.0)))
    with pytest.raises(InvalidArgumentError, match=r"failures\.checkpoints"):
        client.estimate_run(run(failures=RunFailures(checkpoints=CompletionCheckpoints(interval_seconds=60.0))))


def test_the_same_question_has_the_same_answer(client: Client) -> None:
    question = run(price_per_node_hour=1.0, deadline_seconds=1e5)
    assert client.estimate_run(question).completion == client.estimate_run(question).completion


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("card") / "runs.csv"
    path.write_text(TABLE)
    return path


def card_command(target: str, table: Path, *options: str) -> Any:
    command = ["card", str(table), "--nodes", "4", "--samples", "1e7", "--server", target, "--runs", "1000", *options]
    return CliRunner().invoke(app, command)


def test_the_card_as_text_names_figures_assumptions_and_doubts(target: str, table: Path) -> None:
    result = card_command(target, table, "--price", "3", "--currency", "EUR", "--deadline-h", "30", "--grid", "400")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())  # lines are folded where the width is known
    assert text.startswith("resnet on 4 nodes with 4 V100: ")
    for part in ("EUR", "by 30.0 h", "kWh", "kg of CO2"):
        assert part in text.partition(" figure ")[0]
    assert "Assumed: failures.restart_seconds 600: " in text
    assert "unsure" in result.output


def test_the_card_as_markdown_is_a_table(target: str, table: Path) -> None:
    result = card_command(target, table, "--price", "3", "--markdown")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("**resnet on 4 nodes")
    cells = [line for line in lines if line.startswith("|")]
    assert cells[1] == "|---|---:|---:|---|"
    assert all(line.count("|") == 5 for line in cells)
    assert any(line.startswith("- Assumed: `power.training_watts`") for line in lines)


def test_the_card_as_json_holds_the_reply(target: str, table: Path) -> None:
    result = card_command(target, table, "--checkpoint-s", "30", "--checkpoint-every-min", "60", "--json")
    card = json.loads(result.stdout)
    assert set(card) == {"predictions", "memory", "completion", "energy", "assumptions", "doubts"}
    assert card["completion"]["checkpoints"]["interval_s"] == pytest.approx(3600.0)
    assert card["completion"]["cost"] is None
    assert card["energy"]["co2_grams"] is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--tokens", "1e9"], "--tokens: must be left out when --samples is given"),
        (["--checkpoint-every-min", "5"], "--checkpoint-every-min: needs --checkpoint-s"),
        (["--pue", "0.5"], "--pue"),
        (["--markdown", "--json"], "--markdown: must be left out when --json is given"),
        (["--workers", "4"], "--workers: must be left out when --nodes is given"),
    ],
)
def test_wrong_options_are_named(target: str, table: Path, options: list[str], text: str) -> None:
    result = card_command(target, table, *options)
    assert result.exit_code == 2
    assert text in result.stderr


def test_tokens_need_a_job_whose_samples_have_them(target: str, table: Path) -> None:
    command = ["card", str(table), "--nodes", "4", "--tokens", "1e9", "--server", target]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "--tokens: the tokens of a sample are not known" in result.stderr
