"""Facts of one job besides the question: its dimensions, and a software stack that runs corrected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from nodewise.plugin import Catalogue, Network
from nodewise_partitioning.evidence import Levels
from nodewise_partitioning.hardware import DEFAULT_FORMAT, Device
from nodewise_partitioning.software import Software, stack_of
from nodewise_partitioning.workload import Dimensions

__all__ = ["Beliefs", "Knowledge", "Value"]

Value = str | float
Beliefs = Mapping[Value, float]
"""Values of a fact that is not stated, with weights that add up to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Facts of a job besides the question.

    Attributes
    ----------
    numbers : mapping of framework to tuple of float
        Values of ``software.FIELDS`` by the framework completed with assumptions (``unsaid.stack_name``); others have
        their stack's own values.
    levels : Levels
        Factor on every step by runs, beyond the stack's numbers, and deviation of ln(step time).
    switches : str
        The job's facts about its software beside the framework's name, in the words that names may contain.
    memory_level, memory_log_spread : float
        Factor on the memory that a device needs, and deviation of ln(bytes held); None = the stack's own.
    memory_measured : bool
        Bytes of some run are known: that factor includes the effect of unstated facts.
    recomputation : int
        For rows that do not state it, where it fits; 0 = the least that fits.
    ran : bool
        Rows are measured runs.
    assumptions : mapping of str to a value
        Facts that the job does not state and its runs have determined.
    beliefs : mapping of str to Beliefs
        Probabilities of the values of these.
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
    recomputation: int = 0
    ran: bool = False
    assumptions: Mapping[str, Value] = field(default_factory=dict)
    beliefs: Mapping[str, Beliefs] = field(default_factory=dict)

    def believing(self, fact: str, value: Value, beliefs: Beliefs) -> Knowledge:
        """The same knowledge with a value of a fact that no row states, and the probabilities of its values."""
        knowledge = replace(
            self, assumptions={**self.assumptions, fact: value}, beliefs={**self.beliefs, fact: beliefs}
        )
        if fact == "precision":
            return replace(knowledge, number_format=str(value))
        if fact == "link_bytes_per_s":
            return replace(knowledge, network=replace(self.network, link_bytes_per_s=float(value)))
        if fact == "recompute":
            return replace(knowledge, recomputation=int(value))
        return replace(knowledge, framework=str(value))

    def weights(self, fact: str, prior: Iterable[tuple[Value, float]]) -> Beliefs:
        """Probabilities of the other values of a fact: by runs, else as before any run."""
        all_weights = self.beliefs.get(fact) or dict(prior)
        return {value: weight for value, weight in all_weights.items() if value != self.assumptions.get(fact)}

    def software(self, name: str, device: Device) -> Software:
        """The corrected stack of a name on a device in its number format."""
        numbers = self.numbers.get(name)
        switched = f"{name}{self.switches}"
        return _correct(switched, device.number_format, numbers, self.memory_level, self.memory_log_spread)

    @property
    def zero_bubble(self) -> bool:
        """Whether the declared framework's schedule fills the bubbles of pipelines."""
        return stack_of(f"{self.framework}{self.switches}", DEFAULT_FORMAT)[0].zero_bubble


@lru_cache(maxsize=256)
def _correct(
    name: str, number_format: str, numbers: tuple[float, ...] | None, memory_level: float, log_spread: float | None
) -> Software:
    """A stack with corrections of its numbers and of memory by runs."""
    stack, _ = stack_of(name, number_format)
    corrected = stack if numbers is None else stack.with_numbers(numbers)
    spread = corrected.memory_log_spread if log_spread is None else log_spread
    return replace(corrected, memory_level=memory_level, memory_log_spread=spread)
