"""Diagnoses: where the time of recorded steps goes, and what would shorten them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise.domain.replay import Change, EdgeCounts, ReplayedCollective, Timeline

__all__ = ["Bottleneck", "Diagnosis", "DiagnosisQuestion", "RankShares", "StepPart", "Straggler", "Strategy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisQuestion:
    """Options of a diagnosis.

    Attributes
    ----------
    steps : tuple of int
        Ordinals of the steps, from 1; empty = all but the first and the last where there are more than three.
    bottlenecks, strategies : int
        Most of each in the answer.
    largest_batch_factor : float
        Largest factor of the batch per worker where recomputation frees memory; 1 = no growth.
    timeline : bool
        Whether the answer includes the replayed events.
    """

    steps: tuple[int, ...] = ()
    bottlenecks: int = 20
    strategies: int = 20
    largest_batch_factor: float = 1.0
    timeline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """A part of a step that costs time.

    ``seconds`` is its time in a step; ``gain_if_removed_s`` how much shorter the replayed step is without it.
    ``rank`` -1 = all. ``matters`` is False where the gain is within the variation between steps.
    """

    kind: str
    what: str
    rank: int
    seconds: float
    gain_if_removed_s: float
    matters: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """Ranks that the others wait for at one exchange of the step.

    ``ranks`` lists all that arrived within the clock's uncertainty of the last: a tie where there are several.
    ``imposed_wait_s`` is the sum of the others' waits.
    """

    collective: str
    ranks: tuple[int, ...]
    margin_s: float
    imposed_wait_s: float
    transfer_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A change, or several together, and the step time that its replay predicts.

    ``lower_step_s`` and ``upper_step_s`` hold the step with the stated coverage; ``rests_on`` names the source of the
    numbers; ``speedup`` is per sample. ``acts_on`` are the parts that it makes shorter, each a kind, or kind and what
    with ``": "`` between; none = any.
    """

    name: str
    predicted_step_s: float
    speedup: float
    lower_step_s: float = 0.0
    upper_step_s: float = 0.0
    parts: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    rests_on: str = ""
    effort: str = ""
    acts_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """A part of a rank's mean step. The parts add up to the step.

    Attributes
    ----------
    kind : str
        ``computation``, ``transfer`` and ``waiting`` (in exchanges, hidden by nothing), ``loading``; where the device
        waits for its host: ``startup``, ``synchronisation``, ``blocking_copy``, ``allocation``, ``host_computation``,
        ``preprocessing``, ``garbage_collection``, ``python``, ``launch``, ``unexplained``; and ``dependency``.
    what : str
        The kind of kernels, the exchange, the call that blocks, the function.
    waits_for_rank : int
        Of waiting: the rank that comes last; -1 = several, or not known.
    """

    kind: str
    what: str
    seconds: float
    waits_for_rank: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RankShares:
    """Where one rank's mean step goes, seconds; device shares are 0 where nothing runs on a device.

    A step lasts from the end of the one before, else from its mark, until its host and all work that it gave its
    devices are done. ``parts`` divide it, the longest first. ``step_ordinals`` are the steps that the mean is of, with
    their begins, ns since the first of all ranks' began, and their lengths.
    """

    rank: int
    step_s: float
    compute_s: float
    communication_s: float
    exposed_communication_s: float
    waiting_s: float
    idle_s: float
    host_bound_s: float
    data_loading_s: float = 0.0
    memory_high_water_bytes: int = -1
    parts: tuple[StepPart, ...] = ()
    step_ordinals: tuple[int, ...] = ()
    step_begin_ns: tuple[int, ...] = ()
    step_duration_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Diagnosis:
    """Where the time goes, largest gains first.

    Attributes
    ----------
    bound_by : str
        ``host``, ``device``, ``network``, ``skew`` (ranks wait for each other), ``loading``, or ``none``: nothing
        stands out, or the traces do not show it.
    step_s, persistence_s : float
        Mean step, and the mean absolute difference of a step from the mean of the others.
    exposed_communication_s : float
        Mean over ranks of transfer and waiting that no compute hides, per step.
    """

    bottlenecks: tuple[Bottleneck, ...]
    strategies: tuple[Strategy, ...]
    stragglers: tuple[Straggler, ...]
    bound_by: str
    verdict: str
    step_s: float
    persistence_s: float
    exposed_communication_s: float
    ranks: tuple[RankShares, ...] = ()
    collectives: tuple[ReplayedCollective, ...] = ()
    edges: Mapping[str, EdgeCounts] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    complete: bool = True
    timeline: Timeline | None = None
