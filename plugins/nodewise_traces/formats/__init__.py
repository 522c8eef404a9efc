"""Formats: one reader each, with the parts that only this format needs."""
