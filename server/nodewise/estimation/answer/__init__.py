"""From a question to its answer: what is left open, intervals, objectives, mixtures, warnings."""
