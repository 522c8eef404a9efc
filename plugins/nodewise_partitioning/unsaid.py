"""What a job is taken to run on where it does not say: its software by the year, recomputation by the room there is.

The stack of 2021, Megatron-DeepSpeed, stored attention's scores, and so recomputed everything. Flash attention (T. Dao
et al., NeurIPS 2022) came into Megatron-LM and PyTorch 2.0 early in 2023 and stores none: since then a layer's
activations grow with the tokens alone, and are kept where they fit. Megatron-Core of that time also exchanges gradients
during the backward pass, and models without dropout became the rule (LLaMA, MPT, both 2023).

A job is taken to be of that time where anything it says is: its device (announced in 2022 or later, as none trained
before), its number format (before, 16 bits were fp16, of which V100 has nothing else), or its model (rows of more
than 2,048 tokens, gates, fewer heads of keys and values than of queries).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Notice, Recomputation, added
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import needed_of_first_stage
from nodewise_partitioning.software import DEFAULT_FRAMEWORK, MODERN_FRAMEWORK, Software, is_known
from nodewise_partitioning.workload import Dimensions

__all__ = ["settled", "stack_name", "stack_names", "stack_notice"]

MODERN_YEAR: Final = 2022
"""Devices announced then or later came into use when flash attention was there (H100: announced March 2022)."""
OLD_FORMATS: Final = frozenset({"fp16", "fp32", "tf32"})
OLD_SEQUENCE: Final = 2048.0
"""Tokens of the longest rows of GPT-3, OPT and BLOOM."""

NONE, FULL = float(Recomputation.NONE), float(Recomputation.FULL)


def stack_name(framework: str, dimensions: Dimensions, device: Device) -> str:
    """The declared framework with what it leaves open.

    Of a known framework only the attention kernel is open, which the device alone tells; a name may say
    "no-flash-attention". An unknown name keeps what it says was switched.
    """
    return stack_names(framework)[any(_signs(framework, dimensions, device))]


def stack_notice(framework: str, dimensions: Dimensions, device: Device) -> Notice | None:
    """What was assumed and why; None where the job says all of it."""
    name = stack_name(framework, dimensions, device)
    if name == framework:
        return None
    why = next(
        filter(None, _signs(framework, dimensions, device)), f"nothing says that {device.name} runs later software"
    )
    open_part = "its attention kernel is" if is_known(framework) else "the software stack is"
    return Notice("STACK_ASSUMED", f"{open_part} not stated: taken as {name!r}, for {why}")


def _signs(framework: str, dimensions: Dimensions, device: Device) -> Iterator[str]:
    """What tells that a job is of 2023 or later; empty texts where it does not."""
    yield f"{device.name} was announced in {device.announced_year:.0f}" * (device.announced_year >= MODERN_YEAR)
    if not is_known(framework):
        yield f"it trains in {device.number_format}" * (device.number_format not in OLD_FORMATS)
        yield f"its rows have {dimensions.sequence:.0f} tokens" * (dimensions.sequence > OLD_SEQUENCE)
        yield "queries share keys and values" * (dimensions.key_value_heads < dimensions.heads)
        yield "its feed-forward layers are gated" * dimensions.gated


def stack_names(framework: str) -> tuple[str, str]:
    """What may be assumed of a declared framework, before and since 2023."""
    if not is_known(framework):
        return f"{DEFAULT_FRAMEWORK} {framework}".rstrip(), f"{MODERN_FRAMEWORK} {framework}".rstrip()
    return framework, framework if "flash" in framework.casefold() else f"{framework} flash-attention"


def settled(layout: Layout, dimensions: Dimensions, device: Device, software: Software) -> Layout:
    """Rows with an unsaid recomputation settled: the least that fits with flash attention, else full.

    Selective recomputation, of attention's scores alone, is no choice where these are not stored.
    """
    unsaid = layout.recomputation == Recomputation.UNSPECIFIED
    if not unsaid.any():
        return layout
    recomputation = np.where(unsaid, FULL, layout.recomputation)
    if software.flash_attention:
        kept = replace(layout, recomputation=np.where(unsaid, NONE, recomputation))
        fits = _needed(kept, dimensions, device, software) <= device.memory_bytes
        recomputation = np.where(unsaid & fits, NONE, recomputation)
    return replace(layout, recomputation=recomputation)


def _needed(layout: Layout, dimensions: Dimensions, device: Device, software: Software) -> Floats:
    return added(needed_of_first_stage(dimensions, layout, device, software)[0].values())
