"""What agents write in the place of numbers and catalogue names."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from nodewise.catalogue.loading import load_catalogue
from nodewise_cli.agents.arguments import PlanQuestion, PredictQuestion
from nodewise_cli.agents.known_models import known_model
from nodewise_cli.agents.reading import count_and_device, read_amount, read_format, read_framework, read_link
from nodewise_cli.agents.refusals import explain_arguments
from nodewise_cli.device_names import device_named
from nodewise_cli.failures import InputError
from nodewise_client import Device, NamedNumber

DEVICES = [
    Device(
        name=each.name, aliases=each.aliases, facts=tuple(NamedNumber(name=k, value=v) for k, v in each.facts.items())
    )
    for each in load_catalogue().listed
]


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("A100 80GB", "A100-80GB"),
        ("A100-80GB-SXM", "A100-80GB"),
        ("A100 40GB SXM4", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("A100s", "A100"),
        ("H100 80GB SXM5", "H100"),
        ("RTX 4090 24GB", "RTX-4090"),
        ("4090s", "RTX-4090"),
        ("A6000 48 GB", "RTX-A6000"),
        ("L40S 48GB", "L40S"),
        ("NVIDIA L4 24GB", "L4"),
        ("V100 PCIe 16GB", "V100-PCIe"),
        ("H100 94GB", "H100-NVL"),
        ("HGX H100", "H100"),
        ("B200 192GB", "B200"),
        ("AMD MI300X 192GB", "MI300X"),
        ("TPU v5e-8", "TPU-v5e"),
        ("AWS p5.48xlarge", "H100"),
    ],
)
def test_names_with_memory_and_form_are_those_of_the_catalogue(name: str, device: str) -> None:
    assert device_named(name, DEVICES)[0].name == device


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("A100 48GB", "40 or 80 GB"),
        ("RTX 3090 Ti", "nearest are RTX-3090"),
        ("NVIDIA A2", "no device"),
        ("Cerebras WSE", "none is like it"),
    ],
)
def test_other_devices_are_refused_with_what_is_near(name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        device_named(name, DEVICES)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("7B", 7e9), ("7b", 7e9), ("1.5 trillion", 1.5e12), ("300B", 3e11), ("1e9", 1e9), ("7,000", 7e3), ("124M", 124e6)],
)
def test_amounts(text: str, amount: float) -> None:
    assert read_amount(text) == pytest.approx(amount)


@pytest.mark.parametrize("text", ["many", "8x7B", "7 B parameters", "-1", "", "1,5B", "0,125", "7_0", "1e9B", "1e9999"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"mixture of experts|must be a number"):
        read_amount(text)


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("100 Gb/s", 12.5e9),
        ("100Gbps", 12.5e9),
        ("12.5 GB/s", 12.5e9),
        ("10GbE", 1.25e9),
        ("3.2 Tb/s", 4e11),
        ("100 GBit/s", 12.5e9),
        ("10GBE", 1.25e9),
        ("10 GiB/s", 10 * 2**30),
        ("5e9", 5e9),
    ],
)
def test_links(text: str, bytes_per_s: float) -> None:
    assert read_link(text) == pytest.approx(bytes_per_s)


@pytest.mark.parametrize("value", [100, "100", "fast", "1 kb/s", "100 GBPS", True])
def test_a_link_in_another_unit_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_link(value)


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("8xA100", (8, "A100")),
        ("4x4090", (4, "4090")),
        ("2 x RTX 3090", (2, "RTX 3090")),
        ("A100x8", (8, "A100")),
        ("H100:8", (8, "H100")),
        *((name, None) for name in ("RTX 3090", "MI300X", "MI250X 128GB", "p4d.24xlarge", "TPU v5e-8", "ND H100 v5")),
    ],
)
def test_numbers_beside_devices(text: str, counted: tuple[int, str] | None) -> None:
    assert count_and_device(text) == counted


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("Llama 3.1 405B", "llama-3.1-405b"),
        ("Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("GPT-J 6B", "gpt-j-6b"),
        ("gpt2-xl", "gpt2-xl"),
        ("DeepSeek-V3-0324", "deepseek-v3"),
        *(
            (name, None)
            for name in (
                "gpt-3-13",
                "bloom-560",
                "gpt-4",
                "bloom-560m",
                "bert-tiny",
                "DeepSeek-V2-Lite",
                "gemma-3-4b",
                "resnet50",
            )
        ),
        ("deepseek-r1-distill-qwen-7b", None),
    ],
)
def test_published_models_are_known_by_name_and_no_other_is(name: str, model: str | None) -> None:
    known = known_model(name)
    assert (known and known.name) == model


def test_formats_and_frameworks() -> None:
    formats = ("bfloat16", "float16", "bf16", "torch.bfloat16", "16-mixed")
    assert [read_format(each) for each in formats] == ["bf16", "fp16", "bf16", "bf16", "fp16"]
    frameworks = ("FSDP2", "Hugging Face Transformers", "Accelerate + DeepSpeed", "Megatron-LM")
    assert [read_framework(each) for each in frameworks] == ["pytorch", "pytorch", "deepspeed", "Megatron-LM"]


@pytest.mark.parametrize(
    ("stated", "meant"),
    [
        ({"device": "8xH100", "devices": 16}, {"device": "H100", "devices": 16, "devices_per_node": 8}),
        (
            {"device": "8xH100", "nodes": 2, "devices_per_node": 4},
            {"device": "H100", "nodes": 2, "devices_per_node": 4},
        ),
        ({"device": "16xH100", "devices": 16}, {"device": "H100", "devices": 16}),
        ({"device": "H100-80GB", "devices": "8xH100"}, {"device": "H100-80GB", "devices": 8}),
        ({"framework": "fsdp", "zero_stage": None}, {"framework": "pytorch", "zero_stage": 3}),
        ({"model": "01-ai/Yi-34B"}, {"model": {"name": "01-ai/Yi-34B"}}),
    ],
)
def test_shorthand_means_one_thing(stated: dict[str, object], meant: dict[str, object]) -> None:
    assert PredictQuestion.model_validate(stated).model_dump(exclude_none=True, exclude_defaults=True) == meant


def test_a_plan_takes_the_devices_of_a_node_beside_their_name() -> None:
    assert PlanQuestion.model_validate({"device": "8xH100", "nodes": 2}).devices_per_node == 8


@pytest.mark.parametrize(
    "stated",
    [
        {"device": "H100", "devices": "8xA100"},
        {"device": "8xH100", "nodes": 2, "devices_per_node": 2},
        *({"device": f"{count}xH100", "devices": 4} for count in (0, 8)),
        {"deadline_h": "30m"},
        *({name: True} for name in ("nodes", "micro_batch", "tokens", "zero_stage", "frozen_weights", "deadline_h")),
    ],
)
def test_what_contradicts_or_is_no_number_is_refused(stated: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as refused:
        PredictQuestion.model_validate(stated)
    assert re.match(r"Wrong arguments?.*(contradicts|number)", explain_arguments(refused.value))
