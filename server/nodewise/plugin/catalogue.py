"""Facts about devices and links, as estimators get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Catalogue", "CatalogueDevice", "CatalogueMachine", "KernelEfficiency", "MeasuredTable", "catalogue_key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Measured seconds of an operation, by its size; ``sizes`` ascend. ``source`` is the source of the measurements."""

    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEfficiency:
    """Shares of a device's peak that single kernels reach in one number format, measured without a job.

    Attributes
    ----------
    matrix_share : float
        Of large matrix products: work divided by time, without the constant time of every product.
    head_sizes, attention_shares : tuple of float
        Share of the peak of flash attention's forward pass on long sequences, by head size, ascending; only the causal
        half is counted. Empty = not measured.
    """

    matrix_share: float
    head_sizes: tuple[float, ...] = ()
    attention_shares: tuple[float, ...] = ()
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueDevice:
    """A device of the catalogue: its names, its facts, its link and the document that states them."""

    name: str
    aliases: tuple[str, ...]
    facts: Mapping[str, float]
    intra_node_link: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueMachine:
    """A kind of machine.

    Attributes
    ----------
    devices : tuple of str
        Keys of all names of its devices.
    device : str
        The device of a job that names the machine alone; "" = the machine comes with several devices.
    devices_per_node : float
        0 = nodes of different sizes.
    node_link_bytes_per_s : float
        All adapters of a node together, in one direction.
    weight : float
        Probability that a job on one of its devices runs on it, relative to the other kinds with that device.
    """

    name: str
    aliases: tuple[str, ...] = ()
    devices: tuple[str, ...]
    device: str = ""
    devices_per_node: float = 0.0
    node_link_bytes_per_s: float
    weight: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Facts about devices and links, with the digest of all of them. Empty = nothing is known.

    Keys of mappings are the ``catalogue_key`` of every name of an entry; :meth:`device` and :meth:`link` accept names
    in any spelling. Names of facts have units: ``fp16_flops_per_s``, ``memory_bytes_per_s``, ``bytes_per_s``.

    Attributes
    ----------
    listed : tuple of CatalogueDevice
        The devices, each once.
    all_reduces : mapping
        By device and ranks: all-reduces inside a node, sizes in bytes of the whole tensor.
    matrix_products : mapping
        By device and number format: sizes in FLOP.
    efficiencies : mapping
        By device and number format: shares of the peak that kernels reach.
    machines : mapping
        Kinds of machines, by the keys of their names.
    machines_with : mapping
        The same by device.
    """

    digest: str = ""
    devices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    listed: tuple[CatalogueDevice, ...] = ()
    all_reduces: Mapping[str, Mapping[int, MeasuredTable]] = field(default_factory=dict)
    matrix_products: Mapping[str, Mapping[str, MeasuredTable]] = field(default_factory=dict)
    efficiencies: Mapping[str, Mapping[str, KernelEfficiency]] = field(default_factory=dict)
    machines: Mapping[str, CatalogueMachine] = field(default_factory=dict)
    machines_with: Mapping[str, tuple[CatalogueMachine, ...]] = field(default_factory=dict)

    def __hash__(self) -> int:
        """By the digest, so that results that depend on a catalogue can be cached."""
        return hash(self.digest)

    def device(self, name: str) -> Mapping[str, float] | None:
        """Facts of an accelerator; None = not known."""
        return self.devices.get(catalogue_key(name))

    def link(self, name: str) -> Mapping[str, float] | None:
        """Facts of a link; None = not known."""
        return self.links.get(catalogue_key(name))

    def machine(self, name: str) -> CatalogueMachine | None:
        """A kind of machine by any of its names; None = not known."""
        return self.machines.get(catalogue_key(name))

    def named_machine(self, device: str) -> CatalogueMachine | None:
        """The machine of a name that stands for the machine's only device; None = the name is no such machine's."""
        machine = self.machine(device)
        return machine if machine is not None and machine.device else None

    def node_links(self, device: str) -> tuple[tuple[float, float, str], ...]:
        """Likely bandwidths of all adapters of a node, in one direction, for jobs that do not state theirs.

        Each is (bytes per second, share of such jobs, the machines and their documents), the most likely first; the
        shares sum to 1. Empty = no machine with this device is known.
        """
        of_link: dict[float, list[CatalogueMachine]] = {}
        named_machine = self.named_machine(device)
        for machine in (named_machine,) if named_machine else self.machines_with.get(catalogue_key(device), ()):
            of_link.setdefault(machine.node_link_bytes_per_s, []).append(machine)
        whole = sum(machine.weight for machines in of_link.values() for machine in machines)
        links = [
            (
                link,
                sum(machine.weight for machine in machines) / whole,
                "; ".join(f"{machine.name}: {machine.source}" for machine in machines),
            )
            for link, machines in of_link.items()
        ]
        return tuple(sorted(links, key=lambda each: (-each[1], -each[0])))

    def link_domain_devices(self, name: str, devices_per_node: float) -> float:
        """Devices in one domain of the link inside a node, for a job on so many devices per node; at least that many.

        The link of some systems joins several nodes (18 nodes of 4 GPUs in one NVLink domain of GB200 NVL72). With
        ranks in the order of nodes, r and s are in one domain where ``r // domain == s // domain``.
        """
        facts = self.device(name) or {}
        whole = facts.get("link_domain_devices", 0.0)
        nodes = whole / facts.get("devices_per_node", devices_per_node)
        return max(devices_per_node, min(whole, devices_per_node * nodes))


@lru_cache(maxsize=1024)
def catalogue_key(name: str) -> str:
    """The catalogue's key of a name: its letters and digits, case-folded and without the vendor's name."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).removeprefix("nvidia")
