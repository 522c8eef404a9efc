"""CPU of the first answer about a job, and of another one from the model that was fitted for it.

``python bench/first_answers.py`` prints both for jobs that leave more and less unsaid; it runs with the packages of any
version, so that two versions are compared by running it with the Python of each.
"""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from results import Result

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.workload import Layer, Network, Transformer, Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Question
from nodewise.hosting.registry import load_registry

WARM_UP, REPEATS = 2, 15
RESNET = Path(__file__).parents[1] / "examples" / "layers" / "resnet50.csv"

LLAMA = Transformer(
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    key_value_heads=8,
    feed_forward_size=14336,
    sequence_length=8192,
    vocabulary_size=128256,
    gated_feed_forward=True,
    untied_embeddings=True,
)
SAID = Workload(transformer=LLAMA, precision="bf16", framework="megatron-core flash-attention")


def _row(devices: int, device: str, **stated: int) -> Configurations:
    """A configuration of synchronous training on nodes of eight devices, or on fewer devices."""
    plain = Configurations.of(
        1, nodes=max(devices // 8, 1), workers=devices, device=device, sync_mode=SyncMode.ALLREDUCE
    )
    return plain.replaced(**{name: as_ints([value]) for name, value in stated.items()})


def _split(devices: int, device: str, **stated: int) -> Configurations:
    """One of which the whole layout is stated."""
    of_layout = {"tensor_parallel": 2, "pipeline_parallel": 1, "data_parallel": devices // 2, "zero_stage": 1}
    batches = {"global_batch": 4 * devices, "batch_per_worker": 1, "recomputation": 1, "sequence_parallel": 1}
    return _row(devices, device, **{**of_layout, **batches, **stated})


@dataclass(frozen=True)
class Job:
    """A job, two questions about it, and runs that are known of it."""

    workload: Workload
    first: Configurations
    second: Configurations
    network: Network = field(default_factory=Network)
    runs: Observations | None = None

    def profile(self, name: str, number: int) -> Profile:
        """The same job again, of another name and vocabulary: nothing that was computed for it before is its own."""
        workload = replace(self.workload, model_name=f"model {number}")
        if workload.transformer is not None:
            words = workload.transformer.vocabulary_size + 128 * number
            workload = replace(workload, transformer=replace(workload.transformer, vocabulary_size=words))
        runs = Observations.none() if self.runs is None else self.runs
        return Profile(digest=f"{name} {number}", workload=workload, network=self.network, observations=runs)


def _layers() -> tuple[Layer, ...]:
    with RESNET.open(encoding="utf-8", newline="") as file:
        return tuple(
            Layer(
                name=row["name"],
                kind=row["kind"],
                forward_flops_per_sample=float(row["forward_flops_per_sample"]),
                parameter_bytes=int(row["parameter_bytes"]),
                activation_bytes_per_sample=float(row["activation_bytes_per_sample"]),
            )
            for row in csv.DictReader(file)
        )


FAST = Network(link_bytes_per_s=400e9)


def jobs() -> dict[str, Job]:
    """By what they leave unsaid."""
    stated = Job(SAID, _split(64, "H100"), _split(128, "H100"), FAST)
    nothing = Workload(transformer=LLAMA)
    return {
        "stated": stated,
        "pytorch": replace(stated, workload=replace(SAID, framework="pytorch flash-attention")),
        "config_alone": Job(nothing, _row(64, "H100", global_batch=256), _row(128, "H100", global_batch=256)),
        "config_one_device": Job(
            replace(nothing, transformer=replace(LLAMA, layers=8, sequence_length=2048)),
            _row(1, "A100-80GB", global_batch=16),
            _row(1, "A100-80GB", global_batch=32),
        ),
        "blackwell": Job(
            replace(SAID, framework="nemo flash-attention"),
            _split(64, "GB200", recomputation=0),
            _split(128, "GB200", recomputation=0),
        ),
        "measured": replace(stated, runs=Observations.of(_split(16, "H100"), np.array([0.25]))),
        "images": Job(
            Workload(layers=_layers(), precision="fp32"),
            _row(16, "V100", batch_per_worker=64),
            _row(32, "V100", batch_per_worker=64),
            replace(FAST, link_bytes_per_s=12.5e9),
        ),
    }


def _cpu_s(engine: Answers, profile: Profile, configurations: Configurations) -> float:
    started = time.process_time()
    engine.answer(Question(profile=profile, configurations=configurations))
    return time.process_time() - started


def measured() -> Iterator[tuple[str, float, float]]:
    """Of each job the medians of CPU of a first answer, and of one from the fitted model."""
    engine = Answers(load_registry(safe_mode=True), catalogue=load_catalogue())
    for name, job in jobs().items():
        both = []
        for number in range(WARM_UP + REPEATS):
            profile = job.profile(name, number)
            both.append([_cpu_s(engine, profile, asked) for asked in (job.first, job.second)])
        first_s, second_s = map(statistics.median, zip(*both[WARM_UP:], strict=True))
        yield name, first_s, second_s


def run() -> Iterator[Result]:
    """Beside the job that states every fact."""
    stated: tuple[float, float] | None = None
    for name, first_s, second_s in measured():
        stated = stated or (first_s, second_s)
        yield Result(f"first_answer_{name}", 1e3 * first_s, "ms", 1e3 * stated[0])
        yield Result(f"answer_of_fitted_{name}", 1e3 * second_s, "ms", 1e3 * stated[1])


if __name__ == "__main__":
    for result in run():
        print(result.line(), flush=True)
