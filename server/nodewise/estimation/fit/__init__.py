"""Fit models, cache them, and check that they reproduce the evidence they were fitted to."""
