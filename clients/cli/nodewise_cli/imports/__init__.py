"""Runs that other tools logged, as rows of a measurements table."""
