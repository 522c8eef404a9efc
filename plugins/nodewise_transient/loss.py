"""What the loss of a worker does to a job: to others, to unsaved work, to the chief's role, and to its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["ASYNCHRONOUS", "NO_BURST", "NO_CHIEF", "Burst", "ChiefLoss", "Reaction", "elastic", "synchronous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What a loss does to the workers that are left.

    Attributes
    ----------
    rolls_back : whether work since the last save is lost.
    waits_for_all : whether all workers stop until every worker is back.
    stall_on_loss_s, stall_on_join_s : seconds without progress after either; a further change starts them anew.
    """

    rolls_back: bool = False
    waits_for_all: bool = False
    stall_on_loss_s: float = 0.0
    stall_on_join_s: float = 0.0


ASYNCHRONOUS: Final = Reaction()
"""Workers do not wait for each other: a loss costs its share of the speed until it is replaced, and nothing else."""


def synchronous(restart_s: float) -> Reaction:
    """All-reduce and barriers with a fixed number of workers: stop, roll back, wait for the new one, restart."""
    return Reaction(rolls_back=True, waits_for_all=True, stall_on_join_s=restart_s)


def elastic(rendezvous_s: float, *, rolls_back: bool = False) -> Reaction:
    """Workers that are left go on after a rendezvous, and after another when one joins."""
    return Reaction(rolls_back=rolls_back, stall_on_loss_s=rendezvous_s, stall_on_join_s=rendezvous_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiefLoss:
    """Effect of the chief's loss: none of its own, failure, a rollback, or an election without one.

    Attributes
    ----------
    policy : `none`: a worker like any other; `fail`: the job dies; `rollback`: work since the last save is lost, and
        setting up takes ``setup_s``; `re-elect`: setting up alone.
    setup_s : seconds without progress.
    """

    policy: Literal["none", "fail", "rollback", "re-elect"] = "none"
    setup_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Losses that come together: with ``chance``, a loss takes up to ``others`` further workers of its group along.

    Each worker's law stays what was observed as long as there are neighbours to take it along: observed losses contain
    those of bursts, so a worker's own hazard is divided by 1 + chance x others.
    """

    chance: float = 0.0
    others: int = 0

    @property
    def thinning(self) -> float:
        """Losses per loss that a worker's own law brings about."""
        return 1.0 + self.chance * self.others


NO_CHIEF: Final = ChiefLoss()
NO_BURST: Final = Burst()
