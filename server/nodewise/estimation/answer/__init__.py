"""Turn a question into its answer: predictions, mixtures, intervals, objectives and warnings."""
