"""Runners for long work: processes of a pool, or threads of the server's process."""
