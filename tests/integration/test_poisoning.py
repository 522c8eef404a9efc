"""What a stranger states moves nobody else: not at all by default, within bounds where namespaces are shared.

Each attack was one on version 0.1, where all profiles taught everybody: `as_before` learns so, and shows that it bites.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE_S

from nodewise.catalogue.loading import load_catalogue
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.calibrations import calibrations_of
from nodewise.estimation.lessons.priors import learned_from
from nodewise.estimation.question import Question
from nodewise.hosting.registry import load_registry
from nodewise.ports.limits import Limits
from nodewise.rpc.candidates import read_candidates
from nodewise.rpc.sources import read_content
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_client import (
    AppendProfileRequest,
    Client,
    Configurations,
    PredictRequest,
    ProfileContent,
    Transformer,
    Workload,
    configurations,
    observations,
    profile_source,
)
from nodewise_values.wire import to_message

pytestmark = pytest.mark.long

POINT, WIDTH = 1.05, 1.2
"""What one owner may move of another's."""


def all_reduce(device: str, step_s: Sequence[float], nodes: Sequence[int] = (1, 2, 4, 8)) -> ProfileContent:
    """A data-parallel job, four devices a node."""
    rows = configurations(
        nodes=nodes,
        workers=[4 * each for each in nodes],
        sync_modes="allreduce",
        devices=device,
        batch_per_worker_samples=32,
    )
    return ProfileContent(observations=observations(configurations=rows, steps_per_second=[1.0 / s for s in step_s]))


GPT_22B = Workload(
    transformer=Transformer(
        layers_count=48,
        hidden_size=6144,
        attention_heads_count=64,
        sequence_length_tokens=2048,
        vocabulary_size=51200,
    ),
    precision="fp16",
)
PARTITIONED = configurations(
    nodes=1,
    workers=8,
    sync_modes="allreduce",
    devices="A100-80GB",
    tensor_parallel_degrees=8,
    pipeline_parallel_degrees=1,
    data_parallel_degrees=1,
    batch_per_worker_samples=4,
    global_batch_samples=64,
    accumulation_steps=16,
)


def transformer_runs(steps_per_s: float) -> ProfileContent:
    return ProfileContent(
        workload=GPT_22B,
        observations=observations(configurations=PARTITIONED, steps_per_second=[steps_per_s]),
    )


def one_worker(flops: float, steps_per_s: float) -> ProfileContent:
    rows = configurations(nodes=1, workers=1, sync_modes="allreduce", devices="V100", batch_per_worker_samples=64)
    return ProfileContent(
        workload=Workload(flops_per_sample=flops, family="Wide"),
        observations=observations(configurations=rows, steps_per_second=[steps_per_s]),
    )


def wild(number: int) -> ProfileContent:
    """Steps that follow no law, all of which a device might take."""
    drawn = np.random.default_rng(number).uniform(np.log(0.01), np.log(30.0), 4)
    return all_reduce("V100", np.exp(drawn).tolist())


OWN_X9 = all_reduce("X9", (0.20,), (1,))
"""A job on a device that nobody knows, asked about 16 nodes."""
SIXTEEN = configurations(nodes=16, workers=64, batch_per_worker_samples=32)
ATTACKS: Mapping[str, tuple[ProfileContent, Configurations, Sequence[ProfileContent]]] = {
    "a 22B model": (
        ProfileContent(workload=GPT_22B),
        PARTITIONED,
        [transformer_runs(rate) for rate in (1e-4, 3e-3)],
    ),
    "an unknown device": (
        OWN_X9,
        SIXTEEN,
        [all_reduce("X9", (0.2, 2.0 + number, 9.0, 20.0)) for number in range(2)],
    ),
    "V100": (
        ProfileContent(workload=Workload(flops_per_sample=4e9, family="Wide")),
        configurations(nodes=1, workers=1, devices="V100", batch_per_worker_samples=64),
        [one_worker(flops, 50.0 / 9.0**number) for number, flops in enumerate((1e9, 2e9, 5e9, 8e9))],
    ),
    "auto": (
        all_reduce("V100", (0.2, 0.25, 0.28), (1, 2, 4)),
        SIXTEEN,
        [wild(number) for number in range(6)],
    ),
}


@contextmanager
def serving(folder: Path, *shared: str) -> Iterator[Client]:
    settings = Settings(
        store="memory:",
        plugins_folder=str(folder / "plugins"),
        admin=True,
        grace_s=1.0,
        learn_interval_s=0.4,
        scoring=False,
        shared_namespaces=shared,
    )
    with EmbeddedServer(settings) as server, Client(server.target) as client:
        yield client


def store(client: Client, jobs: Mapping[str, ProfileContent]) -> None:
    for name, content in jobs.items():
        client.append_profile(AppendProfileRequest(profile_id=name, content=content))


def wait_until(done: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < ends_s
        time.sleep(0.02)


def wait_until_learned(client: Client, jobs: Mapping[str, int]) -> None:
    """Until so many jobs teach each namespace, those of others and those that are left out among them."""

    def learned() -> bool:
        found = {each.namespace: each for each in client.list_priors().learned}
        return all(
            name in found
            and found[name].jobs_count + len({job.profile_id for job in found[name].trimmed_jobs}) >= wanted
            for name, wanted in jobs.items()
        )

    wait_until(learned)


def answered(client: Client, profile: str | ProfileContent, rows: Configurations) -> tuple[float, float]:
    """Steps/s, and ln of the upper over the lower bound."""
    (row,) = client.predict(PredictRequest(profile=profile_source(profile), configurations=rows))
    assert row.lower_steps_per_second is not None
    assert row.upper_steps_per_second is not None
    return row.steps_per_second, math.log(row.upper_steps_per_second / row.lower_steps_per_second)


def as_before(own: ProfileContent, rows: Configurations, teachers: Sequence[ProfileContent]) -> tuple[float, float]:
    """The same by version 0.1: every profile teaches everybody, whatever it says."""
    registry, catalogue, limits = load_registry(safe_mode=True), load_catalogue(), Limits()
    jobs = [read_content(to_message(each), "content", limits) for each in teachers]
    learned = learned_from(registry, jobs)
    calibrations = calibrations_of(learned.registry, jobs, catalogue=catalogue, priors=learned.priors)
    answers = Answers(registry, catalogue=catalogue, priors=learned.priors, calibrations=calibrations)
    profile = read_content(to_message(own), "content", limits)
    answer = answers.answer(Question(profile=profile, configurations=read_candidates(to_message(rows), [], limits)))
    assert answer.interval is not None
    width = math.log(float(answer.interval.upper_steps_per_s[0] / answer.interval.lower_steps_per_s[0]))
    return float(answer.steps_per_s[0]), width


def moved(before: tuple[float, float], after: tuple[float, float]) -> tuple[float, float]:
    """Factors of point and width, 1 or more."""
    point, width = (math.exp(abs(math.log(b / a))) for a, b in zip(before, after, strict=True))
    return point, width


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_attack_was_one(attack: str) -> None:
    own, rows, states = ATTACKS[attack]
    point, width = moved(as_before(own, rows, ()), as_before(own, rows, states))
    assert point > POINT or width > 2.0 * WIDTH


VICTIMS = {f"victim/{name.replace(' ', '-')}": attack for name, attack in ATTACKS.items()}
STATES = {
    f"evil/{name.replace(' ', '-')}-{number}": content
    for name, (_, _, states) in ATTACKS.items()
    for number, content in enumerate(states)
}


def all_answers(client: Client) -> dict[str, tuple[float, float]]:
    """What the victims are told, of the jobs that they stored and of what they ask in words."""
    stored = {name: answered(client, name, rows) for name, (_, rows, _) in VICTIMS.items()}
    return stored | {f"inline {name}": answered(client, own, rows) for name, (own, rows, _) in VICTIMS.items()}


def test_by_default_no_namespace_moves_another(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        store(client, {name: own for name, (own, _, _) in VICTIMS.items()})
        wait_until_learned(client, {"victim": len(VICTIMS)})
        before = all_answers(client)
        store(client, STATES)
        wait_until_learned(client, {"evil": len(STATES)})
        assert all_answers(client) == before
        (evil,) = [each for each in client.list_priors().learned if each.namespace == "evil"]
        assert {job.reason.partition(":")[0] for job in evil.trimmed_jobs} == {"STALLED", "SUPERLINEAR"}


def test_where_namespaces_are_shared_an_owner_moves_others_within_bounds(tmp_path: Path) -> None:
    with serving(tmp_path, "*") as client:
        store(client, {name: own for name, (own, _, _) in VICTIMS.items()})
        store(client, {"friend/x9": all_reduce("X9", (0.2, 0.26, 0.28, 0.29))})
        wait_until_learned(client, {"victim": len(VICTIMS) + 1, "*": len(VICTIMS) + 1})
        before = all_answers(client)
        store(client, STATES)
        everyone = len(VICTIMS) + 1 + len(STATES)
        wait_until_learned(client, {"victim": everyone, "*": everyone})
        after = all_answers(client)
        factors = {name: moved(before[name], after[name]) for name in before}
        assert after != before
        assert max(point for point, _ in factors.values()) <= POINT
        assert max(width for _, width in factors.values()) <= WIDTH
