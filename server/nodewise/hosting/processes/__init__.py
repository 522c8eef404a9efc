"""Plugin hosts: processes in which the plugins of a distribution are imported, run and, when they must be, ended."""
