"""From a question to its answer: predictions, mixtures, intervals, objectives, warnings."""
