"""What to measure next, by what it is expected to teach."""
