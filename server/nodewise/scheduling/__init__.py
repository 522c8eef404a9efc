"""Who gets which devices: what every policy needs around it.

Request and its checks, the jobs' curves from predictions, the guarded call of a policy, placement on nodes, and what to
do with each job and why. The rules themselves are plugins.
"""
