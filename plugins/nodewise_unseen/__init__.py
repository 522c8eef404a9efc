"""Step times of models that never ran, from FLOPs, tensors, activations and family. Pure functions.

`learn_steps` learns from runs of one worker (`runs_of` finds them in profiles); its law predicts any number of
architectures on a device at once, says which of them it refuses, and `expected_kendall` how sure their order is.
"""

from nodewise_unseen.columns import Architectures, StepRuns
from nodewise_unseen.corpus import runs_of
from nodewise_unseen.ranking import expected_kendall, faster_probability
from nodewise_unseen.steps import PredictedSteps, Row, StepLaw, learn_steps

__all__ = [
    "Architectures",
    "PredictedSteps",
    "Row",
    "StepLaw",
    "StepRuns",
    "expected_kendall",
    "faster_probability",
    "learn_steps",
    "runs_of",
]
