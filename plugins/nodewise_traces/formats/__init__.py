"""Formats: one reader each, and what is theirs alone."""
