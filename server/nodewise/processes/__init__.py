"""Child processes: start, watch, limit, stop, and when to restart one."""
