"""Executing the graph again, with its own durations or others."""
