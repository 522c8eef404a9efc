"""Asking one estimator alone, whatever else is loaded: for trials, of which there are many."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.prediction import predicted
from nodewise.estimation.estimators.estimators import Estimators
from nodewise.estimation.fit.models import Models
from nodewise.estimation.lessons.lessons import Lessons
from nodewise.estimation.lessons.trials import Predict
from nodewise.estimation.question import Question, Terms
from nodewise.estimation.resolution import Resolution

__all__ = ["Alone"]


@dataclass(frozen=True, slots=True, eq=False)
class Alone:
    """Estimators one by one; nothing of what they fit is kept."""

    estimators: Estimators
    models: Models
    resolution: Resolution

    def asking(self, name: str, lessons: Lessons) -> Predict:
        """A way of asking an estimator about a profile; of an answer trials take what is predicted, no more is made."""
        terms = Terms(estimator=name)

        def predict(profile: Profile, configurations: Configurations) -> Predictions:
            rows = self.resolution.of(profile, configurations)
            assessment = self.estimators.assessed(name, profile, rows, terms.options)
            if assessment.refusal is not None:
                raise NodewiseError.refused(assessment.refusal)
            fitted = self.models.tried(profile, name, terms.options.seed, lessons)
            question = Question(profile=profile, configurations=configurations, terms=terms)
            return predicted(self.estimators, fitted, rows, question)

        return predict
