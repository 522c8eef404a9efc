"""Models: fitted, kept, and asked whether they predict what they were fitted to."""
