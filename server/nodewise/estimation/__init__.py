"""From a profile and a question to an answer: registry, choice, models, intervals, objectives."""
