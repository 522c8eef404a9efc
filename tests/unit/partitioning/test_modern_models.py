"""Models of today and how they are trained: attention, state spaces, encoders, schedules, optimizers, adapters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from partitioned_transformers import SMALL, KnownContext, profile, rows

from nodewise.plugin import Configurations, Encoder, Floats, Options, Predictions, Recomputation, RowStatus, Transformer
from nodewise_partitioning.estimator import PartitioningEstimator
from nodewise_partitioning.workload import Dimensions

NONE = int(Recomputation.NONE)
ONE_NODE: dict[str, Any] = {"nodes": 1, "workers": 8, "batch_per_worker": 4, "recomputation": NONE}
PIPELINE = ONE_NODE | {"pipeline_parallel": 4, "batch_per_worker": 1, "accumulation": 16}
CORE, TORCH = "megatron-core flash-attention", "pytorch flash-attention"
MIXTURE = replace(SMALL, experts=8, experts_per_token=2, expert_feed_forward_size=2048)


def answered(asked: Configurations, of: Transformer = SMALL, framework: str = CORE, **facts: Any) -> Predictions:
    job = profile(of, framework=framework)
    job = replace(job, workload=replace(job.workload, **facts))
    found = PartitioningEstimator().fit(job, KnownContext()).predict(asked, Options())
    assert (found.status == RowStatus.ANSWERED).all()
    return found


def term(found: Predictions, name: str) -> float:
    return float(found.extra[f"memory_{name}_bytes"][0])


def part(found: Predictions, name: str) -> float:
    return float(found.breakdown_s[name][0])


DEEPSEEK_V3 = Transformer(
    layers=61, hidden_size=7168, attention_heads=128, sequence_length=4096, vocabulary_size=129_280,
    feed_forward_size=18_432, gated_feed_forward=True, untied_embeddings=True, experts=256, experts_per_token=8,
    expert_feed_forward_size=2048, shared_expert_feed_forward_size=2048, expert_layers=58, head_size=192,
    value_head_size=128, key_value_latent_size=512, query_latent_size=1536, rotary_head_size=64,
)  # fmt: skip
DEEPSEEK_V2_LITE = Transformer(
    layers=27, hidden_size=2048, attention_heads=16, sequence_length=4096, vocabulary_size=102_400,
    feed_forward_size=10_944, gated_feed_forward=True, untied_embeddings=True, experts=64, experts_per_token=6,
    expert_feed_forward_size=1408, shared_expert_feed_forward_size=2816, expert_layers=26, head_size=192,
    value_head_size=128, key_value_latent_size=512, rotary_head_size=64,
)  # fmt: skip
MAMBA2_2_7B = Transformer(
    layers=64, hidden_size=2560, attention_heads=80, sequence_length=2048, vocabulary_size=50_288,
    gated_feed_forward=True, state_space_layers=64, feed_forward_layers=1, feed_forward_size=1,
)  # fmt: skip
NEMOTRON_H_8B = Transformer(
    layers=52, hidden_size=4096, attention_heads=32, sequence_length=8192, vocabulary_size=131_072, key_value_heads=8,
    head_size=128, feed_forward_size=21_504, untied_embeddings=True, attention_layers=4, state_space_layers=24,
    state_space_size=8192, feed_forward_layers=24,
)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "published"),
    [(DEEPSEEK_V3, 671e9), (DEEPSEEK_V2_LITE, 15.7e9), (MAMBA2_2_7B, 2.7e9), (NEMOTRON_H_8B, 8.1e9)],
)
def test_parameters_are_those_that_makers_publish(model: Transformer, published: float) -> None:
    assert Dimensions.of(model).parameters() == pytest.approx(published, rel=0.03)


def test_active_parameters_of_deepseek_v3_are_those_published() -> None:
    """37e9 with embedding and output layer (technical report, 2024, section 4.2)."""
    embedded = DEEPSEEK_V3.vocabulary_size * DEEPSEEK_V3.hidden_size
    assert DEEPSEEK_V3.multiplied_elements() + 2.0 * embedded == pytest.approx(37e9, rel=0.02)
    dimensions = Dimensions.of(DEEPSEEK_V3)
    scores = 4.0 * 4096.0**2 * 61.0 * 128.0 * (192.0 + 128.0) / 2.0
    products = 2.0 * 4096.0 * (DEEPSEEK_V3.multiplied_elements() + embedded)
    assert dimensions.forward_flops() == pytest.approx(products + scores, rel=1e-3)


def test_latent_attention_holds_less_than_plain_attention_of_its_heads() -> None:
    plain = replace(DEEPSEEK_V3, key_value_latent_size=0, query_latent_size=0, rotary_head_size=0)
    assert Dimensions.of(DEEPSEEK_V3).parameters() < Dimensions.of(plain).parameters()


@pytest.mark.parametrize(
    "fewer",
    [{"attention_window": 256}, {"attention_window": 256, "windowed_layers": 12}],
    ids=["all layers", "half of the layers"],
)
def test_windows_and_documents_save_scores_where_kernels_skip_them(fewer: dict[str, int]) -> None:
    asked, long = rows(1, **ONE_NODE | {"batch_per_worker": 1}), replace(SMALL, sequence_length=4096)
    whole, windowed = answered(asked, long), answered(asked, replace(long, **fewer))
    assert part(windowed, "compute") < part(whole, "compute")
    assert term(windowed, "activations") == term(whole, "activations")
    stored = (answered(asked, each, "megatron-lm", master_weights=False) for each in (long, replace(long, **fewer)))
    assert len({part(each, "compute") for each in stored}) == 1
    packed = answered(asked, long, document_tokens=1024.0)
    assert part(packed, "compute") < part(whole, "compute")
    assert part(answered(asked, long, document_tokens=4096.0), "compute") == part(whole, "compute")


def test_a_window_leaves_what_it_says() -> None:
    long = replace(SMALL, sequence_length=8192)
    assert Dimensions.of(replace(long, attention_window=8192)).attended_share == 1.0
    assert Dimensions.of(replace(long, attention_window=4096)).attended_share == 0.75
    assert Dimensions.of(replace(long, attention_window=4096, windowed_layers=12)).attended_share == 0.875


def test_state_spaces_grow_with_tokens_and_attention_with_their_square() -> None:
    mixed = replace(SMALL, state_space_layers=SMALL.layers, feed_forward_layers=SMALL.layers)
    for model, ratio in ((mixed, 8.0), (SMALL, 8.5)):
        short, long = (replace(model, sequence_length=tokens) for tokens in (2048, 16_384))
        flops = [Dimensions.of(each).forward_flops() for each in (short, long)]
        assert flops[1] / flops[0] == pytest.approx(8.0) if model is mixed else flops[1] / flops[0] > ratio


def test_an_encoder_stands_before_the_first_stage() -> None:
    tower = Encoder(layers=24, hidden_size=1024, attention_heads=16, tokens_per_sample=4 * 576, attended_tokens=576)
    asked = rows(1, **ONE_NODE)
    without, whole, frozen = (answered(asked, encoder=each) for each in (None, tower, replace(tower, frozen=True)))
    assert part(without, "compute") < part(frozen, "compute") < part(whole, "compute")
    for name in ("weights", "gradients", "optimizer", "activations"):
        assert term(without, name) < term(whole, name)
    assert term(frozen, "gradients") == term(without, "gradients")
    assert term(frozen, "weights") == term(whole, "weights")
    elements = (term(whole, "weights") - term(without, "weights")) / 2.0
    assert elements == pytest.approx(24.0 * 12.0 * 1024.0**2, rel=0.02)


@pytest.mark.parametrize(
    ("facts", "bytes_per_parameter"),
    [
        ({"optimizer": "adamw"}, 12.0),
        ({"optimizer": "adamw-8bit"}, 6.0),
        ({"optimizer_state_bits": 16.0}, 8.0),
        ({"optimizer": "lion"}, 8.0),
        ({"optimizer": "sgd"}, 4.0),
        ({"master_weights": False}, 4.0),
        ({"master_weights": False, "optimizer": "adafactor"}, 0.0),
    ],
)
def test_what_optimizers_hold(facts: dict[str, Any], bytes_per_parameter: float) -> None:
    asked = rows(1, **ONE_NODE)
    usual, found = answered(asked), answered(asked, **facts)
    parameters = term(usual, "optimizer") / 12.0
    assert term(found, "optimizer") / parameters == pytest.approx(bytes_per_parameter)
    assert part(found, "optimizer") <= part(usual, "optimizer")


def test_a_fused_loss_keeps_no_logits() -> None:
    asked = rows(1, **ONE_NODE)
    for framework in (CORE, TORCH):
        held = {said: term(answered(asked, framework=framework, fused_loss=said), "logits") for said in (True, False)}
        assert held[True] < 0.1 * held[False]


def test_schedules() -> None:
    asked = rows(1, **PIPELINE)
    found = {each: answered(asked, pipeline_schedule=each) for each in ("1f1b", "gpipe", "zero-bubble", "dualpipe")}
    plain = answered(asked)
    assert found["1f1b"].step_s[0] == plain.step_s[0]
    assert found["gpipe"].step_s[0] == plain.step_s[0]
    assert term(found["gpipe"], "activations") == pytest.approx(4.0 * term(plain, "activations"), rel=0.05)
    assert part(found["dualpipe"], "pipeline_bubble") < part(found["zero-bubble"], "pipeline_bubble")
    assert part(found["zero-bubble"], "pipeline_bubble") < part(plain, "pipeline_bubble")
    assert term(found["dualpipe"], "weights") == 2.0 * term(plain, "weights")


def test_dualpipe_hides_the_exchange_between_experts() -> None:
    asked = rows(1, **PIPELINE, expert_parallel=2)
    plain, dual = (answered(asked, MIXTURE, pipeline_schedule=each) for each in ("1f1b", "dualpipe"))
    assert part(dual, "expert_parallel") < part(plain, "expert_parallel")


def test_listed_stages_hold_for_rows_of_so_many() -> None:
    """The last stage computes the output layer as well, as long as two layers: three of its layers belong elsewhere."""
    asked = rows(1, **PIPELINE)
    even, listed, balanced, lean = (
        float(answered(asked, stage_layers=each).step_s[0])
        for each in (None, (6, 6, 6, 6), (7, 7, 7, 3), (2, 10, 10, 2))
    )
    assert listed == pytest.approx(even)
    assert balanced < even < lean
    elsewhere = rows(1, **PIPELINE | {"pipeline_parallel": 2})
    assert answered(elsewhere, stage_layers=(2, 10, 10, 2)).step_s[0] == answered(elsewhere).step_s[0]


def test_memory_of_listed_stages_is_that_of_the_fullest() -> None:
    asked = rows(1, **PIPELINE)
    front, back = (answered(asked, stage_layers=each) for each in ((15, 3, 3, 3), (3, 3, 3, 15)))
    assert float(front.memory_bytes[0]) > float(back.memory_bytes[0])


def test_the_busiest_expert_is_waited_for() -> None:
    asked = rows(1, **ONE_NODE, expert_parallel=8)
    alike, busy, capped = (
        answered(asked, MIXTURE, busiest_expert_share=share, expert_capacity=capacity)
        for share, capacity in ((0.125, None), (0.25, None), (0.25, 1.25))
    )
    assert part(alike, "compute") < part(capped, "compute") < part(busy, "compute")
    assert busy.log_spread[0] < answered(asked, MIXTURE).log_spread[0]


def test_adapters_take_passes_over_what_their_matrices_read_and_write() -> None:
    asked = rows(1, **ONE_NODE)

    def compute_s(**facts: Any) -> float:
        return part(answered(asked, frozen_weights_share=0.995, **facts), "compute")

    none, low, high, scaled = (
        compute_s(),
        *(compute_s(adapter_rank=rank) for rank in (8, 64)),
        compute_s(adapter_rank=8, adapter="dora"),
    )
    assert none < low < high < 1.1 * low
    assert low < scaled
    # Under PyTorch a job that freezes nearly everything has them, whether it says so or not.
    torch = answered(asked, framework=TORCH, frozen_weights_share=0.995)
    stated = answered(asked, framework=TORCH, frozen_weights_share=0.995, adapter_rank=16)
    assert part(torch, "compute") == part(stated, "compute")


def test_a_rank_alone_says_what_is_frozen() -> None:
    found = answered(rows(1, **ONE_NODE), adapter_rank=16)
    assert term(found, "optimizer") < 0.02 * term(answered(rows(1, **ONE_NODE)), "optimizer")


def test_chains_of_plain_operators_slow_gated_models_under_eager_pytorch() -> None:
    asked, gated = rows(1, **ONE_NODE), replace(SMALL, gated_feed_forward=True)

    def compute_s(model: Transformer, name: str, **facts: Any) -> float:
        return part(answered(asked, model, name, **facts), "compute")

    assert compute_s(gated, TORCH) > 1.05 * compute_s(gated, f"{TORCH} compile")
    assert compute_s(gated, TORCH) > 1.05 * compute_s(gated, f"{TORCH} fused-kernels")
    assert compute_s(SMALL, TORCH) == compute_s(SMALL, f"{TORCH} compile")
    assert compute_s(gated, TORCH, execution="compiled") == compute_s(gated, f"{TORCH} compile")


def test_graphs_launch_once() -> None:
    asked = rows(1, **ONE_NODE | {"batch_per_worker": 1})
    small = replace(SMALL, hidden_size=256, attention_heads=4, sequence_length=128)
    eager, graphs = (answered(asked, small, execution=each) for each in ("eager", "graphs"))
    assert part(graphs, "host") < 0.2 * part(eager, "host")


def test_recomputation_by_operation_runs_half_of_the_products_again() -> None:
    """Of the forward pass; whole layers run it again but for their last product, a third of the products."""
    ways = (NONE, int(Recomputation.SELECTIVE), int(Recomputation.FULL))
    none, selective, full = (
        part(answered(rows(1, **ONE_NODE | {"recomputation": way}), framework=TORCH), "compute") for way in ways
    )
    assert none < selective < full
    assert 2.0 * (selective - none) / (none / 3.0) == pytest.approx(1.0, abs=0.3)
    assert (full - none) / (none / 3.0) == pytest.approx(1.0 - 1.0 / 3.0, abs=0.1)


def test_scattered_sequences_are_gathered_once_more_by_operation() -> None:
    split = ONE_NODE | {"tensor_parallel": 4, "sequence_parallel": 1, "zero_stage": 3}
    none, selective = (
        part(answered(rows(1, **split | {"recomputation": way}), framework=TORCH), "tensor_parallel")
        for way in (NONE, int(Recomputation.SELECTIVE))
    )
    assert selective / none == pytest.approx(1.25)


def test_casts_that_nothing_fuses_cost_fp8_what_it_gains() -> None:
    def gain(framework: str) -> float:
        asked = rows(2, "H100", **ONE_NODE)
        asked = asked.replaced(precisions=("bf16", "fp8"), precision_index=np.array([0, 1]))
        compute = answered(asked, framework=framework).breakdown_s["compute"]
        return float(compute[0] / compute[1])

    assert 1.0 < gain(TORCH) < gain(CORE) < 2.0


def test_what_is_summed_in_16_bits_is_held_so() -> None:
    asked = rows(1, **ONE_NODE)
    core, nemo = (answered(asked, framework=name, precision="bf16") for name in (CORE, "nemo flash-attention"))
    assert term(nemo, "gradients") == pytest.approx(0.5 * term(core, "gradients"))
    wide = answered(asked, framework="nemo flash-attention", precision="bf16", reduction_precision="fp32")
    assert term(wide, "gradients") == term(core, "gradients")


def test_a_program_of_xla_holds_one_copy_of_weights_and_no_cache() -> None:
    asked = rows(1, "TPU-v5e", **ONE_NODE | {"zero_stage": 3, "recomputation": int(Recomputation.FULL)})
    found = answered(asked, framework="maxtext flash-attention", precision="bf16")
    states = sum(term(found, each) for each in ("weights", "gradients", "optimizer"))
    assert states == pytest.approx(16.0 * Dimensions.of(SMALL).parameters() / 8.0, rel=0.02)
    assert term(found, "cache") == 0.0


def test_gradients_are_taken_in_16_bits_where_nothing_else_fits() -> None:
    """70e9 parameters on each of 64 devices with ZeRO's first stage: Megatron-Bridge's Llama 3 in fp4 on GB300."""
    llama = Transformer(
        layers=80, hidden_size=8192, attention_heads=64, sequence_length=8192, vocabulary_size=128_256,
        key_value_heads=8, feed_forward_size=28_672, gated_feed_forward=True, untied_embeddings=True,
    )  # fmt: skip
    asked = rows(1, "GB300", nodes=16, workers=64, batch_per_worker=2, accumulation=2, zero_stage=1)
    found = answered(asked, llama, precision="fp4")
    assert term(found, "gradients") == pytest.approx(2.0 * Dimensions.of(llama).parameters(), rel=0.02)
    (told,) = (notice for notice in found.notices if notice.reason == "STATES_ASSUMED")
    assert "16-bit" in told.message


def kernels_s(device: str) -> Floats:
    long = replace(SMALL, sequence_length=32_768, head_size=128)
    return answered(rows(1, device, **ONE_NODE | {"batch_per_worker": 1, "tensor_parallel": 8}), long).breakdown_s[
        "compute"
    ]


def test_attention_goes_by_what_a_devices_kernels_reach() -> None:
    """B200's reach 0.47 of its peak at heads of 128, B300's 0.57 (`efficiencies` of the catalogue)."""
    assert kernels_s("B300")[0] < kernels_s("B200")[0]
    assert np.isfinite(kernels_s("A100")).all()
