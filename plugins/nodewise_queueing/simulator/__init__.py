"""Simulation of parameter-server training from event to event, where no formula reaches.

Laws of any shape, first come first served, shards on several servers, barriers with backup workers, and hidden
transfers. The loops are compiled: a few million events per second.
"""

from nodewise_queueing.simulator.laws import Law, LawKind
from nodewise_queueing.simulator.result import SimulationResult
from nodewise_queueing.simulator.run import simulate
from nodewise_queueing.simulator.specification import Discipline, Link, SimulationSpec

__all__ = ["Discipline", "Law", "LawKind", "Link", "SimulationResult", "SimulationSpec", "simulate"]
