"""Choose the estimator of an answer: expected errors, and weights of a mixture."""
