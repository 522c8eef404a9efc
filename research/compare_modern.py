"""Published throughputs of today's transformers and of data-parallel networks, beside what facts alone predict.

None of them took part in any fit, and most of their software is not that of the defaults: a comparison, no score.
`score_partitioning.py` prints it.

Sources: NVIDIA-NeMo/Megatron-Bridge, performance summary (H100, tokens per second and GPU); MLCommons, MLPerf Training
v1.1 to v5.1, samples per second derived from times to train, evaluation included; Horovod, benchmarks (512 P100, four a
node, 25 Gbit/s: scaling efficiency); the models' published configurations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from layer_files import layers_of
from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.errors import Refusal
from nodewise.plugin import Configurations, Network, Options, Profile, SyncMode, Transformer, Workload, sum_columns
from nodewise_partitioning.hardware import device_of
from nodewise_partitioning.layered.model import LayeredModel
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import memory_of
from nodewise_partitioning.software import stack_of
from nodewise_partitioning.step import PARTS, step_parts_s
from nodewise_partitioning.workload import Dimensions

CATALOGUE: Final = load_catalogue()
LAYERS: Final = Path(__file__).parent.parent / "examples" / "layers"
STACK: Final = "megatron-core flash-attention"

LLAMA3_70B: Final = Transformer(
    layers=80, hidden_size=8192, attention_heads=64, sequence_length=8192, vocabulary_size=128256, key_value_heads=8,
    feed_forward_size=28672, gated_feed_forward=True, untied_embeddings=True,
)  # fmt: skip
LLAMA31_405B: Final = Transformer(
    layers=126, hidden_size=16384, attention_heads=128, sequence_length=8192, vocabulary_size=128256,
    key_value_heads=8, feed_forward_size=53248, gated_feed_forward=True, untied_embeddings=True,
)  # fmt: skip
GPT_OSS_120B: Final = Transformer(
    layers=36, hidden_size=2880, attention_heads=64, sequence_length=4096, vocabulary_size=201088, key_value_heads=8,
    head_size=64, feed_forward_size=2880, experts=128, experts_per_token=4, gated_feed_forward=True,
    untied_embeddings=True,
)  # fmt: skip
QWEN3_30B: Final = Transformer(
    layers=48, hidden_size=2048, attention_heads=32, sequence_length=4096, vocabulary_size=151936, key_value_heads=4,
    head_size=128, feed_forward_size=6144, experts=128, experts_per_token=8, expert_feed_forward_size=768,
    gated_feed_forward=True, untied_embeddings=True,
)  # fmt: skip
QWEN3_235B: Final = Transformer(
    layers=94, hidden_size=4096, attention_heads=64, sequence_length=4096, vocabulary_size=151936, key_value_heads=4,
    head_size=128, feed_forward_size=12288, experts=128, experts_per_token=8, expert_feed_forward_size=1536,
    gated_feed_forward=True, untied_embeddings=True,
)  # fmt: skip
BERT_LARGE: Final = Transformer(
    layers=24, hidden_size=1024, attention_heads=16, sequence_length=512, vocabulary_size=30522
)


@dataclass(frozen=True, slots=True)
class Mix:
    """A run of a published mix of degrees: what is not told is 1, and the micro-batch is one sample."""

    name: str
    model: Transformer
    number_format: str
    gpus: float
    batch: float
    tokens_per_s_gpu: float
    degrees: Mapping[str, float] = field(default_factory=dict)


MIXES: Final = (
    Mix("Llama-3 70B", LLAMA3_70B, "fp8", 64, 256, 1664, {"tensor": 4, "pipeline": 8, "interleave": 5}),
    Mix(
        "Llama-3.1 405B", LLAMA31_405B, "fp8", 1024, 1536, 328,
        {"tensor": 8, "pipeline": 8, "context": 2, "interleave": 8},
    ),
    Mix("GPT-OSS 120B", GPT_OSS_120B, "bf16", 64, 1280, 5824, {"pipeline": 4, "expert": 8}),
    Mix("Qwen3 30B-A3B", QWEN3_30B, "fp8", 16, 1024, 8960, {"expert": 16}),
    Mix(
        "Qwen3 235B-A22B", QWEN3_235B, "fp8", 256, 8192, 1712,
        {"tensor": 2, "pipeline": 8, "interleave": 4, "expert": 32},
    ),
)  # fmt: skip

MLPERF_BERT: Final = (
    ("A100-80GB", 8, 448, 2428.0), ("A100-80GB", 64, 3072, 18119.0), ("A100-80GB", 1024, 4096, 109963.0),
    ("A100-80GB", 4096, 16384, 442483.0), ("H100", 8, 768, 7760.0), ("H100", 64, 4608, 53185.0),
    ("H100", 3472, 13888, 758504.0),
)  # fmt: skip
"""Device, GPUs, batch, samples per second. Packed: a sample is half a row of 512 tokens, on average."""
MLPERF_RESNET: Final = ((8, 3264, 25636.0), (64, 3264, 164896.0), (1024, 35840, 2.22e6), (4320, 64800, 5.22e6))
"""A100, v1.1: GPUs, batch, samples per second."""
MLPERF_405B: Final = ((512, 1152, 22.0), (1024, 1152, 43.2))
"""H200, v5.1; degrees are not published with it: those of the fastest split that fits are taken, the first
stages with a layer more."""
NODE_BYTES_PER_S: Final = {"A100-80GB": 200e9, "H100": 400e9, "H200": 400e9}
"""Adapters of a node: eight of 200 or 400 Gbit/s."""


def _columns(
    model: Transformer, number_format: str, device_name: str, gpus: float, stack: str = STACK, **columns: Any
) -> tuple[Any, Any, float]:
    """Parts of the steps of some rows, the memory that they need, and that there is."""
    device = device_of(CATALOGUE, device_name, number_format)
    if isinstance(device, Refusal):
        raise SystemExit(device.message)
    rows = max((np.size(column) for column in columns.values()), default=1)
    link = NODE_BYTES_PER_S[device_name]
    layout = Layout.of(rows, devices=gpus, devices_per_node=min(gpus, 8.0), node_link_bytes_per_s=link, **columns)
    software, _ = stack_of(stack, number_format)
    dimensions = Dimensions.of(model)
    memory = sum_columns(memory_of(dimensions, layout, device, software).values())
    return step_parts_s(dimensions, layout, device, software), memory, device.memory_bytes


def mixes() -> None:
    """Tokens per second and GPU of the published mixes; mixtures also with tokens that are sent to a node once."""
    print("Modern mixes, H100, nothing recomputed: tokens/s/GPU measured, predicted, error; largest parts; memory")
    for mix, stack in [(mix, STACK) for mix in MIXES] + [
        (mix, f"{STACK} deepep") for mix in MIXES if mix.model.experts
    ]:
        degrees: dict[str, Any] = {"tensor": 1.0, "pipeline": 1.0, "context": 1.0, **mix.degrees}
        data = mix.gpus / (degrees["tensor"] * degrees["pipeline"] * degrees["context"])
        parts, memory, capacity = _columns(
            mix.model, mix.number_format, "H100", mix.gpus, stack, data=data, micro_batches=mix.batch / data,
            recomputation=1.0, zero_stage=1.0, sequence_parallel=float(degrees["tensor"] > 1.0), **degrees,
        )  # fmt: skip
        rate = mix.batch * mix.model.sequence_length / float(parts.sum()) / mix.gpus
        order = np.argsort(-parts[:, 0])[:3]
        largest = ", ".join(f"{PARTS[place]} {parts[place, 0] / parts.sum():.0%}" for place in order)
        name, error = mix.name + stack.removeprefix(STACK), rate / mix.tokens_per_s_gpu - 1.0
        held = f"{memory[0] / 1e9:.0f} of {capacity / 1e9:.0f} GB"
        print(f"  {name:22s} {mix.tokens_per_s_gpu:6.0f} {rate:6.0f} {error:+5.0%}  {largest}; {held}")


def bert() -> None:
    """MLPerf BERT: pure data parallelism."""
    print("MLPerf BERT-large, data parallel: samples/s measured, predicted, and share of the first row's per GPU")
    first: dict[str, tuple[float, float]] = {}
    for name, gpus, batch, measured in MLPERF_BERT:
        # Two samples a row, where a replica has two.
        per_gpu = max(batch / gpus / 2.0, 1.0)
        parts, _, _ = _columns(
            BERT_LARGE, "fp16" if name.startswith("A100") else "fp8", name, float(gpus), stack=f"{STACK} cuda-graphs",
            data=float(gpus), micro_batch=per_gpu, recomputation=1.0,
        )  # fmt: skip
        found = 2.0 * per_gpu * gpus / float(parts.sum())
        begin = first.setdefault(name, (measured / gpus, found / gpus))
        shares = measured / gpus / begin[0], found / gpus / begin[1]
        print(f"  {name:9s} {gpus:5d} {batch:6d} {measured:8.0f} {found:8.0f}  {shares[0]:4.0%} {shares[1]:4.0%}")


def llama_405b() -> None:
    """MLPerf Llama 3.1 405B: the fastest split that fits into memory."""
    print("MLPerf Llama 3.1 405B, H200: samples/s measured, predicted for the fastest split that fits (t, p, c, v)")
    for gpus, batch, measured in MLPERF_405B:
        degrees = [
            (float(t), float(p), float(c), float(v))
            for t in (1, 2, 4, 8) for p in (1, 2, 4, 8, 16) for c in (1, 2, 4) for v in (1, 2, 4, 8)
            if gpus % (t * p * c) == 0 and batch % (gpus // (t * p * c)) == 0
            if v == 1 or (p > 1 and batch // (gpus // (t * p * c)) % p == 0)
        ]  # fmt: skip
        t, p, c, v = np.array(degrees).T
        data = gpus / (t * p * c)
        parts, memory, capacity = _columns(
            LLAMA31_405B, "fp8", "H200", float(gpus), tensor=t, pipeline=p, context=c, interleave=v, data=data,
            micro_batches=batch / data, recomputation=1.0, zero_stage=1.0, sequence_parallel=(t > 1.0) * 1.0,
        )  # fmt: skip
        rates = np.where(memory <= capacity, batch / parts.sum(axis=0), 0.0)
        best = int(np.argmax(rates))
        chosen = tuple(map(int, degrees[best]))
        error = rates[best] / measured - 1.0
        print(f"  {gpus:5d} {batch:5d} {measured:6.1f} {rates[best]:6.1f} {error:+5.0%} {chosen}")


def layered() -> None:
    """Convolutional networks, data parallel, from layer tables."""
    print("MLPerf ResNet-50, A100: samples/s measured, predicted, and share of the first row's per GPU")
    first: tuple[float, float] = (0.0, 0.0)
    for gpus, batch, measured in MLPERF_RESNET:
        found = _images_per_s("resnet50", "A100", "fp16", gpus, 8, batch // gpus, 200e9)
        first = first if first[0] else (measured / gpus, found / gpus)
        shares = measured / gpus / first[0], found / gpus / first[1]
        print(f"  {gpus:5d} {batch:6d} {measured:9.0f} {found:9.0f}  {shares[0]:4.0%} {shares[1]:4.0%}")
    print("Horovod, 512 P100 in nodes of four, 25 Gbit/s, 64 images each: scaling efficiency measured, predicted")
    for name, network, told in (("VGG-16", "vgg16", 0.68), ("ResNet-50 (measured: ResNet-101)", "resnet50", 0.90)):
        one, many = (
            _images_per_s(network, "P100", "fp32", gpus, min(gpus, 4), 64, 25e9 / 8.0) / gpus for gpus in (1, 512)
        )
        print(f"  {name:32s} {told:4.0%} {many / one:4.0%}")


def _images_per_s(
    network: str, device: str, precision: str, gpus: int, per_node: int, batch: int, link: float
) -> float:
    layers = layers_of(LAYERS / f"{network}.csv")
    profile = Profile(
        digest=network,
        workload=Workload(layers=layers, precision=precision),
        network=Network(link_bytes_per_s=link),
    )
    asked = Configurations.of(
        1, workers=gpus, nodes=gpus // per_node, device=device, batch_per_worker=batch, sync_mode=SyncMode.ALLREDUCE,
        parameter_servers=0,
    )  # fmt: skip
    found = LayeredModel(profile, CATALOGUE).predict(asked, Options())
    if not found.answered.all():
        raise SystemExit(found.refusals[0].refusal.message)
    return gpus * batch / float(found.step_s[0])


def modern() -> None:
    """All of them."""
    mixes()
    bert()
    llama_405b()
    layered()


if __name__ == "__main__":
    modern()
