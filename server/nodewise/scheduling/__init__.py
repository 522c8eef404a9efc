"""Schedules: which job gets which devices.

This package checks the request, predicts the jobs' curves, calls the policy, places the grants on nodes, and says what
to do with each job and why. The policies themselves are plugins.
"""
