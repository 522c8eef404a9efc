"""Traces of several ranks brought together: one clock, and which collectives are one."""
