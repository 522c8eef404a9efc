"""Recorded steps executed again, with their own durations or others."""
