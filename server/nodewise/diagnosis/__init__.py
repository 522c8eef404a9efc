"""Diagnosis: recorded steps executed again, what bounds them, and what would shorten them."""
