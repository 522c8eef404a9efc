"""Trace readers, the replay of recorded steps, and what it finds."""
