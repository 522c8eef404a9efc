"""What a configuration runs on: a device in a number format, its link inside a node, and a node's adapters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from nodewise.plugin import Catalogue, KernelEfficiency, Refusal, catalogue_key
from nodewise_partitioning.measurements import NOTHING_MEASURED, AllReduces, Gains, all_reduces_of, gains_of

__all__ = ["ASSUMED_NODE_LINK_BYTES_PER_S", "DEFAULT_FORMAT", "Device", "device_of", "node_link_of"]

DEFAULT_FORMAT: Final = "fp16"

FORMATS: Final = {"fp16": 2.0, "bf16": 2.0, "tf32": 4.0, "fp32": 4.0, "fp8": 2.0, "fp4": 2.0}
"""Bytes of an activation by the number format of matrix products; fp8 and fp4 keep 16-bit activations."""

SAME_FORMATS: Final = {"nvfp4": "fp4", "mxfp4": "fp4", "mxfp8": "fp8"}
"""Formats with scales for small blocks: peaks are those of the format."""

NARROW_BYTES: Final = {"fp8": 1.0, "fp4": 0.5 + 1.0 / 16.0}
"""Of an input of a product that is kept for the gradient of its weights: NVFP4 has a scale of 8 bits for 16 values
(NVIDIA, "Pretraining large language models with NVFP4", 2025)."""

ASSUMED_NODE_LINK_BYTES_PER_S: Final = 100e9
"""Adapters of a node whose link is not stated, of a device that is in no machine of the catalogue: four InfiniBand
HDR ports."""


REFERENCE_ATTENTION_SHARE: Final = 0.54
"""Of A100-80GB's kernels of attention, heads of 128, in the catalogue's table of kernels."""

LIKELY_SHARE: Final = 0.25
"""Of the boards of a name from which one of another size may be what it means."""

_AFTER_AMPERE: Final = ("h100", "h200", "h800", "h20", "gh200", "b100", "b200", "b300", "gb200", "gb300")
"""Hopper and Blackwell of data centres; Ada and the Blackwell of workstations have Ampere's instructions."""


_WITH_GRACE: Final = ("gh200", "gb200", "gb300")
_HOST_LINKS: Final = ((2022.0, "PCIe5"), (2020.0, "PCIe4"), (0.0, "PCIe3"))
"""Of devices by the year that they were announced in: A100 was among the first with PCIe 4, H100 with PCIe 5."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Device:
    """Facts of an accelerator in one number format.

    A name that boards of several sizes of memory share (A100: 40 and 80 GB) is taken as the largest of them;
    ``named_memory_bytes`` is that of the entry of the very name. ``all_reduces`` are the catalogue's tables of the
    device, fewest ranks first, none where it has none; ``gains`` what its tables say of named numbers.
    ``half_flops_per_s`` is the peak of 16-bit products, in which attention is computed where others are in a narrower
    format; ``plain_flops_per_s`` that without matrix units, which take rows of 16 bytes alone. ``after_ampere`` are
    those whose matrix units take operands from shared memory by themselves, as kernels for Ampere do not know.
    ``announced_year`` is 0 where the catalogue does not tell. ``host_link_bytes_per_s`` is that of PCI Express of then
    in one direction, Grace's own where that is the host. The link inside a node goes on to at most ``domain_nodes``
    nodes, of ``domain_devices`` devices at most; 1 = it ends at the node.
    """

    name: str
    number_format: str
    flops_per_s: float
    memory_bytes_per_s: float
    memory_bytes: float
    named_memory_bytes: float
    link_bytes_per_s: float
    element_bytes: float
    half_flops_per_s: float
    plain_flops_per_s: float
    after_ampere: bool
    all_reduces: tuple[AllReduces, ...] = ()
    gains: Gains = NOTHING_MEASURED
    announced_year: float = 0.0
    host_link_bytes_per_s: float = 31.5e9
    attention: KernelEfficiency | None = None
    domain_devices: float = 1.0
    domain_nodes: float = 1.0

    def attention_gain(self, head_size: float) -> float:
        """Share of the peak that attention's kernels reach at a head size, by A100's; 1 where no table tells."""
        kernels = self.attention
        if kernels is None or not kernels.head_sizes:
            return 1.0
        share = float(np.interp(head_size, kernels.head_sizes, kernels.attention_shares))
        return share / REFERENCE_ATTENTION_SHARE

    @property
    def narrow_bytes(self) -> float:
        """Of an input of a matrix product."""
        return NARROW_BYTES.get(self.number_format, self.element_bytes)


@lru_cache(maxsize=512)
def device_of(catalogue: Catalogue, name: str, number_format: str) -> Device | Refusal:
    """A device's facts, or what is missing of them."""
    number_format = SAME_FORMATS.get(number_format, number_format)
    if number_format not in FORMATS:
        formats = ", ".join(FORMATS)
        return Refusal.unsupported(f"precision must be one of {formats}, found {number_format!r}")
    machine = catalogue.named_machine(name)
    name = machine.device if machine else name
    facts = catalogue.device(name) if name else None
    if facts is None:
        what = f"the catalogue knows no device {name!r}" if name else "the device is not stated"
        return Refusal.missing(f"{what}: its peak, memory and link must be known", "device")
    peak = f"{number_format}_flops_per_s"
    missing = [fact for fact in (peak, "intra_node_link_bytes_per_s", "memory_bytes") if fact not in facts]
    if missing:
        return Refusal.missing(
            (f"the catalogue's entry of {name!r} lacks {missing[0]}: add it to the catalogue"), *tuple(missing)
        )
    board = _largest(catalogue, name, facts)
    all_reduces = catalogue.all_reduces.get(catalogue_key(name), {})
    products = catalogue.matrix_products.get(catalogue_key(name), {}).get(number_format)
    kernels = catalogue.efficiencies.get(catalogue_key(name), {})
    node = facts.get("devices_per_node", 1.0)
    return Device(
        name=name,
        number_format=number_format,
        flops_per_s=facts[peak],
        memory_bytes_per_s=board["memory_bytes_per_s"],
        memory_bytes=board["memory_bytes"],
        named_memory_bytes=facts["memory_bytes"],
        link_bytes_per_s=facts["intra_node_link_bytes_per_s"],
        element_bytes=FORMATS[number_format],
        half_flops_per_s=min(facts[peak], facts.get("bf16_flops_per_s", facts.get("fp16_flops_per_s", facts[peak]))),
        plain_flops_per_s=min(facts[peak], facts.get("fp32_flops_per_s", facts[peak])),
        after_ampere=catalogue_key(name).startswith(_AFTER_AMPERE),
        all_reduces=all_reduces_of(all_reduces),
        gains=gains_of(
            all_reduces,
            products,
            facts[peak],
            facts["intra_node_link_bytes_per_s"],
            # Inference's fp8 kernels hold the cast of activations, which training fuses into the kernels before.
            kernels.get("bf16") if FORMATS[number_format] == 2.0 else None,
        ),
        announced_year=facts.get("announced_year", 0.0),
        attention=kernels.get("bf16"),
        host_link_bytes_per_s=_host_link(catalogue, name, facts.get("announced_year", 0.0)),
        domain_devices=catalogue.link_domain_devices(name, node),
        domain_nodes=catalogue.link_domain_devices(name, node) / node,
    )


@lru_cache(maxsize=512)
def node_link_of(catalogue: Catalogue, name: str) -> tuple[float, str]:
    """The bandwidth assumed for a node's adapters together, where it is not stated; and the reason, in words.

    The weighted median of the links of machines with such devices: as likely too much as too little.
    """
    links = catalogue.node_links(name)
    if not links:
        return ASSUMED_NODE_LINK_BYTES_PER_S, f"the catalogue has no machine with {name or 'such devices'}"
    ascending = sorted(links)
    place = int(np.searchsorted(np.cumsum([share for _, share, _ in ascending]), 0.5 - 1e-9))
    bytes_per_s, share, source = ascending[place]
    machines = ", ".join(part.partition(":")[0] for part in source.split("; "))
    others = ", ".join(f"{other / 1e9:g}" for other, _, _ in ascending if other != bytes_per_s)
    rest = f"; other machines have {others} GB/s" if others else ""
    return bytes_per_s, f"the median over machines with {name} ({machines}: {100.0 * share:.0f} % of such jobs{rest})"


def _host_link(catalogue: Catalogue, name: str, announced_year: float) -> float:
    by_year = next(link for year, link in _HOST_LINKS if announced_year >= year)
    link = "NVLink-C2C" if catalogue_key(name).startswith(_WITH_GRACE) else by_year
    return catalogue.links[catalogue_key(link)]["bytes_per_s"]


def _largest(catalogue: Catalogue, name: str, facts: Mapping[str, float]) -> Mapping[str, float]:
    """The board of most memory that the name may mean: the same peaks, its name with a size behind it."""
    key = catalogue_key(name)
    peaks = {fact: value for fact, value in facts.items() if fact.endswith("_flops_per_s")}
    boards = [
        other
        for alias, other in catalogue.devices.items()
        if alias.startswith(key)
        and other.get("share_of_name", 1.0) >= LIKELY_SHARE
        and _is_size(alias[len(key) :])
        and all(other.get(fact) == value for fact, value in peaks.items())
    ]
    return max([facts, *boards], key=lambda board: board["memory_bytes"])


def _is_size(suffix: str) -> bool:
    return suffix.endswith("gb") and suffix[:-2].isdigit()
