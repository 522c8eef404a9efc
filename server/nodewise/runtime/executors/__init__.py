"""Engines that do many independent pieces of work: processes of this machine, or Ray's."""
