"""Learning while serving: lessons of a namespace from its own jobs and from shared ones, and pinned lessons."""
