"""Slurm: node counts and time limits at submission, measurements at the end of a job."""
