"""Executors of many independent units of work: processes of this machine, or tasks of Ray."""
