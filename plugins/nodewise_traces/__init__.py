"""Trace readers: what profilers write, read into columns."""
