"""Predictions by replay for configurations that were not recorded."""
