"""Estimator plugin: closed queueing networks of workers, links and parameter servers."""
