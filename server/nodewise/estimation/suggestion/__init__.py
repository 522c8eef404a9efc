"""Suggestions of the next measurements, ranked by their expected information."""
