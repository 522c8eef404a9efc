"""Assumptions where a job does not state them: its software by the year, recomputation by the free memory.

The stack of 2021, Megatron, stored attention scores, and so recomputed everything. Flash attention (T. Dao et al.,
NeurIPS 2022) came into Megatron-LM and PyTorch 2.0 early in 2023 and stores no scores: since then a layer's activations
grow with the tokens only, and are kept where they fit. Before, ZeRO ran under DeepSpeed; since then models with
replicas only run PyTorch's FSDP, and models that are split further, or train in fewer than 16 bits with Transformer
Engine, run Megatron-Core.

A job is assumed to be of that time if one of its facts is: its device (announced in 2022 or later, as none trained
before), its number format (before, 16 bits were fp16, the only such format of V100, and bf16 where Megatron split a
model), or its model (rows of more than 2,048 tokens, gates, fewer heads of keys and values than of queries).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Catalogue,
    Configurations,
    Floats,
    Ints,
    Notice,
    as_ints,
    catalogue_key,
    sum_columns,
)
from nodewise_laws.alternatives import DEVIATIONS
from nodewise_partitioning.hardware import DEFAULT_FORMAT, NARROW_BYTES, Device
from nodewise_partitioning.layout import FULL, NONE, UNSTATED, Layout
from nodewise_partitioning.memory import has_open_loss, needed_of_first_stage
from nodewise_partitioning.software import DEFAULT_FRAMEWORK, Software, is_known, stack_of
from nodewise_partitioning.workload import Dimensions

__all__ = [
    "MODERN_YEAR",
    "OPEN",
    "by_stack",
    "formats_of",
    "kinds_of",
    "settle_open_rows",
    "stack_name",
    "stack_names",
    "stack_notice",
]

MODERN_YEAR: Final = 2022
"""Devices announced in this year or later came into use with flash attention (H100: announced March 2022)."""
OLD_FORMATS: Final = frozenset({"fp16", "fp32", "tf32"})
OLD_SPLIT_FORMATS: Final = OLD_FORMATS | {"bf16"}
"""Of models that are split further by an unstated framework: Megatron-LM trained in bf16 in 2021, and BLOOM with it. An
unknown framework is neither Megatron nor DeepSpeed, the only ones that split models then."""
OLD_SEQUENCE: Final = 2048.0
"""Tokens of the longest rows of GPT-3, OPT and BLOOM."""

OLD: Final = ((DEFAULT_FRAMEWORK,) * 2 + ("megatron-deepspeed",) * 2) * 2
MODERN: Final = ("megatron-core flash-attention", "pytorch flash-attention") * 4
"""Stacks by the kind of rows (:func:`kinds_of`). Those with a ZeRO stage are never faster than those without, so that
bounds of a space hold for all stages."""

OF_TPU: Final = "maxtext flash-attention"
"""Programs for TPUs are compiled by XLA."""

ALONE, ZERO, GATHERED = 1, 2, 4
"""Bits of a row's kind: replicas only, a ZeRO stage, and ZeRO's third stage."""

OPEN: Final = ("recomputation", "sequence_parallel", "zero_stage", "narrow_states", "narrow_loss")
"""Columns of layouts that rows may leave open; the last two, which no fact states, follow from their memory
(``memory.settled_states``)."""

_FORMATS: Final = (
    (2024.0, (("bf16", 0.4), ("fp8", 0.35), ("fp4", 0.2), ("fp16", 0.05))),
    (2022.0, (("bf16", 0.6), ("fp8", 0.3), ("fp16", 0.1))),
    (2020.0, (("bf16", 0.5), ("fp16", 0.3), ("tf32", 0.15), ("fp32", 0.05))),
    (0.0, (("fp16", 0.6), ("fp32", 0.4), ("bf16", 0.4))),
)
"""Number formats that jobs train in, with weights, by the year of their device: bf16 came with Ampere, and TF32 is its
default for fp32; fp8 came with Hopper, fp4 with Blackwell. A device without a peak in a format does not train in it."""


@lru_cache(maxsize=512)
def formats_of(catalogue: Catalogue, device: str) -> tuple[str, Sequence[tuple[str, float]]]:
    """Number format assumed for a device where none is stated, and the other likely ones, with weights."""
    facts = catalogue.device(device) or {}
    of_year = next(formats for year, formats in _FORMATS if facts.get("announced_year", 0.0) >= year)
    there = [(name, weight) for name, weight in of_year if f"{name}_flops_per_s" in facts]
    if not there:
        return DEFAULT_FORMAT, ()
    total = sum(weight for _, weight in there)
    number_format = DEFAULT_FORMAT if any(name == DEFAULT_FORMAT for name, _ in there) else there[0][0]
    return number_format, [(name, weight / total) for name, weight in there if name != number_format]


def kinds_of(configurations: Configurations) -> Ints:
    """Kind of each row: replicas only, which nothing but ZeRO splits (1), a ZeRO stage (2), the third stage (4)."""
    alone = configurations.degree() * np.maximum(configurations.expert_parallel, 1) == 1
    stage = configurations.zero_stage
    return as_ints(ALONE * alone + ZERO * (stage > 0) + GATHERED * (stage >= 3))


def stack_name(framework: str, dimensions: Dimensions, device: Device, kind: int) -> str:
    """The declared framework, completed with assumptions for rows of a kind.

    Of a known framework only the attention kernel is open, which the device determines; a name may state
    "no-flash-attention". An unknown name keeps the switches that it states.
    """
    modern = any(_signs(framework, dimensions, device, alone=kind % ZERO == ALONE))
    if is_known(framework):
        return f"{framework} flash-attention" if modern and "flash" not in framework.casefold() else framework
    if catalogue_key(device.name).startswith("tpu"):
        return f"{OF_TPU} {framework}".rstrip()
    # An unknown framework is not one of Megatron's, whose kernels brought narrow formats.
    narrow = modern and device.number_format in NARROW_BYTES and not (framework and kind & GATHERED)
    return f"{(MODERN if modern else OLD)[0 if narrow else kind]} {framework}".rstrip()


def stack_names(framework: str) -> Iterable[str]:
    """All stacks that may be assumed for a declared framework."""
    if is_known(framework):
        return dict.fromkeys(
            (framework, framework if "flash" in framework.casefold() else f"{framework} flash-attention")
        )
    return dict.fromkeys(f"{name} {framework}".rstrip() for name in (*OLD, *MODERN, OF_TPU))


def by_stack(
    framework: str,
    dimensions: Dimensions,
    device: Device,
    rows: Ints,
    kinds: Ints,
    layout: Layout | None = None,
) -> Iterator[tuple[str, Ints]]:
    """Rows on a device by the stack that they are assumed to run.

    Parameters
    ----------
    kinds : int
        Result of :func:`kinds_of`.
    layout : Layout or None
        Layout of the model: rows that fit only with a ZeRO stage, which they do not state, are assumed to run the stack
        of that time. None = no row is.
    """
    kinds = kinds[rows]
    if layout is not None and not framework:
        whole = stack_name(framework, dimensions, device, 0)
        if whole != stack_name(framework, dimensions, device, ZERO):
            stack, _ = stack_of(whole, device.number_format)
            kinds = kinds | ZERO * _without_room(layout.take(rows), dimensions, device, stack)
    of_name: dict[str, list[int]] = {}
    for kind in sorted(set(kinds.tolist())):
        of_name.setdefault(stack_name(framework, dimensions, device, kind), []).append(kind)
    for name, own in of_name.items():
        yield name, rows if len(of_name) == 1 else as_ints(rows[np.isin(kinds, own)])


def stack_notice(framework: str, dimensions: Dimensions, device: Device, name: str) -> Notice | None:
    """The assumption about the software and its reason; None where the job states all of it."""
    if name == framework:
        return None
    if name.startswith(OF_TPU):
        return Notice(
            "STACK_ASSUMED", f"the software stack is not stated: {name!r} is assumed, as {device.name} is a TPU"
        )
    modern = is_known(framework) or name.startswith(MODERN)
    signs = _signs(framework, dimensions, device, alone=True) if modern else ()
    why = next(iter(signs), f"nothing shows that {device.name} runs later software")
    open_part = "its attention kernel is" if is_known(framework) else "the software stack is"
    return Notice("STACK_ASSUMED", f"{open_part} not stated: {name!r} is assumed, as {why}")


def _signs(framework: str, dimensions: Dimensions, device: Device, *, alone: bool) -> Iterator[str]:
    """Signs that rows, of replicas only or not, are of 2023 or later."""
    if device.announced_year >= MODERN_YEAR:
        yield f"{device.name} was announced in {device.announced_year:.0f}"
    if is_known(framework):
        return
    if device.number_format not in (OLD_FORMATS if alone or framework else OLD_SPLIT_FORMATS):
        yield f"it trains in {device.number_format}"
    if dimensions.sequence > OLD_SEQUENCE:
        yield f"its rows have {dimensions.sequence:.0f} tokens"
    if dimensions.key_value_heads < dimensions.heads:
        yield "queries share keys and values"
    if dimensions.is_gated:
        yield "its feed-forward layers are gated"


def settle_open_rows(
    layout: Layout,
    dimensions: Dimensions,
    device: Device,
    software: Software,
    *,
    declared: str,
    preferred: float = 0.0,
    ran: bool = False,
) -> Layout:
    """Rows with all open settings assumed: the least recomputation that fits with flash attention, else full.

    Selective recomputation, of attention scores only, is not possible where these are not stored. Where no stack is
    stated, and a row has neither sequence parallelism nor a ZeRO stage and does not fit so, the least of these that
    makes it fit is assumed. 16-bit losses come before recomputation where the format of logits is unknown; 16-bit
    gradients, and weights in the format of products, come last. Sequence parallelism (V. Korthikanti et al., May 2022)
    is as new as flash attention, and assumed only with it. The ``preferred`` way, of the job's runs, is tried first (0
    = none); for rows that ``ran`` so, it fits if it does within the uncertainty of bytes.
    """
    unsaid = layout.recomputation == UNSTATED
    if not unsaid.any():
        return layout
    ways: Sequence[float] = (NONE, FULL) if software.flash_attention else (FULL,)
    if preferred:
        ways = tuple(dict.fromkeys((preferred, FULL)))
    doubt = float(np.exp(DEVIATIONS * software.memory_log_spread)) if ran else 1.0
    available_bytes = [device.memory_bytes * (doubt if way == preferred else 1.0) for way in ways]
    narrow_loss = has_open_loss(dimensions, software)
    rows = np.flatnonzero(unsaid)
    columns = {name: getattr(layout, name).copy() for name in OPEN}
    columns["recomputation"][rows] = ways[0]
    first = layout.take(rows) if len(rows) < len(layout) else layout
    first = replace(first, recomputation=columns["recomputation"][rows])
    smallest = replace(first, narrow_loss=np.ones(len(first))) if narrow_loss else first
    lacking = np.flatnonzero(_needs(smallest, dimensions, device, software) > available_bytes[0])
    if len(lacking):
        own = first.take(lacking)
        splits = (own,) if declared else _splits(own, dimensions, sequences=software.flash_attention)
        tries = [replace(split, recomputation=np.full(len(own), way)) for way in ways for split in splits]
        usual, available_bytes = len(tries), [each for each in available_bytes for _ in splits]
        if software.reduces_in_place and dimensions.training.master_weights is None:
            # Rows that do not fit otherwise keep gradients, and weights in narrower formats, as these are computed
            # with.
            full, ones = np.full(len(own), FULL), np.ones(len(own))
            tries.append(replace(own, recomputation=full, narrow_states=ones))
            available_bytes.append(device.memory_bytes)
        trials = Layout.concatenate(tries)
        smallest = trials
        if narrow_loss:
            losses = trials.narrow_loss.copy()
            losses[: usual * len(own)] = 1.0
            smallest = replace(trials, narrow_loss=losses)
        needed = _needs(smallest, dimensions, device, software).reshape(len(tries), -1)
        fits = needed <= np.array(available_bytes)[:, np.newaxis]
        # A row that fits nowhere is answered by the way that exceeds memory least.
        best = np.where(fits.any(axis=0), fits.argmax(axis=0), needed[:usual].argmin(axis=0))
        for name, column in columns.items():
            column[rows[lacking]] = getattr(trials, name).reshape(len(tries), -1)[best, np.arange(len(own))]
    return replace(layout, **columns)


def _without_room(layout: Layout, dimensions: Dimensions, device: Device, software: Software) -> NDArray[np.bool_]:
    """Rows that leave recomputation open, state no ZeRO stage, and do not fit without even with full recomputation."""
    is_short = (layout.recomputation == UNSTATED) & (layout.zero_stage == 0.0)
    is_short &= layout.data * layout.context > 1.0
    if is_short.any():
        recomputed = replace(layout, recomputation=np.full(len(layout), FULL))
        is_short &= _needs(recomputed, dimensions, device, software) > device.memory_bytes
    return np.asarray(is_short)


def _splits(layout: Layout, dimensions: Dimensions, *, sequences: bool) -> tuple[Layout, ...]:
    """As it is; with sequence parallelism; also with the optimizer's states split; with parameters as well."""
    blank = (layout.sequence_parallel == 0.0) & (layout.zero_stage == 0.0)
    even = blank & (layout.tensor > 1.0) & (np.mod(dimensions.sequence, layout.tensor) == 0.0)
    sequence = replace(layout, sequence_parallel=np.where(even & sequences, 1.0, layout.sequence_parallel))
    states = replace(sequence, zero_stage=np.where(blank, 1.0, layout.zero_stage))
    whole = replace(states, zero_stage=np.where(blank & (layout.pipeline == 1.0), 3.0, states.zero_stage))
    return layout, sequence, states, whole


def _needs(layout: Layout, dimensions: Dimensions, device: Device, software: Software) -> Floats:
    return sum_columns(needed_of_first_stage(dimensions, layout, device, software).terms.values())
