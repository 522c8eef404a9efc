"""What is known of one job besides the question: its dimensions, and a software stack that runs corrected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodewise.plugin import Catalogue, Network
from nodewise_partitioning.evidence import Levels
from nodewise_partitioning.hardware import DEFAULT_FORMAT, Device
from nodewise_partitioning.software import Software, stack_of
from nodewise_partitioning.workload import Dimensions

__all__ = ["Knowledge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What is known of a job besides the question.

    Attributes
    ----------
    numbers : mapping of framework to tuple of float
        Values of ``software.FIELDS`` by the framework with what it leaves open (``unsaid.stack_name``); of others the
        stack's own hold.
    levels : Levels
        Factor on every step that runs ask for beyond what the stack's numbers explain, and deviation of ln(step time).
    switches : str
        What the job says of its software beside the framework's name, in the words that names may hold.
    memory_level, memory_log_spread : float
        Factor on what a device cannot do without, and deviation of ln(bytes held); None = the stack's own.
    memory_measured : bool
        Bytes of some run are known: what the job leaves unsaid is in that factor.
    """

    dimensions: Dimensions
    network: Network
    catalogue: Catalogue
    framework: str
    number_format: str
    numbers: Mapping[str, tuple[float, ...]]
    levels: Levels
    switches: str = ""
    memory_level: float = 1.0
    memory_log_spread: float | None = None
    memory_measured: bool = False

    def software(self, name: str, device: Device) -> Software:
        """The corrected stack of a name on a device in its number format."""
        stack, _ = stack_of(f"{name}{self.switches}", device.number_format)
        numbers = self.numbers.get(name)
        corrected = stack if numbers is None else stack.corrected(numbers)
        spread = corrected.memory_log_spread if self.memory_log_spread is None else self.memory_log_spread
        return replace(corrected, memory_level=self.memory_level, memory_log_spread=spread)

    @property
    def zero_bubble(self) -> bool:
        """Whether the declared framework's schedule fills the bubbles of pipelines."""
        return stack_of(f"{self.framework}{self.switches}", DEFAULT_FORMAT)[0].zero_bubble
