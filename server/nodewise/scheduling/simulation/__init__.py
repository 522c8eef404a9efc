"""Simulation of a policy: jobs from arrival to completion on a simulated cluster.

This package has the simulated time and its events, jobs and their curves, failures of nodes, prediction errors, early
stops, results and repetitions. The policies themselves are plugins.
"""
