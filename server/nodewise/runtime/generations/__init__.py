"""Generations of plugins: what is served together, how one takes over from another, and what is kept of them."""
