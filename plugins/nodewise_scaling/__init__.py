"""Step times from observations: compute and gradient exchange with a learned prior."""
