"""What is known of devices and links, as an estimator meets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Catalogue", "CatalogueDevice", "CatalogueMachine", "KernelEfficiency", "MeasuredTable", "catalogue_key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Seconds that an operation was measured to take, by its size; ``sizes`` ascend. ``source`` says where from."""

    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEfficiency:
    """What single kernels of a device reach of its peak in one number format, measured without a job around them.

    Attributes
    ----------
    matrix_share : float
        Of large matrix products: work by time beyond what every product takes.
    head_sizes, attention_shares : tuple of float
        Share of the peak of flash attention's forward pass on long sequences, by head size, ascending; only the causal
        half is counted. Empty = nobody measured it.
    """

    matrix_share: float
    head_sizes: tuple[float, ...] = ()
    attention_shares: tuple[float, ...] = ()
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueDevice:
    """A device as the catalogue lists it: its names, its facts, its link and the document that all of this is from."""

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
        Keys of all names of the devices that it comes with.
    device : str
        What a job runs on that names the machine alone; "" = it comes with several.
    devices_per_node : float
        0 = of different sizes.
    node_link_bytes_per_s : float
        All adapters of a node together, in one direction.
    weight : float
        How likely a job on one of these devices runs on it, beside the other kinds with that device.
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

    Mappings are by ``catalogue_key`` of every name that an entry goes by; :meth:`device` and :meth:`link` take a name
    as anyone writes it. Names of facts carry units: ``fp16_flops_per_s``, ``memory_bytes_per_s``, ``bytes_per_s``.

    Attributes
    ----------
    listed : tuple of CatalogueDevice
        The devices, each once.
    all_reduces : mapping
        By device and ranks: all-reduces inside a node, sizes in bytes of the whole tensor.
    matrix_products : mapping
        By device and number format: sizes in FLOP.
    efficiencies : mapping
        By device and number format: what kernels reach of the peak.
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
        """By the digest: what follows from a catalogue may be kept by it."""
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
        """The machine whose name stands for its device; None = the name is that of a device, or of no such machine."""
        machine = self.machine(device)
        return machine if machine is not None and machine.device else None

    def node_links(self, device: str) -> tuple[tuple[float, float, str], ...]:
        """What a node's adapters are likely to be, together and in one direction, where nobody states them.

        Each is (bytes per second, share of such jobs, which machines these are and the documents that tell), most
        likely first; the shares add up to 1. Empty = no machine with this device is known.
        """
        of_link: dict[float, list[CatalogueMachine]] = {}
        named = self.named_machine(device)
        for machine in (named,) if named else self.machines_with.get(catalogue_key(device), ()):
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
        """Devices that the link inside a node joins, where so many of each node take part: those of one node at least.

        The link of some systems goes on from node to node (18 nodes of 4 GPUs in one NVLink domain of GB200 NVL72).
        With ranks in order of nodes, r and s are in one domain where ``r // domain == s // domain``.
        """
        facts = self.device(name) or {}
        whole = facts.get("link_domain_devices", 0.0)
        nodes = whole / facts.get("devices_per_node", devices_per_node)
        return max(devices_per_node, min(whole, devices_per_node * nodes))


@lru_cache(maxsize=1024)
def catalogue_key(name: str) -> str:
    """A name as the catalogue files it: letters and digits alone, without the vendor's name and regardless of case."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).removeprefix("nvidia")
