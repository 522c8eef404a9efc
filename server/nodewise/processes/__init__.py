"""Processes of this machine that work for this one: start, watch, limit, stop, and when to start one again."""
