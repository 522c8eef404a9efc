"""Learning while serving: what the jobs of a namespace teach it, what others may add, and what was pinned."""
