"""How much a question may have simulated."""

from __future__ import annotations

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Options
from nodewise.domain.simulated_steps import counted_cycles

__all__ = ["check_simulated"]


def check_simulated(configurations: Configurations, options: Options, most: int) -> None:
    """Refuse a simulation of more cycles of single workers than a question may ask for.

    Parameters
    ----------
    configurations : Configurations
        As resolved: how many workers there are, and whether they wait for each other, says what a step takes.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED.
    """
    cycles = counted_cycles(configurations.sync_mode, configurations.workers, options.simulated_steps)
    found = int(cycles.sum())
    if found > most:
        row = int(cycles.argmax())
        text = (
            f"options.simulated_steps_count: {found} cycles of single workers would be simulated, {int(cycles[row])} "
            f"of them for row {row} of {int(configurations.workers[row])} workers; a question takes "
            f"simulated_cycles_per_question = {most}; ask for fewer steps, rows or workers, or for FIDELITY_MODEL"
        )
        limit = {"limit": "simulated_cycles_per_question", "value": str(most), "found": str(found)}
        raise NodewiseError(Reason.LIMIT_EXCEEDED, text, limit)
