"""Thin client of the Nodewise service."""
