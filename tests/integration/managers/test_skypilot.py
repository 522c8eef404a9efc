"""SkyPilot's own optimizer, with the times and the offers that Nodewise tells, and without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing_servers import FAILURES, failing_targets, wrong_offer_server
from jobs_of_managers import CIFAR10
from managers import program_of
from patience import PATIENCE_S
from serving import ServerProcess

from nodewise_client import (
    AppendProfileRequest,
    Client,
    Network,
    PredictRequest,
    ProfileContent,
    Transformer,
    Workload,
    configurations,
    profile_source,
)

pytestmark = pytest.mark.skypilot

STEPS = 334_300
# Sharded over all its devices this still needs several nodes.
LARGE = ProfileContent(
    workload=Workload(
        precision="fp16",
        transformer=Transformer(
            layers_count=64,
            hidden_size=6144,
            attention_heads_count=64,
            sequence_length_tokens=2048,
            vocabulary_size=51200,
        ),
    ),
    network=Network(link_bytes_per_second=25e9),
)


def test_times_and_offers_until_nodewise_is_stopped(tmp_path: Path) -> None:
    with ServerProcess("--store", "memory:") as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="team-a/cifar10", content=CIFAR10))
        client.append_profile(AppendProfileRequest(profile_id="team-a/llm", content=LARGE))
        predicted = client.predict(
            PredictRequest(
                profile=profile_source("team-a/cifar10"),
                configurations=configurations(
                    nodes=2, workers=8, devices=["T4", "V100"], global_batch_samples=2048, sync_modes="allreduce"
                ),
            )
        )
        seconds = [STEPS / row.steps_per_second for row in predicted]
        patience = str(PATIENCE_S)
        with program_of(
            "skypilot", "skypilot_program.py", server.target, patience, folder=tmp_path, environment={}
        ) as program:
            cheapest = program.told()
            # A100 has the least price by far, and nothing is known of how this job would run on it.
            assert cheapest["chosen"] == ["T4", 4]
            assert cheapest["seconds"] == pytest.approx(seconds[0], abs=1)
            assert "2x A100:4: ranked last" in program.log()
            fastest = program.told()
            assert fastest["chosen"] == ["V100", 4]
            assert fastest["seconds"] == pytest.approx(seconds[1], abs=1)
            assert fastest["asked"] >= 3

            firm = program.told()
            assert firm["answered"], firm
            assert not firm["spot"]
            assert firm["seconds"] <= 24 * 3600
            spot = program.told()
            assert spot["answered"], spot
            assert spot["spot"]
            assert spot["seconds"] <= 24 * 3600

            # One node and two would be cheaper, and do not fit into memory.
            large = program.told()
            assert large["nodes"] == 4, large

            server.terminate()
            program.go_on()
            # As without Nodewise: an hour for each, so that the price decides.
            alone = program.told()
            assert alone["chosen"] == ["A100", 4]
            assert alone["seconds"] == 3600
            assert (
                "one hour is assumed for every candidate, because Nodewise does not answer: unanswered" in program.log()
            )
            untouched = program.told()
            assert not untouched["answered"]
            assert untouched["nodes"] == 1
            assert not untouched["spot"]
            assert untouched["answer"].startswith("resting: ")


def test_tasks_are_optimized_as_without_however_nodewise_fails(tmp_path: Path) -> None:
    with (
        failing_targets(*FAILURES) as targets,
        program_of("skypilot", "skypilot_program.py", "", "1", *targets, folder=tmp_path, environment={}) as program,
    ):
        for failure in FAILURES:
            alone = program.told()
            assert (alone["chosen"], alone["seconds"]) == (["A100", 4], 3600), failure
            for _ in range(2):
                untouched = program.told()
                assert (untouched["answered"], untouched["nodes"], untouched["spot"]) == (False, 1, False), failure
        assert program.log().count("one hour is assumed for every candidate, because Nodewise does not") >= len(
            FAILURES
        )


def test_an_offer_that_was_not_requested_is_not_chosen(tmp_path: Path) -> None:
    with (
        wrong_offer_server() as target,
        program_of("skypilot", "skypilot_program.py", "", "1", target, folder=tmp_path, environment={}) as program,
    ):
        _, firm, spot = program.told(), program.told(), program.told()
        assert firm["answered"]
        assert (spot["answered"], spot["nodes"], spot["spot"]) == (False, 1, False)
        assert "does not fit the question" in spot["answer"]
