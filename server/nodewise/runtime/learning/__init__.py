"""Learning while the server runs: lessons of a namespace from its own jobs and from shared ones, and pinned lessons."""
