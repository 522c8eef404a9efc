"""Runs of a job determine facts that it does not state, for the whole job.

An unstated fact has likely values (``hypotheses``), each with a weight. Runs of the job change these weights: by how
well each value explains the level of their steps and memory, under the equations' own deviations, and of several runs
also how they differ. A value that is clearly more likely than all others together is assumed for every row of the job;
the weights of the others widen its interval. Facts are determined one after the other, each with the others as assumed,
until none changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import Observations, as_ints
from nodewise_partitioning.hypotheses import likely_values
from nodewise_partitioning.knowledge import Beliefs, Knowledge
from nodewise_partitioning.model import PartitioningModel

__all__ = ["settled_by_runs"]

MOST_RUNS: Final = 8
"""Most runs that determine a fact: more of them agree."""
MAJORITY: Final = 0.6
"""Weight from which a value is assumed: clearly more likely than the others together. Below, the usual value stays, and
all values are in the interval: one odd run says little about a job that states hardly any fact (a judgement)."""
ROUNDS: Final = 2
"""Most passes over all facts."""


def settled_by_runs(knowledge: Knowledge, observed: Observations) -> Knowledge:
    """The same knowledge with the most likely values of unstated facts, and the probability of each value.

    Parameters
    ----------
    knowledge : Knowledge
        From facts only: the numbers that the same runs corrected explain these under any value.
    """
    ran = np.flatnonzero(observed.steps_per_s > 0.0)[:MOST_RUNS]
    if not len(ran):
        return knowledge
    runs = observed.take(as_ints(ran))
    for _ in range(ROUNDS):
        before = knowledge
        for fact, values in likely_values(knowledge, runs.configurations).items():
            knowledge = _settle(knowledge, fact, values, runs)
        if knowledge.assumptions == before.assumptions:
            break
    return knowledge


def _settle(knowledge: Knowledge, fact: str, values: Beliefs, runs: Observations) -> Knowledge:
    """The same knowledge with one fact's value, and the probabilities of its values."""
    knowledge_by_value = {value: knowledge.believing(fact, value, {}) for value in values}
    logs = np.array([PartitioningModel(each).log_likelihood(runs) for each in knowledge_by_value.values()])
    if not np.isfinite(logs).any():
        return knowledge
    weights = np.array(list(values.values())) * np.exp(logs - logs.max())
    weights = weights / weights.sum()
    beliefs: Beliefs = dict(zip(knowledge_by_value, weights.tolist(), strict=True))
    if weights.max() <= MAJORITY:
        return replace(knowledge, beliefs={**knowledge.beliefs, fact: beliefs})
    return knowledge.believing(fact, list(knowledge_by_value)[int(weights.argmax())], beliefs)
