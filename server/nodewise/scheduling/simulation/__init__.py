"""What a policy would have done: jobs from arrival to completion on a simulated cluster.

The simulated time and its events, jobs and their curves, nodes that fail, wrong predictions and early stops, results
and repetitions; readers of job traces and generators of made-up ones. The rules themselves are plugins.
"""
