"""Scheduling policies that turn throughput curves into allocations."""
