"""Lessons from a store of profiles: priors, trials on runs held back, and calibration of estimators."""
