"""Questions as people ask them in public, put to the tools: figures that independent rules know, or what is missing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from agents import stdio_agent, text_of
from hugging_face_configs import LLAMA3_8B, LLAMA3_70B, LLAMA31_405B, MIXTRAL, NEOX_20B

GIB = 2**30
PEAK = {"A100-80GB": 312e12, "H100": 989.5e12, "A100": 312e12}
MFU = (0.25, 0.72)
"""Of dense models in 16 bits on A100 and H100, by published runs."""


@dataclass(frozen=True)
class Question:
    """A question, the call that asks it, and what the answer must be.

    Attributes
    ----------
    fits : str
        Verdicts that are right, joined by "|"; empty = it is not asked.
    states_bytes : float
        Weights, gradients and states of the optimizer in all: the memory of all devices is at least this.
    devices : tuple of int
        Bounds of the fewest devices on which it fits.
    training : (parameters, tokens) or None
        Takes 6 x parameters x tokens / (devices x peak x MFU) by the rule of 6 N D.
    refused : str
        What an error must name; empty = there is an answer.
    """

    asked: str
    tool: str
    arguments: Mapping[str, Any]
    fits: str = ""
    states_bytes: float = 0.0
    devices: tuple[int, int] = (0, 0)
    training: tuple[float, float] | None = None
    refused: str = ""


def of_size(size: str, device: str, **more: Any) -> dict[str, Any]:
    return {"model": {"parameters": size}, "device": device, "sequence_length": 2048, **more}


def of_config(config: Mapping[str, Any], device: str, **more: Any) -> dict[str, Any]:
    return {"model": {"config": dict(config)}, "device": device, "sequence_length": 2048, **more}


def by_name(name: str, device: str, **more: Any) -> dict[str, Any]:
    return {"model": name, "device": device, "sequence_length": 2048, **more}


LORA = {"frozen_weights": 0.995, "adapter_rank": 16}
QLORA = LORA | {"frozen_weight_bits": 4}
QUESTIONS = (
    Question(
        "Does full fine-tuning of 7B with Adam fit on one A100 80 GB?",
        "fits",
        of_size("7B", "A100-80GB", devices=1),
        "no",
        16 * 7e9,
    ),
    Question("And on 8 of them?", "fits", of_size("7B", "A100-80GB", devices=8), "yes|probably", 16 * 7e9),
    Question(
        "Fine-tune 7B with LoRA on one A100 80 GB?",
        "fits",
        of_size("7B", "A100-80GB", devices=1, **LORA),
        "yes",
        2 * 7e9,
    ),
    Question("QLoRA of 7B on an RTX 4090?", "fits", of_size("7B", "RTX-4090", devices=1, **QLORA), "yes", 0.5 * 7e9),
    Question(
        "QLoRA of 70B on one 80 GB card?",
        "fits",
        of_size("70B", "H100", devices=1, **QLORA),
        "yes|probably",
        0.5 * 70e9,
    ),
    Question(
        "LoRA of 70B in 16 bits on one 80 GB card?", "fits", of_size("70B", "H100", devices=1, **LORA), "no", 2 * 70e9
    ),
    Question(
        "Llama 3 8B, full, on one RTX 4090?", "fits", of_config(LLAMA3_8B, "RTX-4090", devices=1), "no", 16 * 8.03e9
    ),
    Question(
        "13B on 2 x A100 80 GB with ZeRO-3?",
        "fits",
        of_size("13B", "A100-80GB", devices=2, zero_stage=3),
        "no",
        16 * 13e9,
    ),
    Question(
        "13B on one node of 8 A100 80 GB?", "fits", of_size("13B", "A100-80GB", nodes=1), "yes|probably", 16 * 13e9
    ),
    Question("Llama 3 70B on 8 H100?", "fits", of_config(LLAMA3_70B, "H100", devices=8), "no", 16 * 70.6e9),
    Question(
        "How many H100 for full training of Llama 3 70B?",
        "fits",
        of_config(LLAMA3_70B, "H100"),
        devices=(16, 32),
        states_bytes=16 * 70.6e9,
    ),
    Question(
        "How many H100 for Llama 3.1 405B?",
        "fits",
        of_config(LLAMA31_405B, "H100"),
        devices=(88, 256),
        states_bytes=16 * 405e9,
    ),
    Question(
        "How many A100 80 GB for GPT-3 175B?",
        "fits",
        of_size("175B", "A100-80GB"),
        devices=(40, 96),
        states_bytes=16 * 175e9,
    ),
    Question(
        "GPT-NeoX-20B on 8 A100 80 GB?",
        "fits",
        of_config(NEOX_20B, "A100-80GB", devices=8),
        "yes|probably",
        16 * 20.6e9,
    ),
    Question("GPT-NeoX-20B on 2 A100 40 GB?", "fits", of_config(NEOX_20B, "A100-40GB", devices=2), "no", 16 * 20.6e9),
    Question("1.5B with Adam on one V100 of 16 GB?", "fits", of_size("1.5B", "V100-16GB", devices=1), "no", 16 * 1.5e9),
    Question("124M on one T4?", "fits", of_size("124M", "T4", devices=1), "yes", 16 * 124e6),
    Question("Mixtral 8x7B, full, on 8 H100?", "fits", of_config(MIXTRAL, "H100", devices=8), "no", 16 * 46.7e9),
    Question(
        "GPT-3 175B on 300B tokens with 1,024 A100: how long, at 2 $ per GPU-hour how much?",
        "predict",
        of_size("175B", "A100-80GB", devices=1024, global_batch=1536, tokens=300e9, price_per_device_hour=2.0),
        training=(175e9, 300e9),
    ),
    Question(
        "Llama 65B on 1.4T tokens with 2,048 A100 80 GB (21 days by the paper)?",
        "predict",
        of_size("65B", "A100-80GB", devices=2048, global_batch=2048, tokens=1.4e12),
        training=(65e9, 1.4e12),
    ),
    Question(
        "7B on 1T tokens with 64 H100, at 2.5 $?",
        "recommend",
        of_size("7B", "H100", devices=64, global_batch=1024, tokens=1e12, price_per_device_hour=2.5),
        training=(7e9, 1e12),
    ),
    Question(
        "Llama 3 8B on 15T tokens with 1,024 H100?",
        "predict",
        of_config(LLAMA3_8B, "H100", nodes=128, global_batch=2048, tokens=15e12) | {"sequence_length": 8192},
        training=(8.03e9, 15e12),
    ),
    Question(
        "1.3B on 26B tokens (Chinchilla) with 8 A100 40 GB?",
        "predict",
        of_size("1.3B", "A100", devices=8, global_batch=256, tokens=26e9),
        training=(1.3e9, 26e9),
    ),
    Question(
        "How many H100 to train 7B on 1T tokens in two weeks?",
        "recommend",
        of_size("7B", "H100", global_batch=1024, tokens=1e12, objective="fewest-devices", deadline_h=336),
        devices=(32, 128),
    ),
    Question(
        "One node gives 1,200 images/s, two 2,300, four 4,100: how many are worth it?",
        "recommend",
        {
            "measured": [
                {"nodes": 1, "throughput": 1200},
                {"nodes": 2, "throughput": 2300},
                {"nodes": 4, "throughput": 4100},
            ],
            "unit": "images_per_s",
            "device": "V100",
            "devices_per_node": 8,
            "nodes": "1-16",
        },
        devices=(32, 128),
    ),
    Question("How long does it take to train 7B?", "predict", of_size("7B", "H100", devices=8), refused="global_batch"),
    Question(
        "1.3B on 26B tokens with 4 of the 8 A100 in a node, at 2 $ per GPU-hour?",
        "card",
        of_size("1.3B", "A100-80GB", devices=4, devices_per_node=8, global_batch=256, tokens=26e9)
        | {"price_per_device_hour": 2.0},
    ),
    Question(
        "Are 1, 2 or 4 H100 cheapest for 7B?",
        "recommend",
        of_size("7B", "H100", devices="1,2,4", global_batch=64, tokens=1e9, price_per_device_hour=2.0)
        | {"objective": "least-cost"},
        refused="multiples of the 8 devices",
    ),
    Question("What does it cost to train my model?", "predict", {}, refused="model"),
    Question("Does 7B fit on my GPU?", "fits", {"model": {"parameters": "7B"}}, refused="device"),
    Question(
        "Does 7B fit on a card that nobody knows?", "fits", of_size("7B", "XYZ 9000", devices=1), refused="no device"
    ),
    Question(
        "What is the cheapest way to train 7B?",
        "recommend",
        of_size("7B", "H100", global_batch=512, objective="least-cost"),
        refused="price_per_device_hour",
    ),
    # As models write arguments: devices with their memory or number, models by name, units as text.
    Question(
        "LoRA of Llama 2 7B on a GeForce RTX 4090 of 24 GB?",
        "fits",
        by_name("meta-llama/Llama-2-7b-hf", "RTX 4090 24GB", devices=1, sequence_length=1024, **LORA),
        "yes",
        2 * 6.74e9,
    ),
    Question(
        "Llama 3 8B, full, FSDP on 8 A100 of 40 GB?",
        "fits",
        by_name("llama-3-8b", "8xA100 40GB", framework="FSDP", recompute=True, precision="bfloat16"),
        "yes|probably",
        16 * 8.03e9,
    ),
    Question(
        "How many H100 for full training of Mixtral 8x7B?",
        "fits",
        by_name("mistralai/Mixtral-8x7B-v0.1", "H100 80GB SXM5"),
        devices=(16, 32),
        states_bytes=16 * 46.7e9,
    ),
    Question(
        "Llama 2 70B, ZeRO-3, optimizer on the CPU, 8 A100 80 GB (DeepSpeed's estimate: 2 bytes x 69B / 8)?",
        "fits",
        by_name("llama-2-70b", "A100 80GB", devices=8, framework="deepspeed", zero_stage=3, offload="optimizer"),
        "yes",
        2 * 69e9,
    ),
    Question(
        "Llama 2 7B on a p4d.24xlarge (40 GB boards)?",
        "fits",
        by_name("llama-2-7b", "p4d.24xlarge", nodes=1),
        "yes",
        16 * 6.74e9,
    ),
    Question(
        "BLOOM 176B on 366B tokens with 384 A100 80 GB (1.08M hours by its authors)?",
        "predict",
        by_name("bloom", "A100-80GB", devices=384, global_batch=2048, tokens="366B"),
        training=(176e9, 366e9),
    ),
    Question(
        "13B on 300B tokens in a week: how many H100?",
        "recommend",
        of_size("13B", "H100", global_batch=1024, tokens="300B", objective="fewest-devices", deadline_h=168),
        devices=(64, 128),
    ),
    Question(
        "Is a second node of 8 A100 worth it for 7B over 10 Gb/s? (gradients alone take 11 s, a step on one node 3 s)",
        "recommend",
        by_name("llama-2-7b", "A100 80GB", nodes="1,2", global_batch=64, link_bytes_per_s="10 Gb/s"),
        devices=(8, 8),
    ),
    Question(
        "And over 200 Gb/s?",
        "recommend",
        by_name("llama-2-7b", "A100 80GB", nodes="1,2", global_batch=64, link_bytes_per_s="200 Gb/s"),
        devices=(16, 16),
    ),
    Question(
        "GPT-3 on 1,000 A100 at a batch of 1,536?",
        "predict",
        by_name("gpt-3", "A100-80GB", devices=1000, global_batch=1536),
        refused="is no multiple of",
    ),
    Question("Does 8x7B fit?", "fits", of_size("8x7B", "H100", devices=8), refused="mixture of experts"),
    Question(
        "How many GPUs to serve Llama 3 70B?",
        "fits",
        by_name("llama-3-70b", "A100 80GB", mode="inference"),
        refused="not about inference",
    ),
    Question(
        "Does inference of 70B in 4 bits fit on 2 RTX 3090?",
        "fits",
        by_name("llama-3-70b", "2x RTX 3090", frozen_weights=1.0, frozen_weight_bits=4),
        refused="not about inference",
    ),
    Question(
        "QLoRA of 7B, with 4 bits alone stated?",
        "fits",
        of_size("7B", "T4 16GB", devices=1, frozen_weight_bits=4),
        refused="frozen_weights",
    ),
    Question(
        "7B with gradient checkpointing?",
        "fits",
        of_size("7B", "A100-80GB", devices=2, gradient_checkpointing=True),
        refused="recompute",
    ),
    Question(
        "How long do 3 epochs take?",
        "predict",
        by_name("llama-2-7b", "A100", devices=8, global_batch=64, epochs=3),
        refused="state samples",
    ),
    Question(
        "What does GPT-5 cost?",
        "predict",
        by_name("gpt-5", "H100", nodes=64, global_batch=1024, tokens="10T"),
        refused="no language model is known",
    ),
    Question(
        "ResNet-50 on 8 V100: how many images/s?",
        "predict",
        {
            "model": {"parameters": "25.6M", "flops_per_sample": 12.3e9},
            "device": "V100",
            "devices": 8,
            "micro_batch": 128,
        },
        refused="measured",
    ),
    Question(
        "A mixture of experts of 47B: does it fit?",
        "fits",
        {"model": {"parameters": "47B", "experts": 8}, "device": "H100", "sequence_length": 4096},
        refused="config",
    ),
)


@pytest.fixture(scope="module")
def answers() -> list[Any]:
    async def ask_all() -> list[Any]:
        async with stdio_agent() as agent:
            return [await agent.call_tool(each.tool, dict(each.arguments)) for each in QUESTIONS]

    return asyncio.run(ask_all())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: re.sub(r"\W+", "-", each.asked)[:50])
def test_answers_are_right_or_name_what_is_missing(question: Question, answers: list[Any]) -> None:
    answer = answers[QUESTIONS.index(question)]
    text = text_of(answer)
    assert len(text) <= 1500
    if question.refused:
        assert answer.is_error, text
        assert question.refused in text
        return
    assert not answer.is_error, text
    structure = answer.structured_content
    assert len(json.dumps(structure)) < 8000
    if question.tool == "card":
        figures = {each["name"]: each["value"].replace(",", "") for each in structure["figures"]}
        assert float(figures["cost"]) == pytest.approx(2.0 * 4 * float(figures["time, h"]), rel=2e-3)
        return
    rows = structure["rows"]
    row = structure.get("recommended") or rows[0]
    if question.fits:
        assert row["fits"] in question.fits.split("|"), text
        assert text.startswith({"yes": "Yes", "probably": "Probably", "no": "No"}[row["fits"]])
    if question.devices[1]:
        least = structure.get("recommended") or next(each for each in rows if each["fits"] in ("yes", "probably"))
        assert question.devices[0] <= least["devices"] <= question.devices[1], text
        row = least
    if question.states_bytes and row["fits"] != "no":
        assert row["memory_gib"] * row["devices"] * GIB >= 0.97 * question.states_bytes
    if question.states_bytes and row["fits"] == "no":
        # Refused for its memory: either the states do not fit, or with activations they come close.
        assert row["memory_gib"] > row["device_memory_gib"]
    if question.training is not None:
        parameters, tokens = question.training
        work = 6 * parameters * tokens / (row["devices"] * PEAK[str(question.arguments["device"])]) / 3600
        assert work / MFU[1] <= row["hours"] <= work / MFU[0], text
        price = question.arguments.get("price_per_device_hour")
        if price is not None:
            assert row["cost"] == pytest.approx(price * row["devices"] * row["hours"], rel=2e-3)


def test_questions_are_at_least_twenty() -> None:
    assert len(QUESTIONS) >= 20
    assert len({each.asked for each in QUESTIONS}) == len(QUESTIONS)
